"""The run directory: ``plan.json``, ``samples.jsonl``, ``cells/<n>/``. Written as things land, never rewritten.

Each object and each line carries its seal (agelab.results.checksummed): a changed bit is noticed when it is read.
"""

import fcntl
import gzip
import hashlib
import json
import os
import re
import shutil
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

from agelab.errors import InputError, did_you_mean
from agelab.model.result import SCHEMA, End, RunKernel, RunPlan, Sample, Status
from agelab.model.sanitize import escape_controls, plain_json
from agelab.results import checksummed
from agelab.results.digest import digest, inputs_key


class Place(Protocol):
    """What lies in a directory of its own."""

    path: Path


AnyPlace = TypeVar("AnyPlace", bound=Place)
LATEST = "latest"
"""What the newest is called, and the file beside all of them that says which it is."""
NEWEST = 3
"""Runs to name where none was meant, or several may be."""
ALL = "all runs: agelab list"
TRANSIENT = ("*initramfs", "*disk-[0-9]*", "fork-*", "results")
"""What a cell's guests are given, by its name in the cell's directory (agelab.runner.execute.boot, cell and forks)."""
LOOKS = 10
"""Times to try for a lock, 10 ms apart."""

_MAP = re.compile(r"[\w-][\w.-]{0,99}(/[\w-][\w.-]{0,99})?", re.ASCII)
_KERNEL = re.compile(r"(?P<spec>.+) = (?P<release>\S+) \((?P<version>.+)\)")


