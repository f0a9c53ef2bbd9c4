"""A run as it was asked for: its options with everything that they name, and the cells that it consists of."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from agelab.analysis.decision import parse_question
from agelab.base import readers
from agelab.base.errors import InputError, unknown
from agelab.base.types import Defaults, LayoutName, ScaleName
from agelab.data.corpus import Corpus
from agelab.data.corpus.definition import definition
from agelab.kernel import canonical
from agelab.machine.disk import DriveClaim
from agelab.results.measure import ALL_STEPS, Measure
from agelab.runner.plan.cell_drive import MODEL_NONE
from agelab.runner.plan.cell_spec import MIB, CellSpec
from agelab.runner.request.options import RunOptions, SourceState
from agelab.scenario import control_file, selection
from agelab.scenario.control_file import ControlFile, ControlLine
from agelab.scenario.disk_use import Scatter
from agelab.scenario.history import Logged, Pulled, Repository, Traced
from agelab.scenario.machine import Machine
from agelab.scenario.metrics import METRICS
from agelab.scenario.scenario import Scenario, Variant
from agelab.scenario.seeds import CellName, Seeds
from agelab.scenario.selection import Selection
from agelab.scenario.step import CONTROL_COPY, IMPLICIT, PREPARING, StepId
from agelab.store.stored_disk import StoredDisk


def require_measure(measure: Measure, selected: Selection) -> None:
    """Raise InputError for a metric or a step that no cell of the scenario has.

    The name before the last slash, of a phase, a drive or an experiment, is not checked.
    """
    metrics = [*METRICS, *selected.workload.metrics]
    if measure.metric not in metrics:
        raise unknown("metric", measure.metric, metrics)
    scenario = selected.scenario
    own = [step.name for step in (*scenario.actions(), *scenario.tests)]
    own += [experiment.name for experiment in scenario.experiments] + ([PREPARING] if scenario.experiments else [])
    there = [*dict.fromkeys([ALL_STEPS.step, *own, CONTROL_COPY, *IMPLICIT])]
    if StepId.parse(measure.step).plain_name not in there:
        raise unknown("step", measure.step, there, f"in {scenario.name}")


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
    def scale_name(self) -> str:
        """The scale as results name it: ``corpus`` where the sizes follow a user's own data, ``check`` in a trial.

        They do not in a control file, whose scripts use the data as they like.
        """
        if self.options.trial:
            return "check"
        return "corpus" if self.corpus and not self.control else self.scale

    def shrink(self, own: Corpus | None) -> float:
        """Return the factor by which sizes are smaller than the study's; ``own`` are the user's data."""
        scenario = self.selection.scenario
        if own and scenario.corpus and not self.control:
            return scenario.corpus.mib.value * MIB / own.content_bytes
        return scenario.scales[self.scale].shrink

    def on_kernel(self, kernel: str) -> "RunRequest":
        """Return the same cells on one of several kernels."""
        options = self.options.changed(kernel=kernel)
        return replace(self, options=options, kernel=canonical(kernel))

    def planned(self) -> list[CellSpec]:
        """Return its cells before anything is made. Raises InputError where a drive is not to be had or too small."""
        return [cell.spec for cell in cell_requests(self, self.shrink(None), (), None)]

    @property
    def cell_names(self) -> set[CellName]:
        """The names of the cells that its options ask for."""
        asked = ((variant, seeds) for _, variant, seeds, _ in self.seeded_variants)
        return {(variant.name, layout, seeds) for variant, seeds in asked for layout in self.layouts(variant)}

    @property
    def packages(self) -> tuple[str, ...]:
        """The Debian packages that its guests have beside those of every guest: the scenario's and its layouts'."""
        names = [name for variant in self.selection.variants for name in self.layouts(variant)]
        return selection.with_packages_of_layouts(self.selection.workload.packages, names)

    def machine_of(self, scenario: Scenario, variant: Variant) -> Machine:
        """Return the machine of a variant's cells. Raises InputError where it has no band, and an end is asked for."""
        machine = self.machine or selection.machine(variant.machine or scenario.machine)
        if change := self.options.block_change:
            machine = change.machine(machine)
        if self.options.machine_band is None:
            return machine
        try:
            return machine.at_band(self.options.machine_band)
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
                (whole.of(variant), variant, seeds, None) for variant in variants for seeds in self.options.repetitions
            ]
        seeded: list[tuple[Scenario, Variant, Seeds, ControlLine | None]] = []
        [corpus] = self.options.corpora
        for line in self.control.lines:
            scenario = self.control.scenario(line, self.scale)
            for run in range(1, line.repetitions + 1):
                seeded.append((scenario, scenario.variants[0], Seeds(corpus, run), line))
        return seeded


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
    # By control line, variant and layout: cells that differ in their seeds alone share what that makes.
    alike: dict[tuple[int, str, str], CellSpec] = {}
    cells: list[CellRequest] = []
    for scenario, variant, seeds, line in request.seeded_variants:
        for layout in request.layouts(variant):
            if request.only is not None and (variant.name, layout, seeds) not in request.only:
                continue
            at = (id(line), variant.name, layout)
            if at not in alike:
                alike[at] = CellSpec(
                    scenario=_with_source(change.scenario(scenario) if change else scenario, options.source),
                    variant=variant,
                    machine=request.machine_of(scenario, variant),
                    filesystem=selection.filesystem(variant.filesystem),
                    companion=selection.filesystem(scenario.beside.filesystem) if scenario.beside else None,
                    shrink=shrink,
                    defaults=request.defaults,
                    run_seed=seeds.run,
                    corpus_seed=seeds.corpus,
                    layout=layout,
                    drives=options.disks,
                    claims=claims,
                    clock=options.guest_clock,
                    vcpus=options.vcpus,
                    schedule=options.schedule,
                    member_bytes=disk.recipe.sizes if disk else (),
                    key_seed=disk.recipe.run_seed if disk else None,
                    scripts=request.control.scripts if request.control else {},
                    workload=request.selection.workload,
                    device=options.device,
                    failure=options.failure,
                    changes=options.changes,
                    inode_read_ahead=change.inode_read_ahead if change else None,
                )
            cells.append(CellRequest(replace(alike[at], run_seed=seeds.run, corpus_seed=seeds.corpus), line))
    place = {name: at for at, name in enumerate(request.begun)}
    cells.sort(key=lambda cell: place.get(cell.spec.name, len(place)))
    for spec in alike.values():
        laid_out = spec.disk  # its layout is worked out, and refused, on first use
        if spec.failure:
            spec.failure.require_drive(laid_out.layout, laid_out)
    if options.blocks and cells and not any(spec.disk.modelled for spec in alike.values()):
        raise InputError("--blocks: it records the requests to modelled drives, and this disk is not on one")
    if change and cells:
        modelled = any(spec.has_modelled_drive for spec in alike.values())
        change.require_use([spec.filesystem for spec in alike.values()], modelled=modelled)
    return [cell for cell in cells if cell.name is None or cell.name not in ended]


