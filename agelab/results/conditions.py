"""What shapes a result, by name; and runs gathered by it.

Every verb that puts results side by side says which names it varies. What differs otherwise it refuses, or keeps apart,
and names in the one ``text``.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar

from pydantic import Field

from agelab.base.errors import name_some
from agelab.base.hashing import key_of
from agelab.base.sanitize import escape_controls
from agelab.base.types import Frozen
from agelab.results.result import Cell, RunPlan
from agelab.scenario.machine import MachineLabel

PHASES = ("making", "measuring")
"""Parts that a cell's inputs are sorted into, before their own names."""
QUESTION = frozenset({"scenario", "scale", "clock", "processor"})
"""What is asked: runs that differ in it have nothing to do with each other, and nobody wonders why."""
SEEDS = frozenset({"run_seeds", "corpus_seeds", "cells"})
KERNEL = frozenset({"kernel", "image"})
"""A kernel and the image that it lies in, whose packages have a name of their own."""
CHOSEN = frozenset({"variant", "layout", "defaults", "machine", "band", "block_layer", "drives"})
"""What a result shows of each cell beside its numbers."""
EFFORT = frozenset({"effort"})
OF_A_VARIANT = frozenset({"machine", "drives"})
"""What each variant of a scenario may have of its own."""
FILES: Mapping[str, tuple[str, ...]] = {
    "machine's file": ("machine", "band", "block_layer"),
    "drives' files": ("drives", "layout"),
    "drive's sources": (),
    "QEMU's files": (),
    "guest's programs": ("variant",),
    "evaluated by": ("variant",),
}
"""The files below the names of a cell, and the names that must be the same for them to be."""

HASH, NAMED = 12, 4
"""Characters of a hash to show, and runs to name."""

Differences = Mapping[str, tuple[Any, Any]]