class RunDirectory:
    """One run on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        """What it is called; a directory may have been renamed to anything."""
        return escape_controls(self.path.name, kept="")

    @property
    def home(self) -> Path:
        """The AGELAB_HOME that holds the run."""
        return self.path.parent.parent

    @classmethod
    def create(cls, runs: Path, label: str) -> "RunDirectory":
        """A new directory, named by the moment and the scenario; never one that is there already."""
        runs.mkdir(parents=True, exist_ok=True)
        moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        for attempt in range(1000):
            path = runs / (f"{moment}-{label}" + (f"-{attempt}" if attempt else ""))
            try:
                path.mkdir()
            except FileExistsError:
                continue
            return cls(path)
        raise FileExistsError(runs / f"{moment}-{label}")

    def write_plan(self, plan: RunPlan) -> None:
        """Say what the run sets out to do, before its first cell."""
        checksummed.write_sealed(self.path / "plan.json", plan, schema=SCHEMA)
        note_latest(self.path)

    def cell(self, number: int) -> Path:
        """The directory of that cell, made if need be."""
        path = self.path / "cells" / str(number)
        path.mkdir(parents=True, exist_ok=True)
        return path

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else carries the run out while the body runs. Raises InputError where somebody does."""
        with (self.path / "lock").open("w") as file:
            try:
                _lock(file)
            except BlockingIOError as error:
                raise InputError(f"{self.name} is still going on") from error
            yield

    def going_on(self) -> bool:
        """Whether somebody carries the run out at this moment. Nobody is kept from it, and nothing waited for."""
        try:
            with (self.path / "lock").open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # no lock: nobody has carried it out yet
            return False
        return False

    def transient(self) -> list[Path]:
        """The disks and archives of its guests, which go with their cell: nobody reads them afterwards."""
        return sorted(path for pattern in TRANSIENT for path in self.path.glob(f"cells/*/{pattern}"))

    def append(self, number: int, sample: Sample) -> None:
        """Add one sample of a cell."""
        self._add({"cell": number, **_row(sample)})

    def again(self, number: int) -> None:
        """A cell begins anew: what it has left goes, its samples by a line that says so."""
        if (self.path / "cells" / str(number)).exists():
            self._add({"cell": number, "again": True})
            shutil.rmtree(self.cell(number))

    def _add(self, row: dict[str, Any]) -> None:
        checksummed.add_line(self.path / "samples.jsonl", row)

    def write_inputs(self, number: int, inputs: dict[str, Any]) -> None:
        """Keep what the cell's key is the hash of, so that two runs can be compared input by input."""
        checksummed.write(self.cell(number) / "inputs.json", json.dumps(inputs, indent=1, sort_keys=True))

    def finish(self, number: int, end: End) -> None:
        """Write the end record: from here on the cell is finished."""
        checksummed.write_sealed(self.cell(number) / "end.json", end)

    def plan(self) -> RunPlan:
        """What the run set out to do; of an older run the kernel is read from its provenance.

        Raises InputError for one that is damaged, and for one of another schema than this agelab's.
        """
        path = self.path / "plan.json"
        with checksummed.readable(path):
            said = checksummed.unseal(json.loads(path.read_bytes()))
            self._check_schema(said.pop("schema", SCHEMA))  # in the first runs it was not said
            plan = checksummed.validated(said, RunPlan)
        return plan if plan.kernel else plan.model_copy(update={"kernel": _kernel_in_words(plan)})

    def _check_schema(self, schema: object) -> None:
        """Raise InputError for results that this agelab cannot read, however sound they are."""
        if type(schema) is int and schema > SCHEMA:
            raise InputError(
                f"{self.name} was made by a newer agelab: its results are of schema {schema}, "
                f"this one reads {SCHEMA}",
                hint="read it with that agelab, or a newer one than this",
            )
        if type(schema) is not int or schema != SCHEMA:
            raise InputError(
                f"{self.name} says its results are of schema {json.dumps(schema)[:60]}: there has been no such one",
                hint=f"the first was {SCHEMA}; have the run made again: make scenario",
            )

    def unfinished(self) -> list[int]:
        """The cells that have no end yet, or one that came from outside."""
        ends = [self.end(number) for number in range(len(self.plan().cells))]
        return [number for number, end in enumerate(ends) if end is None or end.status is Status.INTERRUPTED]

    def end(self, number: int) -> End | None:
        """The end record of a cell, or None while it has none."""
        path = self.path / "cells" / str(number) / "end.json"
        with checksummed.readable(path), suppress(FileNotFoundError):
            return checksummed.validated(checksummed.unseal(json.loads(path.read_bytes())), End)
        return None

    def inputs(self, number: int) -> dict[str, Any]:
        """What the cell's key is the hash of, to be shown; empty for a cell that never ran.

        Raises InputError for damage.
        """
        return dict(plain_json(self._inputs(number)))

    def _inputs(self, number: int) -> dict[str, Any]:
        path = self.path / "cells" / str(number) / "inputs.json"
        with checksummed.readable(path), suppress(FileNotFoundError):
            return dict(json.loads(path.read_bytes()))
        return {}

    def samples(self) -> dict[int, list[Sample]]:
        """Cell number to its samples, in the order they came. A last line cut short is left out.

        Raises InputError where a line is damaged.
        """
        found: dict[int, list[Sample]] = {}
        path = self.path / "samples.jsonl"
        with checksummed.readable(path):
            for raw in checksummed.lines(path):
                number = raw.pop("cell")
                if type(number) is not int:
                    raise ValueError("a cell is called by its number")
                if raw == {"again": True}:
                    found.pop(number, None)
                else:
                    found.setdefault(number, []).append(Sample.model_validate(raw))
        return found

    def found(self) -> tuple[RunPlan, list[End | None], dict[int, list[Sample]]]:
        """The plan, each cell's end and the samples, while somebody may be adding to them.

        The ends are read first: of a cell that has one the samples are then all there.
        """
        plan = self.plan()
        ends = [self.end(number) for number in range(len(plan.cells))]
        return plan, ends, self.samples()

    def verify(self) -> None:
        """Work out again what the cells' ends say of them. Raises InputError for one that is not what was measured.

        A cell without an end has nothing to be held against but the seals of its lines, one of an older run neither.
        """
        going_on = self.going_on()
        _, ends, samples = self.found()
        for number, end in enumerate(ends):
            again = end is not None and end.status is Status.INTERRUPTED and (going_on or self.going_on())
            if end is None or again:
                continue
            for name in self._damaged(number, end, samples.get(number, [])):
                raise InputError(
                    f"{self.name}, cell {number}: {name} is not what was measured",
                    hint=f"to measure that cell again: rm {self.path / 'cells' / str(number) / 'end.json'}; "
                    f"agelab resume {self.name}",
                )
        if beyond := sorted(set(samples) - set(range(len(ends)))):
            raise InputError(f"{self.path / 'samples.jsonl'} is damaged: the run has no cell {beyond[0]}")

    def _damaged(self, number: int, end: End, samples: Sequence[Sample]) -> Iterator[str]:
        """Which of a cell's files are not what its end says, or gone."""
        if end.inputs_key and inputs_key(self._inputs(number)) != end.inputs_key:
            yield f"cells/{number}/inputs.json"
        recorded = end.measured or end.digest
        if recorded and digest(end.status, samples, end.maps) != recorded:
            yield "samples.jsonl"
        for name, wanted in end.maps.items():
            if not _MAP.fullmatch(name):
                yield f"cells/{number}/end.json"
                continue
            path = self.path / "cells" / str(number) / map_file(name)
            if not (path.is_file() and _unpacked_hash(path) == wanted):
                yield str(path.relative_to(self.path))

    def as_json(self) -> dict[str, Any]:
        """The whole result in the documented schema."""
        plan, ends, samples = self.found()
        cells = []
        for number, cell in enumerate(plan.cells):
            end = ends[number] or End(
                status=Status.INTERRUPTED, reason="it has no end record", host_seconds=0
            )
            rows = [
                sample.model_dump(exclude_none=sample.value is not None) for sample in samples.get(number, [])
            ]
            cells.append(
                {
                    **cell.model_dump(mode="json"),
                    **end.model_dump(mode="json", exclude={"host_seconds", "measured"}),
                    "samples": rows,
                }
            )
        return {
            "schema": SCHEMA,
            **plan.model_dump(mode="json", exclude={"cells", "command"}),
            "cells": cells,
        }