def _with_source(scenario: Scenario, state: SourceState | None) -> Scenario:
    """Return the scenario with another state of its companion disk; None is the scenario's own."""
    beside = scenario.beside
    if state is None or beside is None:
        return scenario
    scattered = (beside.scattered or Scatter()) if state == "scattered" else None
    return scenario.model_copy(update={"beside": beside.model_copy(update={"scattered": scattered})})


def resolve(options: RunOptions, source: Selection | ControlFile | None = None) -> RunRequest:
    """Read what the options name. ``source`` is a scenario or control file that has been read already.

    Raises InputError for names that there are not, and for options that do not fit the scenario.
    """
    readable_by = readers.EVERYBODY if source else _readers(options)
    given, source = source, source or _read(options)
    file = source if isinstance(source, ControlFile) else None
    selected = source.selection if isinstance(source, ControlFile) else source
    if given is None:
        readable_by &= readers.of_files(*selected.workload.sources)
        for path in selected.workload.bring:
            readable_by &= readers.of_tree(path)
    scale: ScaleName = options.scale or ("paper" if file else "quick")
    if scale not in selected.scenario.scales:
        raise unknown("scale", scale, [*selected.scenario.scales])
    selected, own = _pulled_from(options, selected)
    scenario = selected.scenario if own else selected.scenario.at_scale(scale)
    scenario = _traced(scenario, options)
    scenario = options.failure.applied_to(scenario) if options.failure else scenario
    _fit(options, scenario)
    for spec in () if given else options.disks:
        if spec.kind == "model" and spec.name != MODEL_NONE:
            selection.drive(spec.name)  # a wrong name is told before anything is fetched
    if options.ask:
        parse_question(options.ask, selected.workload.metrics)
    if len(options.corpora) > 1:
        _require_use_of_corpora(options, replace(selected, scenario=scenario))
    data = Path(own) if own else file.data if file else None
    if options.trial:
        scenario = _small(scenario, selected.variants[0], scale, own)
    if scenario.corpus and not data:
        definition(scenario.corpus.kind).with_files(scenario.corpus.file_counts)
    request = RunRequest(
        options=options,
        selection=replace(selected, scenario=scenario),
        machine=selection.machine(options.machine) if options.machine else None,
        kernel=canonical(options.kernel),
        scale=scale,
        corpus=data,
        defaults=options.defaults or scenario.defaults,
        control=file,
        readable_by=readable_by,
    )
    if options.trial:
        _, variant, seeds, _ = request.seeded_variants[0]
        request = replace(request, only=[(variant.name, request.layouts(variant)[0], seeds)])
    return request


