"""The factors that ``agelab why`` changes. A new one is one entry of FACTORS, or of a scenario's ``unstated``."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from agelab.base.errors import AgelabError, InputError, Notify, unknown
from agelab.base.types import Defaults
from agelab.bisect.why.baseline import Baseline
from agelab.kernel import debian_kernel
from agelab.results.conditions import KERNEL
from agelab.runner.request.options import SourceState
from agelab.runner.request.request import planned_cells, resolve
from agelab.scenario import selection
from agelab.scenario.drive import Drive, RotatingDisk
from agelab.scenario.machine import MachineLabel
from agelab.scenario.scenario import Scenario
from agelab.scenario.unstated import Unstated, reading_names
from agelab.store.artefacts import Store

KERNELS = ("5.10", "6.1", "6.12", "7.2")
"""Versions to try: those of Debian's suites that a guest can boot."""

BLOCK_LAYERS = {
    "scheduler=bfq": "the scheduler bfq",
    "read_ahead_kib=64": "a read-ahead of 64 KiB",
    "read_ahead_kib=256": "a read-ahead of 256 KiB",
}
"""Block layers to try, each with its name in a sentence."""
UNREAD = "no step of the claim reads or writes the source: what differs is how the steps before have laid their copies"


@dataclass(frozen=True)
class Setting:
    """One change of one factor."""

    to: str
    """What it is changed to, for the table."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """The options of the run that change."""
    release: str = ""
    """The kernel's release, where that changes."""
    reason: str = ""
    """The reason why it cannot be tried; empty where it can."""
    called: str = ""
    """The setting in a sentence, where the factor's name and ``to`` are none."""
    remark: str = ""
    """What must be known of any difference that it makes."""
    pair: bool = False
    """True for the settings of two factors at once."""


Settings = Callable[[Baseline, Store, Notify], Iterable[Setting]]


@dataclass(frozen=True)
class Factor:
    """Something in which a run may differ from the study."""

    name: str
    about: str
    settings: Settings
    """Lists its settings for a run, without the run's own."""
    moves: frozenset[str] = frozenset()
    """The conditions that differ when it is changed."""
    known: bool = True
    """False where the run's own value is no better known than the settings are."""
    called: str = ""
    """Its name in a sentence, where that is another."""


def _ends_of_band(baseline: Baseline, store: Store, say: Notify) -> Iterator[Setting]:
    if baseline.options.guest_clock == "wall":
        yield Setting("-", reason="the wall clock has no cost of an instruction")
        return
    for end, what in (("low", "cheap"), (None, "middle"), ("high", "dear")):
        if end != baseline.options.machine_band:
            figures = " / ".join(dict.fromkeys(_per_cycle(baseline, end)))
            yield Setting(f"{what}: {figures} instructions a cycle", {"machine_band": end})


def _per_cycle(baseline: Baseline, end: str | None) -> Iterator[str]:
    """Yield the instructions in a cycle of each machine of the cells, at an end of its band."""
    for name in dict.fromkeys(MachineLabel.parse(cell.cell.machine).name for cell in baseline.cells):
        figure = selection.machine(name).instructions_per_cycle
        band = figure.band
        value = figure.value if end is None or band is None else band.high if end == "low" else band.low
        yield f"{value:g}"


def _kernels(baseline: Baseline, store: Store, say: Notify) -> Iterator[Setting]:
    own = baseline.cells[0].cell.kernel
    for version in KERNELS:
        if own.startswith(f"{version}."):
            continue
        try:
            release = debian_kernel.release_of(version, store, progress=say)
        except AgelabError as error:
            yield Setting(version, reason=str(error).splitlines()[0])
        else:
            yield Setting(version, {"kernel": version}, release=release)


def _values(option: str, *values: str) -> Settings:
    """Return what lists the values of an option of a run, without that which the run has."""

    def settings(baseline: Baseline, store: Store, say: Notify) -> Iterator[Setting]:
        own = getattr(baseline.options, option) or getattr(baseline.cells[0].cell, option, None)
        yield from (Setting(value, {option: value}) for value in values if value != own)

    return settings


def _source_states(baseline: Baseline, store: Store, say: Notify) -> Iterator[Setting]:
    """Yield the other state of the filesystem from which a study copied."""
    beside = baseline.scenario.beside
    if beside is None:
        yield Setting("-", reason="the study copied from no other filesystem")
        return
    own = baseline.options.source or ("scattered" if beside.scattered else "pristine")
    remark = "" if baseline.uses_companion else UNREAD
    for state in get_args(SourceState):
        if state != own:
            yield Setting(state, {"source": state}, called=f"a {state} source", remark=remark)


