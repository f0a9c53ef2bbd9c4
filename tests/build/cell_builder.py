"""Cells before they run: their specs, the plans of their guests, and guests that say what a test has them say."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from agelab.base.types import Defaults, LayoutName
from agelab.data.corpus import Corpus
from agelab.evaluate.boot_events import BootEvents
from agelab.machine.disk import parse
from agelab.machine.image import Image
from agelab.machine.qemu import Emulator
from agelab.machine.vm.hypervisor import Hypervisor
from agelab.results.result import CellEnded, Ending, Sample
from agelab.runner.execute.guests import GuestLauncher, RunGuests
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.guest_plan import Boot, guest_plan
from agelab.runner.plan.phases import MAKING, Phase, phases
from agelab.runner.plan.steps import StepPlan
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import cell_requests as requested
from agelab.runner.request.request import resolve
from agelab.scenario import selection
from agelab.scenario.step import Action
from agelab.store.artefacts import Store

CORPUS = Corpus("key", Path("corpus.iso"), 42 << 20, "hash", 185, 41 << 20, "a corpus")


def made(cell: CellSpec, corpus: Corpus = CORPUS) -> dict[str, Any]:
    """The plan of the first boot that makes the cell's disk."""
    return guest_plan(cell, corpus, phases(cell.scenario, corpus)[0])


def spec(
    variant: str = "aging-reiserfs",
    scale: str = "quick",
    run_seed: int = 1,
    defaults: Defaults = "period",
    layout: LayoutName = "single",
    drives: tuple[str, ...] = ("model:none",),
) -> CellSpec:
    selected = selection.select(variant)
    [chosen] = selected.variants
    filesystem = selection.filesystem(chosen.filesystem)
    scenario = selected.scenario.at_scale(scale)
    shrink = scenario.scales["quick" if scale == "quick" else "paper"].shrink
    machine = selection.machine(scenario.machine)
    specs = tuple(parse(text) for text in drives)
    return CellSpec(scenario, chosen, filesystem, shrink, defaults, run_seed, 1, machine, layout, specs)


EMULATOR = cast(
    Emulator,
    SimpleNamespace(
        program=Path("/agelab/qemu/qemu"),
        clock=Path("/agelab/qemu/clock.so"),
        artefact=SimpleNamespace(directory=Path("/agelab/qemu")),
        identity={"version": "7.2"},
    ),
)


OK = CellEnded(event="end", status="ok", reason=None)


def run_guests(image: object, home: Path, hypervisor: object = None) -> RunGuests:
    """The guests of a run that boot in full."""
    store = Store(home / "store")
    return RunGuests(store, cast(Hypervisor, hypervisor), cast(Image, image), EMULATOR, print, False)


@dataclass(frozen=True, kw_only=True)
class ScriptedGuest(GuestLauncher):
    """A guest whose boots say what a test has them say; no hypervisor starts."""

    says: Callable[[Boot, BootEvents], None]
    kernel_log: str
    booted: list[int]

    def run(
        self, boot: Boot, events: BootEvents, record: Callable[[Sample], None], on_step: Callable[[str], None]
    ) -> Ending:
        self.booted.append(boot.number)
        self.says(boot, events)
        return Ending.STOPPED

    def inputs(self, boot: Boot, places: Mapping[str, Path]) -> dict[str, Any]:
        return {}

    def console(self, boot: Boot) -> str:
        return self.kernel_log


FIO = Action(name="fio", run="fio job", program="fio", origin="estimated")


PLAIN = Action(name="copy", run="cp a b", records=("content_bytes",), origin="estimated")


def phase(*actions: Action, forks: dict[int, str] | None = None) -> Phase:
    steps = tuple(StepPlan.of(action, 1, CORPUS) for action in actions)
    return Phase(MAKING, steps, 0, forks=forks or {len(steps): "aged"})


def cells(name: str, **words: Any) -> list[CellSpec]:
    """The cells of ``agelab run`` with these options."""
    wanted = resolve(RunOptions(name=name, **words))
    shrink = wanted.selection.scenario.scales[wanted.scale].shrink
    return [turn.spec for turn in requested(wanted, shrink, (), None)]