def _small(scenario: Scenario, variant: Variant, scale: ScaleName, own: str | None) -> Scenario:
    """Return the scenario as the trial of a variant runs it; the user's ``own`` data stay as large as they are."""
    least = variant.minimum_mib or selection.filesystem(variant.filesystem).minimum_mib
    small = scenario.small(least, scenario.scales[scale].shrink)
    if own:
        small = small.model_copy(update={"corpus": scenario.corpus, "disk": scenario.disk})
    return small


def _pulled_from(options: RunOptions, selected: Selection) -> tuple[Selection, str | None]:
    """Return the scenario whose histories pull from --corpus, if it has such, and else that corpus."""
    scenario = selected.scenario
    if not options.corpus or not any(isinstance(history, Pulled) for history in scenario.histories):
        return selected, options.corpus
    histories = tuple(
        history.model_copy(update={"repository": options.corpus}) if isinstance(history, Pulled) else history
        for history in scenario.histories
    )
    return replace(selected, scenario=scenario.model_copy(update={"histories": histories})), None


def _readers(options: RunOptions) -> int:
    """Return who may read the user's own scenario file, or control file with the scripts beside it."""
    if options.control is not None:
        control = Path(options.control)
        return readers.of_files(control, *control.parent.glob("*.sh")) if control.exists() else readers.EVERYBODY
    own = Path(options.name or "")
    return readers.of_files(own) if own.suffix == ".toml" and own.exists() else readers.EVERYBODY


def _read(options: RunOptions) -> Selection | ControlFile:
    if options.control is not None:
        return control_file.read(Path(options.control))
    return selection.select(
        options.name or "",
        options.filesystem,
        Path(options.log) if options.log else None,
        options=options.options,
        instead=options.instead,
    )


def _traced(scenario: Scenario, options: RunOptions) -> Scenario:
    """Return the scenario without its passes under strace where they are not asked for."""
    if not options.trace:
        return scenario.model_copy(update={"traces": ()})
    if not scenario.traces:
        which = "a control file's tests are" if options.control else f"scenario {scenario.name} is"
        raise InputError(f"--trace: {which} not performed under strace")
    return scenario


def _require_use_of_corpora(options: RunOptions, selected: Selection) -> None:
    """Refuse several corpus seeds where they would change nothing."""
    scenario, which = selected.scenario, f"--corpora {','.join(map(str, options.corpora))}"
    used = {variant.history for variant in selected.variants}
    for history in scenario.histories:
        fixed = isinstance(history, Logged | Repository | Traced) or (
            isinstance(history, Pulled) and history.repository
        )
        if history.name in used and fixed:
            raise InputError(f"{which}: history {history.name} is the same for every corpus seed: name one")
    words = [step.run for step in (*scenario.actions(), *scenario.tests)]
    words += [word for experiment in scenario.experiments for word in (experiment.prepare, experiment.perform)]
    drawn = any("CORPUS_SEED" in word for word in words)
    scattered = scenario.beside and (scenario.beside.scattered or options.source == "scattered")
    if options.corpus and not (drawn or scattered):
        raise InputError(
            f"{which}: the data of --corpus are the same for every corpus seed, and scenario {scenario.name} draws "
            "nothing by it: name one"
        )


def _fit(options: RunOptions, scenario: Scenario) -> None:
    """Refuse options that this scenario has no use for."""
    which, real = f"scenario {scenario.name}", options.real_disks
    if options.corpus and scenario.histories and not any(isinstance(history, Pulled) for history in scenario.histories):
        raise InputError(f"--corpus: {which} has histories, no corpus", hint="your own history: --log")
    if scenario.tests_at_points and (real or options.disk):
        why = f"{real[0]} cannot be forked" if real else "--disk starts from a disk whose history is over"
        raise InputError(f"{which} measures at points of a history: {why}")
    if scenario.experiments and (options.disk or options.keep_disk or not options.measure):
        raise InputError(
            f"{which} prepares a disk for each of its experiments: there is no single disk to keep or to start from"
        )
    if options.source and not scenario.beside:
        raise InputError(f"--source: {which} has no companion disk: nothing is copied from one")
    if real and scenario.has_power_cuts:
        raise InputError(
            f"{which} cuts the power: {real[0]} is a real disk: only a modelled one, or bare memory, can lose its "
            "power here"
        )
    if options.curve and scenario.tests_at_points:
        raise InputError(f"--curve: {which} always measures its points: leave --curve out")
    if options.curve and scenario.curve is None:
        raise InputError(f"--curve: {which} has no [curve]")


def planned_cells(options: RunOptions) -> list[CellSpec]:
    """Return the cells that options ask for. Raises InputError as ``resolve`` does, and as ``RunRequest.planned``."""
    return resolve(options).planned()