def _kernel_in_words(plan: RunPlan) -> RunKernel | None:
    """The kernel of a run from before the plan had it in fields, or None where its provenance does not say it."""
    match = _KERNEL.fullmatch(str(plan.provenance.get("kernel", "")))
    return RunKernel(**match.groupdict()) if match else None


def map_file(name: str) -> Path:
    """Where a cell's directory has what a map boot brought back under that name. Raises ValueError for an unfit one."""
    if not _MAP.fullmatch(name):
        raise ValueError(f"{name[:60]!r} is no name of a map")
    return Path("maps", f"{name}.gz")


@contextmanager
def settled(runs: Path, *, alone: bool = False) -> Iterator[None]:
    """While a run is begun nobody takes its directory, without a plan yet, for a leftover; who looks is ``alone``."""
    runs.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(runs, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def without_plan(runs: Path) -> list[RunDirectory]:
    """The directories of runs that never came to have a plan, and that nobody carries out."""
    found = (RunDirectory(path) for path in sorted(runs.glob("[!.]*/")) if not (path / "plan.json").exists())
    return [run for run in found if not run.going_on()]


def every(runs: Path) -> list[RunDirectory]:
    """All runs that have a plan, oldest first."""
    return [RunDirectory(path.parent) for path in sorted(runs.glob("*/plan.json"))]


def note_latest(path: Path) -> None:
    """Say that this is the newest of its kind: names tell the hour, and a clock may be put back."""
    checksummed.write(path.parent / LATEST, path.name)


def latest(known: Sequence[AnyPlace]) -> AnyPlace:
    """The newest of some that there are, oldest first by their names."""
    note = known[0].path.parent / LATEST
    named = note.read_text().strip() if note.exists() else ""
    return next((one for one in known if one.path.name == named), known[-1])


def find(runs: Path, name: str) -> RunDirectory:
    """The run of that name, or the one run whose name begins so; ``latest`` is the newest. It is verified.

    Raises InputError naming the nearest runs, or the newest, and for one that is not what was measured.
    """
    run = named(runs, name)
    run.verify()
    return run


def named(runs: Path, name: str) -> RunDirectory:
    """The same, whatever is in it."""
    known = every(runs)
    if name == LATEST and known:
        return latest(known)
    for run in known:
        if run.name == name:
            return run
    if not known:
        raise InputError(
            f"no run {name!r}: there are no runs yet", hint="make one: agelab run aging-reiserfs"
        )
    begun = [run for run in known if name and run.name.startswith(name)]
    if len(begun) == 1:
        return begun[0]
    if begun:
        raise InputError(f"{len(begun)} runs begin with {name!r}; {_newest(begun)}", hint=ALL)
    if near := did_you_mean(name, [run.name for run in known]):
        raise InputError(f"no run {name!r}; {near}", hint=ALL)
    raise InputError(f"no run {name!r}; {_newest(known)}", hint=ALL)


def _newest(runs: Sequence[RunDirectory]) -> str:
    return "the newest: " + ", ".join(run.name for run in runs[: -NEWEST - 1 : -1])


def _lock(file: IO[str]) -> None:
    """Lock it; a look at whether it is locked is over in no time. Raises BlockingIOError where it stays locked."""
    for left in reversed(range(LOOKS)):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not left:
                raise
            time.sleep(0.01)
        else:
            return


def _unpacked_hash(path: Path) -> str | None:
    """The sha256 of a packed file's content, or None where it cannot be unpacked."""
    try:
        with gzip.open(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, EOFError, zlib.error):
        return None


def _row(sample: Sample) -> dict[str, Any]:
    """A sample as it is written: the reason only where there is no value, the value always."""
    return sample.model_dump(exclude=set() if sample.not_measured else {"not_measured"})
