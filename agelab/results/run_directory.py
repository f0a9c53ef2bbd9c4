"""The run directory: ``plan.json``, ``samples.jsonl``, ``cells/<n>/``. Written as results land, never rewritten.

Only the plan of a run to which seeds are added is written anew, with the new cells behind the others.

Each object and each line carries a checksum of its own (agelab.results.checksummed), so a changed bit is noticed.
"""

import fcntl
import hashlib
import json
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from threading import Lock
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from agelab.base import atomic, fileio
from agelab.base.errors import AgelabError, InputError
from agelab.base.hashing import key_of
from agelab.base.plain_path import plain_label
from agelab.base.sanitize import escape_controls, escape_json
from agelab.results import checksummed, own
from agelab.results.cell_samples import CellSamples, SampleKinds
from agelab.results.key_and_digest import digest, digest_of_rows, inputs_key
from agelab.results.records import BLOCKS, PROFILE, CellTiming, RecordBeside
from agelab.results.result import MAX_MAGNITUDE, SCHEMA, End, RunPlan, Sample, Status
from agelab.scenario.seeds import seeds_text

AnyRecord = TypeVar("AnyRecord", bound=RecordBeside)

LATEST = "latest"
"""The name that stands for the newest run, and the file beside all of them that records which it is."""
PLAN = "plan.json"
MADE_OF = "made-of.json"
"""The versions and contents that a run's command stood for (agelab.runner.prepare.run_manifest)."""
SAMPLES = "samples.jsonl"
TRANSIENT = ("*initramfs", "*plan", "*empty", "*slot-*", "*disk-[0-9]*", "fork-*", "results*")
IN_PROFILE = tuple(f"{PROFILE}/{name}" for name in (*TRANSIENT, "*samples"))
"""Files for a cell's guests, by their names in its directory (guest_launcher, cell_boots and forks)."""
IN_BLOCKS = tuple(f"{BLOCKS}/{name}" for name in (*TRANSIENT, "*records"))
LOCK_ATTEMPTS = 10
"""Times to try for a lock, 10 ms apart."""
SHOWN_CELLS, SHOWN_KEY = 10, len("sha256:") + 12
"""Cells that a run's repr has, and characters of their keys."""

_SAMPLES = TypeAdapter(list[Sample])
_CELL = re.compile(rb'\{"cell":(0|[1-9][0-9]{0,8})')
_AGAIN = b'"again":true}'
_VALUE = b',"value":'
"""What stands before the value, the last key of a line as it is written."""
_MAP = re.compile(r"[\w-][\w.-]{0,99}(/[\w-][\w.-]{0,99})?", re.ASCII)
_PICTURE = re.compile(r"[a-z][a-z-]{0,50}\.svg")


@dataclass
class _Written:
    """The samples that this process has written into a file, whole cells at once: those need not be read again."""

    samples: dict[int, Sequence[Sample]] = field(default_factory=dict)
    state: tuple[int, int] | None = None
    """Size and time of the file when the last of them was written, or all were read."""
    lock: Lock = field(default_factory=Lock)

    def is_all(self, path: Path) -> bool:
        """Return whether the file has these samples and no others."""
        return self.state == _state(path)

    def add(self, path: Path, number: int, samples: Sequence[Sample]) -> None:
        self.samples[number] = [*self.samples.get(number, ()), *samples]
        self.state = _state(path)