def _of_reading(point: Unstated) -> Factor:
    """Return the factor of something that the study leaves open, which can be read in another way."""
    name = str(point.name)

    def settings(baseline: Baseline, store: Store, say: Notify) -> Iterator[Setting]:
        own = {*reading_names(baseline.options.instead)}
        changes = {"instead": ",".join(sorted(own ^ {name}))}
        try:
            read = resolve(baseline.options.changed(**changes)).selection.scenario
        except InputError as error:
            yield Setting(point.called, reason=str(error))
            return
        if _is_same(baseline, read):
            yield Setting(point.called, reason="it changes none of the claim's cells")
        elif name in own:
            yield Setting("as the scenario has it", changes)
        else:
            yield Setting(point.called, changes, called=point.called)

    moves = frozenset({"steps", "block_layer", "data"})
    return Factor(name, point.says, settings, moves, called=f"choice of {name}")


def _is_same(baseline: Baseline, other: Scenario) -> bool:
    """Return True if the cells of the claim are the same in another reading of their scenario."""
    names = {variant for _, variant, _ in baseline.keys}
    own, read = (
        one.model_copy(update={"variants": tuple(v for v in one.variants if v.name in names)})
        for one in (baseline.scenario, other)
    )
    return own == read


def _block_layers(baseline: Baseline, store: Store, say: Notify) -> Iterator[Setting]:
    """Yield other block layers; what the run changed of its own stays, but for the key that is tried."""
    own = [word.strip() for word in (baseline.options.block or "").split(",") if word.strip()]
    for word, called in BLOCK_LAYERS.items():
        key = word.partition("=")[0]
        if word not in own:
            kept = [other for other in own if other.partition("=")[0].strip() != key]
            yield Setting(word, {"block": ",".join([*kept, word])}, called=called)


def _other_drives(baseline: Baseline, store: Store, say: Notify) -> Iterator[Setting]:
    """Yield the nearest slower and the nearest faster disk that is large enough, by the rate at the outer edge."""
    used = list(dict.fromkeys(drive.removeprefix("model:") for cell in baseline.cells for drive in cell.cell.drives))
    own = next((drive for drive in selection.drives() if drive.name in used and _rate(drive)), None)
    if own is None:
        yield Setting("-", reason=f"{', '.join(used)}: no platters to exchange")
        return
    others = sorted((drive for drive in selection.drives() if _rate(drive)), key=_rate)
    slower = [drive for drive in reversed(others) if _rate(drive) < _rate(own)]
    faster = [drive for drive in others if _rate(drive) > _rate(own)]
    for nearest in (slower, faster):
        if near := next((drive for drive in nearest if _fits(baseline, drive)), None):
            yield Setting(f"{near.name}, {_rate(near):g} MB/s", {"disks": f"model:{near.name}"})


def _fits(baseline: Baseline, drive: Drive) -> bool:
    """Return whether the partitions under test fit on a drive."""
    try:
        planned_cells(baseline.options.changed(disks=f"model:{drive.name}"))
    except InputError:
        return False
    return True


def _rate(drive: Drive) -> float:
    """Return the rate at the outer edge in MB/s; 0 for flash."""
    return drive.medium.outer_mb_s.value if isinstance(drive.medium, RotatingDisk) else 0.0


FACTORS = (
    Factor("cpu", "what an instruction costs, by its band", _ends_of_band, frozenset({"band"}), known=False),
    Factor("kernel", "the guest's kernel", _kernels, KERNEL),
    Factor(
        "defaults",
        "mkfs and mount, of the study's days or of today",
        _values("defaults", *get_args(Defaults)),
        frozenset({"defaults"}),
    ),
    Factor(
        "block",
        "the block layer: CFQ's successor, half and twice the read-ahead",
        _block_layers,
        frozenset({"block_layer"}),
        called="block layer",
    ),
    Factor("source", "how the filesystem lies from which a study copied", _source_states, frozenset({"block_layer"})),
    Factor("drive", "the nearest slower and faster disk", _other_drives, frozenset({"drives"})),
)
"""Every factor that any run has, in the order in which they are tried."""


def choose_factors(names: str | None, scenario: Scenario) -> tuple[Factor, ...]:
    """Return the factors of a list with commas; without one all, and those that the scenario leaves open.

    Raises InputError for an unknown name.
    """
    known = {factor.name: factor for factor in FACTORS}
    if taken := [name for name in scenario.readings if name in known]:
        raise InputError(
            f"scenario {scenario.name}: unstated {taken[0]!r} has the name of a factor that every run has",
            hint="give it another name in the scenario's file",
        )
    known |= {name: _of_reading(point) for name, point in scenario.readings.items()}
    if names is None:
        return tuple(known.values())
    words = list(dict.fromkeys(word.strip() for word in names.split(",")))
    if strange := [word for word in words if word not in known]:
        raise InputError(f"--factors {names}: {unknown('factor', strange[0], [*known])}")
    return tuple(known[word] for word in words)