class Conditions(Frozen):
    """All that shapes the results of one kind of cell of a run; empty where the run does not say it."""

    scenario: str
    scale: str
    clock: str
    processor: str
    steps: str = Field(description="steps of the scenario")
    variant: str
    layout: str
    defaults: str
    machine: str
    band: str = Field(description="end of the processor's band")
    block_layer: str = Field(description="block layer and source")
    drives: tuple[str, ...]
    options: dict[str, Any]
    effort: dict[str, Any]
    kernel: str
    image: str
    guest: str = Field(description="packages of the guest")
    harness: str
    qemu: str = Field(description="QEMU")
    vcpus: str = Field(description="processors")
    brought: str = Field(description="files brought along")
    files: dict[str, str]
    profiles: str = Field(description="data files")
    cells: str
    data: tuple[str, ...]
    corpus_seeds: tuple[int, ...]
    run_seeds: tuple[int, ...]
    host: str
    jobs: str = Field(description="cells at a time")

    @classmethod
    def of(cls, plan: RunPlan, cell: Cell | None, guest: str = "", files: Mapping[str, str] | None = None) -> Self:
        """Return what shapes a cell of a run; of a run without cells what it says of itself."""
        provenance = {name: str(value) for name, value in plan.provenance.items()}
        machine = MachineLabel.parse(cell.machine if cell else "")
        wall = plan.clock == "wall"
        asked = [planned.model_dump(mode="json", exclude={"kernel"}) for planned in plan.cells]
        return cls(
            scenario=plan.scenario,
            scale=plan.scale,
            clock=plan.clock,
            processor=("KVM" if cell and cell.accelerator == "kvm" else "emulated") if wall else "",
            steps=provenance.get("scenario", ""),
            variant=cell.variant if cell else "",
            layout=cell.layout if cell else "",
            defaults=cell.defaults if cell else "",
            machine=machine.name,
            band=machine.band_end,
            block_layer="+".join(machine.changes),
            drives=cell.drives if cell else (),
            options=_given(plan, "digits"),
            effort=_given(plan, "effort"),
            kernel=str(plan.kernel or provenance.get("kernel") or (cell.kernel if cell else "")),
            image=provenance.get("image_content") or provenance.get("image", ""),
            guest=guest,
            **{name: provenance.get(name, "") for name in ("harness", "qemu", "vcpus", "brought", "profiles")},
            files=files or {},
            cells=key_of(asked),
            data=tuple(sorted(set(provenance.get("corpus_sha256", "").split("; ")) - {""})),
            corpus_seeds=tuple(sorted({planned.corpus_seed for planned in plan.cells})),
            run_seeds=tuple(sorted({planned.seed for planned in plan.cells})),
            host=provenance.get("host", "") if wall else "",
            jobs=str(jobs_of(plan)) if wall else "",
        )

    def differences(self, other: "Conditions", varies: Collection[str] = ()) -> Differences:
        """Return each name in which the two differ and that is not varied, with both values.

        What follows from another name that differs is not a difference of its own.
        """
        names = [name for name in type(self).model_fields if name not in varies]
        return {name: both for name in names if (both := self._both(other, name)) is not None}

    def _both(self, other: "Conditions", name: str) -> tuple[Any, Any] | None:
        """Return both values of a name, None where they do not differ."""
        ours, theirs = getattr(self, name), getattr(other, name)
        if name == "files":
            names = [at for at in FILES if at in ours and at in theirs and self._same(other, *FILES[at])]
        elif isinstance(ours, dict):
            names = [*dict.fromkeys([*ours, *theirs])]
        if isinstance(ours, dict):
            names = [at for at in names if ours.get(at) != theirs.get(at)]
            sides = tuple({at: side[at] for at in names if at in side} for side in (ours, theirs))
            return (sides[0], sides[1]) if names else None
        follows = {
            "steps": not self._same(other, "scenario"),
            "image": not self._same(other, "kernel"),
            **dict.fromkeys(("processor", "host", "jobs"), not self._same(other, "clock")),
            "profiles": not self._same(other, "cells"),
            "data": self._same_data(other),
            "corpus_seeds": bool(set(self.corpus_seeds) & set(other.corpus_seeds)),
            "drives": self.layout != other.layout and within(self.drives, other.drives),
        }
        return None if ours == theirs or follows.get(name) else (ours, theirs)

    def _same(self, other: "Conditions", *names: str) -> bool:
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def _same_data(self, other: "Conditions") -> bool:
        """Return whether the data are the same but for corpus seeds, as far as both runs say.

        Runs of other corpus seeds have other data; one of fewer histories has fewer. Of the same cells neither run has
        data of its own.
        """
        if not set(self.corpus_seeds) & set(other.corpus_seeds) or within(self.data, other.data):
            return True
        return self.cells != other.cells and bool(set(self.data) & set(other.data))

    def told(self, varies: Collection[str]) -> dict[str, Any]:
        """Return what is not varied, by the words for it."""
        return {_word(name): value for name, value in self if name not in varies}


NOT_TIMED = "not timed"
"""How a plan's provenance begins to say that a run's times are no machine's."""


def not_timed(plan: RunPlan) -> str:
    """Return why no statistic takes a run's samples; empty where its times are some machine's."""
    model = str(plan.provenance.get("model", ""))
    return model if model.startswith(NOT_TIMED) else ""


def within(ours: Iterable[str], theirs: Iterable[str]) -> bool:
    """Return whether one of the two has all that the other has."""
    left, right = set(ours), set(theirs)
    return left <= right or right <= left


def jobs_of(plan: RunPlan) -> int:
    """Return how many of a run's cells ran at a time; one where it does not say so."""
    jobs = plan.jobs
    return min(jobs, len(plan.cells)) if isinstance(jobs, int) and jobs > 0 else 1


def files_of(inputs: Mapping[str, Any], evaluated_by: str | None) -> dict[str, str]:
    """Return the hashes of the files below the names of a cell, as far as its inputs have them."""
    parts = [part for part in (inputs, *map(inputs.get, PHASES)) if isinstance(part, Mapping)]

    def recorded(name: str) -> Any:
        return next((part[name] for part in parts if name in part), None)

    module, drives = recorded("drive_module"), recorded("drives")
    drives = drives if isinstance(drives, list) else []
    contents = (
        recorded("machine"),
        [drive.get("profile") for drive in drives if isinstance(drive, Mapping)],
        module.get("sources") if isinstance(module, Mapping) else None,
        recorded("qemu"),
        recorded("tools"),
        evaluated_by,
    )
    return {name: key_of(what) for name, what in zip(FILES, contents, strict=True) if what}