def _state(path: Path) -> tuple[int, int] | None:
    """Return size and time of a file; None where there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns


def _ended(end: End | None) -> str:
    """Say how a cell ended: status, and the beginning of its key."""
    if end is None:
        return "has not ended"
    return f"{end.status}, {end.inputs_key[:SHOWN_KEY]}..." if end.inputs_key else f"{end.status}, no key"


class RunDirectory:
    """One run on disk."""

    def __init__(self, path: Path, home: Path | None = None) -> None:
        self.path = path
        self._home = home
        self._written = _Written()

    @property
    def name(self) -> str:
        """Its name, fit for a terminal: a directory may have been renamed to anything."""
        return escape_controls(self.path.name, kept="")

    def __repr__(self) -> str:
        """Say how each cell ended, and under which key."""
        try:
            cells = self.plan().cells
            ends = [self.end(number) for number in range(len(cells))]
        except (AgelabError, OSError) as error:
            return f"{self.name}: {escape_controls(str(error))}"
        shown = list(zip(cells, ends, strict=True))[:SHOWN_CELLS]
        lines = [f"  {cell.short_label}, {seeds_text([cell.seeds])}: {_ended(end)}" for cell, end in shown]
        more = [f"  and {len(cells) - SHOWN_CELLS} more"] if len(cells) > SHOWN_CELLS else []
        count = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
        return "\n".join([f"{self.name}: {count}", *lines, *more])

    @property
    def home(self) -> Path:
        """The AGELAB_HOME that holds the run, or in which it was asked for by its path."""
        return self._home or self.path.parent.parent

    @property
    def in_store(self) -> bool:
        """True if it lies among the runs of that store."""
        return self.path.parent == self.home / "runs"

    @property
    def named(self) -> str:
        """What names it on a command line: outside of the store that is its path."""
        return self.name if self.in_store else quote(str(self.path))

    @property
    def has_own_plan(self) -> bool:
        """True if that store began it, as its plan is now."""
        return own.is_own(self.path / PLAN, self.home)

    def is_own(self, number: int) -> bool:
        """Return whether that store measured a cell: a run may have been copied there."""
        return own.is_own(self.path / "cells" / str(number) / "end.json", self.home)

    @classmethod
    def create(cls, runs: Path, label: str) -> "RunDirectory":
        """Make a new directory, named by the moment and the scenario; never one that exists."""
        return cls(new_directory(runs, label))

    def write_plan(self, plan: RunPlan) -> None:
        """Write what the run sets out to do, before its first cell, and before more cells are added."""
        own.write(self.path / PLAN, checksummed.sealed_text(plan, schema=SCHEMA), self.home)
        record_latest(self.path)

    def cell_directory(self, number: int) -> Path:
        """Return the directory of that cell, made if need be."""
        path = self.path / "cells" / str(number)
        path.mkdir(parents=True, exist_ok=True)
        return path

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Let no other process run these cells, or clean up, meanwhile.

        Raises InputError where one does, and for a run whose links lead out of it: somebody else's, which was unpacked.
        """
        for path in (*(self.path / name for name in ("lock", SAMPLES, "cells")), *self.path.glob("cells/*")):
            if path.is_symlink():
                raise InputError(
                    f"{path} is a link: nothing is written or removed where it leads",
                    hint="no run of agelab has one there; to show the run, name its directory by its path",
                )
        with (self.path / "lock").open("a", encoding="utf-8") as file:
            # ``is_running`` holds it for a moment only.
            for _ in range(LOCK_ATTEMPTS):
                if atomic.try_lock(file):
                    break
                time.sleep(0.01)
            else:
                raise InputError(f"{self.name} is still going on")
            yield

    def is_running(self) -> bool:
        """Return whether a process runs its cells now, without blocking that or any other."""
        try:
            with (self.path / "lock").open(encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # no lock file: nobody has run it yet
            return False
        return False

    def transient_files(self) -> list[Path]:
        """List its guests' disks and archives, which are removed with the end of their cell."""
        return sorted(
            path
            for pattern in (*TRANSIENT, *IN_PROFILE, *IN_BLOCKS)
            for path in self.path.glob(f"cells/*/{pattern}")
            if not leads_out(path, self.path)
        )

    def append(self, number: int, sample: Sample) -> None:
        """Add one sample of a cell."""
        self._add({"cell": number, **_row(sample)})

    def append_all(self, number: int, samples: Sequence[Sample]) -> None:
        """Add all samples of a cell at once."""
        rows = ({"cell": number, **_row(sample)} for sample in samples)
        path = self.path / SAMPLES
        with self._written.lock:
            known = self._written.is_all(path)
            checksummed.add_lines(path, rows)
            if known:
                self._written.add(path, number, samples)

    def restart_cell(self, number: int) -> None:
        """Drop what a cell has left, its samples by a line that voids them, so that it can begin anew."""
        if (self.path / "cells" / str(number)).exists():
            self._add({"cell": number, "again": True})
            shutil.rmtree(self.cell_directory(number))

    def _add(self, row: dict[str, Any]) -> None:
        checksummed.add_lines(self.path / SAMPLES, [row])

    def write_inputs(self, number: int, inputs: dict[str, Any]) -> None:
        """Write what the cell's key is the hash of, so that two runs can be compared input by input."""
        path = self.cell_directory(number) / "inputs.json"
        checksummed.write(path, to_json(_sorted(inputs), indent=1).decode())

    def write_timing(self, number: int, timing: CellTiming) -> None:
        """Write the host's time that the cell took, beside what it has measured."""
        self.write_beside(number, timing)

    def write_beside(self, number: int, record: RecordBeside) -> None:
        """Write a record of a cell beside its results."""
        checksummed.write_sealed(self.cell_directory(number) / record.file, record)

    def beside(self, number: int, kind: type[AnyRecord]) -> AnyRecord | None:
        """Read a record of a cell; None where none was taken. Raises InputError for damage."""
        return checksummed.read_if_there(self.path / "cells" / str(number) / kind.file, kind)

    def finish(self, number: int, end: End) -> None:
        """Write the end record: from here on the cell is finished."""
        path, text = self.cell_directory(number) / "end.json", checksummed.sealed_text(end)
        if (self.path / PLAN).exists():
            own.write(path, text, self.home)
        else:  # the companion disk's, which is no run of a store
            checksummed.write(path, text)

    def plan(self) -> RunPlan:
        """Read what the run set out to do.

        Raises InputError for a damaged plan, and for one of a schema that this agelab does not read.
        """
        path = self.path / "plan.json"
        with checksummed.readable(path):
            record = checksummed.unseal(json.loads(fileio.read_bytes(path)))
            self._check_schema(record.pop("schema", None))
            return checksummed.validated(record, RunPlan)

    def _check_schema(self, schema: object) -> None:
        """Raise InputError for results that this agelab cannot read, however sound they are."""
        if type(schema) is int and schema > SCHEMA:
            raise InputError(
                f"{self.name} was made by a newer agelab: its results are of schema {schema}, this one reads {SCHEMA}",
                hint="read it with that agelab, or a newer one than this",
            )
        if type(schema) is not int or schema != SCHEMA:
            raise InputError(
                f"{self.name} says its results are of schema {json.dumps(schema)[:60]}: there has been no such one",
                hint=f"the first was {SCHEMA}; have the run made again: make scenario",
            )

    def unfinished(self) -> list[int]:
        """List the cells without an end record, or with one that says interrupted."""
        ends = [self.end(number) for number in range(len(self.plan().cells))]
        return [number for number, end in enumerate(ends) if end is None or end.status is Status.INTERRUPTED]

    def end(self, number: int) -> End | None:
        """Read the end record of a cell; None while it has none."""
        return checksummed.read_if_there(self.path / "cells" / str(number) / "end.json", End)

    def guest(self) -> str:
        """Return the hash of the guest's packages, whatever its kernel; empty where the run does not say them.

        Raises InputError for damage.
        """
        path = self.path / MADE_OF
        with checksummed.readable(path), suppress(FileNotFoundError):
            return key_of(checksummed.unseal(json.loads(fileio.read_bytes(path)))["guest"])
        return ""

    def inputs(self, number: int) -> dict[str, Any]:
        """Read what the cell's key is the hash of, fit to be shown; empty for a cell that never ran.

        Raises InputError for damage.
        """
        return dict(escape_json(self.recorded_inputs(number)))

    def recorded_inputs(self, number: int) -> dict[str, Any]:
        """Read the same as it is written, which is what the key is the hash of."""
        path = self.path / "cells" / str(number) / "inputs.json"
        with checksummed.readable(path), suppress(FileNotFoundError):
            return dict(json.loads(fileio.read_bytes(path)))
        return {}

    def samples(self) -> dict[int, list[Sample]]:
        """Read each cell's samples in the order they came, without a last line that was cut short.

        Raises InputError where a line is damaged.
        """
        return {number: list(some) for number, some in self._read_samples()[0].items()}

    def _read_samples(self) -> tuple[dict[int, Sequence[Sample]], dict[int, list[bytes]]]:
        """Read each cell's samples, and their lines without cell and seal, unless they are known already."""
        rows: dict[int, list[bytes]] = {}
        path = self.path / SAMPLES
        with self._written.lock:
            if self._written.is_all(path):
                return dict(self._written.samples), rows
        state = _state(path)
        with checksummed.readable(path):
            rows = _rows_of_cells(checksummed.raw_lines(path))
            parser = _Parser()
            samples = {number: parser.samples(some) for number, some in rows.items()}
        with self._written.lock:
            if state == _state(path):
                self._written.samples, self._written.state = dict(samples), state
        return dict(samples), rows

    def read_all(self) -> tuple[RunPlan, list[End | None], dict[int, Sequence[Sample]]]:
        """Read the plan, each cell's end and the samples, while a process may be adding to them.

        The ends are read first: a cell that has one has all of its samples by then.
        """
        plan = self.plan()
        ends = [self.end(number) for number in range(len(plan.cells))]
        return plan, ends, self._read_samples()[0]

    def verify(self) -> None:
        """Check what the cells' end records say of them. Raises InputError for a file that is not what was measured.

        A cell without an end record is checked by the checksums of its lines alone.
        """
        running = self.is_running()
        ends = [self.end(number) for number in range(len(self.plan().cells))]
        samples, rows = self._read_samples()
        for number, end in enumerate(ends):
            restarted = end is not None and end.status is Status.INTERRUPTED and (running or self.is_running())
            if end is None or restarted:
                continue
            for name in self._damaged_files(number, end, samples.get(number, []), rows.get(number, [])):
                raise InputError(
                    f"{self.name}, cell {number}: {name} is not what was measured",
                    hint=f"to measure that cell again: rm {self.path / 'cells' / str(number) / 'end.json'}; "
                    f"agelab resume {self.name}",
                )
        if beyond := sorted(set(samples) - set(range(len(ends)))):
            raise InputError(f"{self.path / 'samples.jsonl'} is damaged: the run has no cell {beyond[0]}")

    def _damaged_files(self, number: int, end: End, samples: Sequence[Sample], rows: Sequence[bytes]) -> Iterator[str]:
        """Name the files of a cell that are missing, or not what its end record says."""
        if end.inputs_key and inputs_key(self.recorded_inputs(number)) != end.inputs_key:
            yield f"cells/{number}/inputs.json"
        recorded = end.measured or end.digest
        if recorded and recorded not in _digests(end, samples, rows):
            yield "samples.jsonl"
        for name, sha256 in end.maps.items():
            if not _MAP.fullmatch(name):
                yield f"cells/{number}/end.json"
                continue
            path = self.path / "cells" / str(number) / map_file(name)
            if not (path.is_file() and unpacked_hash(path) == sha256):
                yield str(path.relative_to(self.path))

    def as_json(self) -> dict[str, Any]:
        """Return the whole result in the documented schema."""
        plan, ends, samples = self.read_all()
        cells = []
        for number, cell in enumerate(plan.cells):
            end = ends[number] or End(status=Status.INTERRUPTED, reason="it has no end record", host_seconds=0)
            rows = [_row(sample) for sample in samples.get(number, [])]
            cells.append(
                {
                    **cell.model_dump(mode="json"),
                    **end.model_dump(mode="json", exclude={"host_seconds", "measured", "pictures", "ended", "host"}),
                    "samples": rows,
                }
            )
        return {"schema": SCHEMA, **plan.model_dump(mode="json", exclude={"cells", "command"}), "cells": cells}


def new_directory(parent: Path, label: str) -> Path:
    """Make a directory named by the moment and what is plain of the label; never one that exists."""
    named = f"{datetime.now(UTC).strftime('%Y%m%d-%H%M%S')}-{plain_label(label)}"
    for attempt in range(1000):
        path = parent / (named + (f"-{attempt}" if attempt else ""))
        with suppress(FileExistsError):
            path.mkdir(parents=True)
            return path
    raise FileExistsError(parent / named)


def record_latest(path: Path) -> None:
    """Record this directory as the newest of its kind: names tell the hour, and a clock may be set back."""
    checksummed.write(path.parent / LATEST, path.name)


def leads_out(path: Path, top: Path) -> bool:
    """Return whether a link on the way from a run's directory to a path leads elsewhere: what is there is not ours."""
    return path.parent.resolve() != top.resolve() / path.parent.relative_to(top)


def map_file(name: str) -> Path:
    """Return the place of a map in its cell's directory. Raises ValueError for a name that no map can have."""
    if not _MAP.fullmatch(name):
        raise ValueError(f"{name[:60]!r} is no name of a map")
    return Path("maps", f"{name}.gz")


def picture_file(name: str) -> Path:
    """Return the place of a picture in its cell's directory. Raises ValueError for a name that none can have."""
    if not _PICTURE.fullmatch(name):
        raise ValueError(f"{name[:60]!r} is no name of a picture")
    return Path("maps", name)


def unpacked_hash(path: Path) -> str | None:
    """Return the sha256 of a packed file's content; None where it cannot be unpacked."""
    try:
        sha256 = hashlib.sha256()
        for piece in fileio.unpacked_pieces(path, fileio.MAP):
            sha256.update(piece)
        return sha256.hexdigest()
    except OSError:
        return None


def _sorted(value: Any) -> Any:
    """Return a JSON value whose objects have their keys in order."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(element) for element in value] if isinstance(value, list | tuple) else value


def _rows_of_cells(lines: Iterable[bytes]) -> dict[int, list[bytes]]:
    """Return the JSON of each cell's samples, without those that a later line voids.

    Most lines are taken apart as they were written, unparsed.
    """
    rows: dict[int, list[bytes]] = {}
    last: bytes | None = None  # lines of a cell mostly follow one another
    of_last: list[bytes] = []
    for line in lines:
        plain = checksummed.unsealed_line(line)
        cell, _, rest = plain.partition(b",")
        if plain is not line and rest != _AGAIN:
            if cell != last and (match := _CELL.fullmatch(cell)):
                last, of_last = cell, rows.setdefault(int(match[1]), [])
            if cell == last:
                of_last.append(b"{" + rest)
                continue
        raw = checksummed.unseal(json.loads(line))
        number = raw.pop("cell")
        if type(number) is not int:
            raise ValueError("a cell is called by its number")
        if raw == {"again": True}:
            last = None
            rows.pop(number, None)
        else:
            rows.setdefault(number, []).append(json.dumps(raw).encode())
    return rows


class _Parser:
    """Makes samples of rows. Those that differ in nothing but their values are parsed once, for all cells."""

    def __init__(self) -> None:
        self._known: dict[bytes, Sample] = {}
        self._kinds: dict[tuple[bytes, ...], SampleKinds] = {}

    def samples(self, rows: Sequence[bytes]) -> Sequence[Sample]:
        """Parse a cell's rows. Raises ValueError for one that is none."""
        cut = [row.rpartition(_VALUE) for row in rows]
        try:
            texts = b",".join([value for _, _, value in cut]).replace(b"}", b"")
            values = from_json(b"[%s]" % texts, allow_inf_nan=False)
            kinds = self._of(tuple([kind for kind, _, _ in cut]))
        except ValueError:
            return _parsed(rows)
        if len(values) != len(rows) or not _are_values(values):
            return _parsed(rows)
        return CellSamples(kinds, values)

    def _of(self, rows: tuple[bytes, ...]) -> SampleKinds:
        if rows not in self._kinds:
            for row in rows:
                if row not in self._known:
                    self._known[row] = Sample.model_validate_json(row + _VALUE + b"null}")
            self._kinds[rows] = SampleKinds(tuple([self._known[row] for row in rows]))
        return self._kinds[rows]


def _are_values(values: Sequence[Any]) -> bool:
    """Return whether samples may have these values, all but NaN."""
    numbers = [value for value in values if value is not None]
    if not {*map(type, numbers)} <= {int, float}:
        return False
    return min(numbers, default=0) >= -MAX_MAGNITUDE and max(numbers, default=0) <= MAX_MAGNITUDE


def _parsed(rows: Sequence[bytes]) -> list[Sample]:
    """Parse rows as they are, which says what is wrong in one."""
    try:
        samples = _SAMPLES.validate_json(b"[" + b",".join(rows) + b"]")
    except ValidationError:  # half a character, which json reads
        samples = _SAMPLES.validate_python([json.loads(row) for row in rows])
    if len(samples) != len(rows):
        raise ValueError("a line has several samples")
    return samples


def _digests(end: End, samples: Sequence[Sample], rows: Sequence[bytes]) -> Iterator[str]:
    """Yield the digest of a cell's lines; then of its samples, for which a null or an order of keys is nothing."""
    yield digest_of_rows(end.status, rows, end.maps)
    yield digest(end.status, samples, end.maps)


def _row(sample: Sample) -> dict[str, Any]:
    """Return a sample as it is written: the value always, a reason or a caveat only where there is one."""
    return sample.model_dump(exclude={name for name in ("not_measured", "caveat") if not getattr(sample, name)})
