"""A run as it was asked for, with its scenario, and the cells that it consists of."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from agelab.base import readers
from agelab.base.errors import InputError
from agelab.base.types import Defaults, LayoutName, ScaleName
from agelab.machine.disk import DriveClaim
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.request.option_fields import SourceState
from agelab.runner.request.options import RunOptions
from agelab.scenario import selection
from agelab.scenario.control_file import ControlFile, ControlLine
from agelab.scenario.disk_use import Scatter
from agelab.scenario.machine import Machine
from agelab.scenario.scenario import Scenario, Variant
from agelab.scenario.seeds import CellName, Seeds
from agelab.scenario.selection import Selection
from agelab.store.stored_disk import StoredDisk


@dataclass(frozen=True)
class RunRequest:
    """The options of a run with everything that they name."""

    options: RunOptions
    selection: Selection
    machine: Machine | None
    """In place of the scenario's."""
    kernel: str
    """Its spec, with absolute paths."""
    scale: ScaleName
    corpus: Path | None
    """The user's own data; every size of the scenario follows its size."""
    defaults: Defaults
    control: ControlFile | None = None
    only: Collection[CellName] | None = None
    """The cells to run; None for all."""
    begun: tuple[CellName, ...] = ()
    """The cells of the run that goes on, in its order; others come after them."""
    readable_by: int = readers.EVERYBODY
    """Who may read the user's own scenario, control file or capsule (agelab.base.fileio)."""

    @property
    def name(self) -> str:
        """The scenario or the control file, as the user names it."""
        return self.options.name or self.options.control or ""

    def layouts(self, variant: Variant) -> tuple[LayoutName, ...]:
        return (self.options.layout,) if self.options.layout else variant.layouts

    @property
    def cell_names(self) -> set[CellName]:
        """The names of the cells that its options ask for."""
        asked = ((variant, seeds) for _, variant, seeds, _ in self.seeded_variants)
        return {(one.name, layout, seeds) for one, seeds in asked for layout in self.layouts(one)}

    @property
    def packages(self) -> tuple[str, ...]:
        """The Debian packages that its guests have beside those of every guest: the scenario's and its layouts'."""
        names = [name for variant in self.selection.variants for name in self.layouts(variant)]
        return selection.with_packages_of_layouts(self.selection.workload.packages, names)

    def machine_of(self, scenario: Scenario, variant: Variant) -> Machine:
        """Return the machine of a variant's cells. Raises InputError where it has no band, and an end is asked for."""
        found = self.machine or selection.machine(variant.machine or scenario.machine)
        if change := self.options.block_change:
            found = change.machine(found)
        if self.options.machine_band is None:
            return found
        try:
            return found.at_band(self.options.machine_band)
        except ValueError as error:
            raise InputError(
                f"--machine-band {self.options.machine_band}: {error}",
                hint="its file says how far off the figure may be: instructions_per_cycle.band (docs/machines.md)",
            ) from error

    @property
    def filesystems(self) -> list[str]:
        """Return the names of the filesystems of all cells."""
        return sorted({variant.filesystem for _, variant, _, _ in self.seeded_variants})

    @cached_property
    def seeded_variants(self) -> list[tuple[Scenario, Variant, Seeds, ControlLine | None]]:
        """Scenario, variant, seeds and control line of each cell, without the layouts."""
        if self.control is None:
            whole, variants = self.selection.scenario, self.selection.variants
            return [
                (whole, variant, seeds, None) for variant in variants for seeds in self.options.repetitions
            ]
        found: list[tuple[Scenario, Variant, Seeds, ControlLine | None]] = []
        [corpus] = self.options.corpora
        for line in self.control.lines:
            scenario = self.control.scenario(line, self.scale)
            for run in range(1, line.repetitions + 1):
                found.append((scenario, scenario.variants[0], Seeds(corpus, run), line))
        return found


@dataclass(frozen=True)
class CellRequest:
    """One cell to run."""

    spec: CellSpec
    line: ControlLine | None = None
    """The line of the control file that it repeats."""

    @property
    def name(self) -> tuple[str, str, int] | None:
        """Filesystem, test and repetition, as a control file's journal names them."""
        return (self.line.filesystem, self.line.test, self.spec.run_seed) if self.line else None


def cell_requests(
    request: RunRequest,
    shrink: float,
    claims: tuple[DriveClaim, ...],
    disk: StoredDisk | None,
    ended: Collection[tuple[str, str, int]] = (),
) -> list[CellRequest]:
    """Return the cells of a run, without those of a control file that have ``ended``.

    Raises InputError where a drive is not to be had or too small.
    """
    options = request.options
    change = options.block_change
    cells = [
        CellRequest(
            CellSpec(
                scenario=_with_source(change.scenario(scenario) if change else scenario, options.source),
                variant=variant,
                filesystem=selection.filesystem(variant.filesystem),
                companion=selection.filesystem(scenario.beside.filesystem) if scenario.beside else None,
                shrink=shrink,
                defaults=request.defaults,
                run_seed=seeds.run,
                corpus_seed=seeds.corpus,
                machine=request.machine_of(scenario, variant),
                layout=layout,
                drives=options.disks,
                claims=claims,
                clock=options.guest_clock,
                vcpus=options.vcpus,
                member_bytes=disk.recipe.sizes if disk else (),
                key_seed=disk.recipe.run_seed if disk else None,
                scripts=request.control.scripts if request.control else {},
                workload=request.selection.workload,
                device=options.device,
                power_cut=options.power_cut,
                failure=options.failure,
                changes=options.changes,
                inode_read_ahead=change.inode_read_ahead if change else None,
            ),
            line,
        )
        for scenario, variant, seeds, line in request.seeded_variants
        for layout in request.layouts(variant)
        if request.only is None or (variant.name, layout, seeds) in request.only
    ]
    place = {name: at for at, name in enumerate(request.begun)}
    cells.sort(key=lambda cell: place.get(cell.spec.name, len(place)))
    for cell in cells:
        laid_out = cell.spec.disk  # its layout is worked out, and refused, on first use
        if cell.spec.failure:
            cell.spec.failure.require_drive(laid_out.layout, laid_out)
    if options.blocks and cells and not any(cell.spec.disk.modelled for cell in cells):
        raise InputError("--blocks: it records what modelled drives are sent, and the disk is none of theirs")
    if change and cells:
        specs = [cell.spec for cell in cells]
        modelled = any(spec.has_modelled_drive for spec in specs)
        change.require_use([spec.filesystem for spec in specs], modelled=modelled)
    return [cell for cell in cells if cell.name is None or cell.name not in ended]


def _with_source(scenario: Scenario, state: SourceState | None) -> Scenario:
    """Return the scenario with another state of its companion disk; None is the scenario's own."""
    beside = scenario.beside
    if state is None or beside is None:
        return scenario
    scattered = (beside.scattered or Scatter()) if state == "scattered" else None
    return scenario.model_copy(update={"beside": beside.model_copy(update={"scattered": scattered})})