def between(ours: Sequence[Conditions], theirs: Sequence[Conditions], varies: Collection[str]) -> Differences:
    """Return in what two runs differ: cell by cell of the variants (and layouts, unless varied) that both have."""
    alike = ("scenario", "variant", *({"layout"} - {*varies}))
    pairs = [(our, other) for our in ours for other in theirs if our._same(other, *alike)]
    own = frozenset() if pairs else OF_A_VARIANT
    differing: dict[str, tuple[Any, Any]] = {}
    for our, other in pairs or [(ours[0], theirs[0])]:
        for name, both in our.differences(other, {*varies, *own}).items():
            differing.setdefault(name, both)
    return differing


def text(differences: Differences) -> str:
    """Say in what two differ: ``harness 0123456789ab | ba9876543210; QEMU 7 | 8; option fail none | 1@copy``."""
    return "; ".join(line for name, both in differences.items() for line in _lines(name, *both))


def _lines(name: str, ours: Any, theirs: Any) -> Iterator[str]:
    if isinstance(ours, Mapping):
        word = "" if name == "files" else "option "
        for at in dict.fromkeys([*ours, *theirs]):
            yield f"{word}{_shown(at)} {_shown(ours.get(at, 'none'))} | {_shown(theirs.get(at, 'none'))}"
    else:
        word = _word(name)
        line = " | ".join(_shown(value).removeprefix(f"{word} ") for value in (ours, theirs))
        line = f"{word} {line}"
        yield f"{line}, none of them in both" if name == "corpus_seeds" else line


def _word(name: str) -> str:
    return Conditions.model_fields[name].description or name.replace("_", " ")


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_shown, value)) or "not stated"
    shown = escape_controls(str(value), kept="")
    is_hash = len(shown) == 64 and not shown.strip("0123456789abcdef")
    return shown[:HASH] if is_hash else shown or "not stated"


class HasConditions(Protocol):
    """A run that can be gathered with others."""

    @property
    def name(self) -> str: ...

    @property
    def conditions(self) -> Sequence[Conditions]: ...


Run = TypeVar("Run", bound=HasConditions)


def grouped(
    runs: Iterable[Run], varies: Collection[str], beside: Callable[[Run, Run], bool] = lambda known, run: True
) -> list[list[Run]]:
    """Gather runs that differ in nothing but what is varied, in their order; ``beside`` may keep two apart as well."""
    groups: list[list[Run]] = []
    for run in runs:
        for group in groups:
            if all(beside(known, run) and not between(run.conditions, known.conditions, varies) for known in group):
                group.append(run)
                break
        else:
            groups.append([run])
    return groups


def apart(
    groups: Sequence[Sequence[Run]], varies: Collection[str], question: Collection[str] = QUESTION
) -> dict[int, str]:
    """Say of each group what keeps it from the first one of the same question, if there is an earlier one."""
    reasons: dict[int, str] = {}
    for at, group in enumerate(groups):
        for first in groups[:at]:
            pairs = (between(run.conditions, known.conditions, varies) for run in group for known in first)
            differing = next(filter(None, pairs), {})
            if differing and differing.keys().isdisjoint(question):
                reasons[at] = f"{names(group)} | {names(first)}: {text(differing)}"
                break
    return reasons


def names(runs: Iterable[HasConditions]) -> str:
    """Name runs, the first of many."""
    return name_some([run.name for run in runs], NAMED)


def _given(plan: RunPlan, kind: str) -> dict[str, Any]:
    """Return the options given that are of a kind (``RunOptions.to_plan``)."""
    given = plan.command.get(kind)
    return given if isinstance(given, dict) else {}
