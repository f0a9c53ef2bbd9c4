"""What the user asked for, and which cells that makes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from agelab.disk import DriveClaim, DriveSpec
from agelab.model.base import Defaults, Layout
from agelab.model.machine import Machine
from agelab.model.scenario import Scenario, Variant
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.power_cut import PowerCut
from agelab.scenario import selection
from agelab.scenario.control_file import ControlFile, ControlLine
from agelab.scenario.selection import Selection
from agelab.stored_disk import StoredDisk
from agelab.vm.guest import Clock


@dataclass(frozen=True)
class RunRequest:
    """What the user asked for."""

    name: str
    selection: Selection
    machine: Machine | None
    """In place of the study's; None for that."""
    layout: Layout | None
    """In place of the study's; None for those that each variant had there."""
    drives: tuple[DriveSpec, ...]
    """Drives in place of the scenario's; empty for those."""
    erase: tuple[str, ...]
    """Serials or tokens of real disks whose content may be lost."""
    claims: tuple[DriveClaim, ...] | None = field(default=None, kw_only=True)
    """Of the real drives, where somebody holds them already: for several runs, say."""
    clock: Clock
    vcpus: int
    kernel: str
    scale: Literal["quick", "paper"]
    run_seeds: tuple[int, ...]
    corpus_seed: int
    corpus: Path | None
    """The user's own data instead of the seeded stand-in; every size of the scenario follows its size."""
    defaults: Defaults
    jobs: int = 1
    """Cells at a time."""
    disk: str | None = None
    """Key of a stored disk to start from, instead of making one."""
    keep_disk: bool = False
    measure: bool = True
    """Whether there is anything after the making."""
    control: ControlFile | None = None
    """The user's own scripts, in place of the scenario's variants."""
    proceed: bool = False
    """Whether a control file's journal is gone on with."""
    device: str = ""
    """A path by which a control file's scripts find the disk under test, too."""
    curve: bool = False
    """Whether the disk is mapped at the points of the scenario's curve, too."""
    crash: PowerCut | None = None
    """A power cut, after which nothing of the scenario comes but the recovery."""
    prove_all: bool = True
    """Whether the image proves every filesystem there is, and not what is measured alone (one of many kernels)."""
    only: Collection[tuple[str, str, int]] | None = None
    """Variant, layout and run seed of the cells, where not all that the above makes."""
    command: Mapping[str, Any] = field(default_factory=dict)
    """The same as it was said, for the run's plan."""

    def layouts(self, variant: Variant) -> tuple[Layout, ...]:
        """Those in which a variant runs."""
        return (self.layout,) if self.layout else variant.layouts

    @cached_property
    def turns(self) -> list[tuple[Scenario, Variant, int, ControlLine | None]]:
        """Scenario, variant, run seed and line of the control file of each of its cells, but for the layouts."""
        if self.control is None:
            whole, variants = self.selection.scenario, self.selection.variants
            return [(whole, variant, seed, None) for variant in variants for seed in self.run_seeds]
        found: list[tuple[Scenario, Variant, int, ControlLine | None]] = []
        for line in self.control.lines:
            scenario = self.control.scenario(line)
            for seed in range(1, line.repetitions + 1):
                found.append((scenario, scenario.variants[0], seed, line))
        return found


@dataclass(frozen=True)
class CellRequest:
    """One cell to run."""

    spec: CellSpec
    line: ControlLine | None = None
    """Of the control file."""

    @property
    def name(self) -> tuple[str, str, int] | None:
        """How a journal knows it."""
        return (self.line.filesystem, self.line.test, self.spec.run_seed) if self.line else None


def cell_requests(
    request: RunRequest,
    shrink: float,
    claims: tuple[DriveClaim, ...],
    disk: StoredDisk | None,
    ended: Collection[tuple[str, str, int]] = (),
) -> list[CellRequest]:
    """The cells, without those of a control file that have ended already.

    Raises InputError where their drives cannot be had or do not hold what they must.
    """
    turns = [
        CellRequest(
            CellSpec(
                scenario=scenario,
                variant=variant,
                filesystem=selection.filesystem(variant.filesystem),
                beside=selection.filesystem(scenario.beside.filesystem) if scenario.beside else None,
                shrink=shrink,
                defaults=request.defaults,
                run_seed=seed,
                corpus_seed=request.corpus_seed,
                machine=request.machine or selection.machine(variant.machine or scenario.machine),
                layout=layout,
                drives=request.drives,
                claims=claims,
                clock=request.clock,
                vcpus=request.vcpus,
                member_bytes=disk.recipe.sizes[0] if disk else None,
                scripts=request.control.scripts if request.control else {},
                device=request.device,
                crash=request.crash,
            ),
            line,
        )
        for scenario, variant, seed, line in request.turns
        for layout in request.layouts(variant)
        if request.only is None or (variant.name, layout, seed) in request.only
    ]
    for turn in turns:
        turn.spec.disk  # noqa: B018 - it is worked out when it is first asked for
    return [turn for turn in turns if turn.name is None or turn.name not in ended]
