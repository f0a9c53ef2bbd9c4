"""Make a request of options: read the scenario or the control file, and check the options against it."""

from dataclasses import replace
from pathlib import Path

from agelab.analysis.decision import parse_question
from agelab.base import readers
from agelab.base.errors import InputError, unknown
from agelab.base.types import ScaleName
from agelab.kernel import canonical
from agelab.runner.plan.cell_drive import MODEL_NONE
from agelab.runner.request.options import RunOptions
from agelab.runner.request.run_request import RunRequest
from agelab.scenario import control_file, selection
from agelab.scenario.control_file import ControlFile
from agelab.scenario.history import Logged, Pulled, Repository, Traced
from agelab.scenario.scenario import Scenario
from agelab.scenario.selection import Selection


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
    scenario = options.power_cut.applied_to(scenario) if options.power_cut else scenario
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
    return RunRequest(
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


def _pulled_from(options: RunOptions, selected: Selection) -> tuple[Selection, str | None]:
    """Return the scenario whose histories pull from --corpus, if it has such, and else that corpus."""
    scenario = selected.scenario
    if not options.corpus or not any(isinstance(one, Pulled) for one in scenario.histories):
        return selected, options.corpus
    histories = tuple(
        one.model_copy(update={"repository": options.corpus}) if isinstance(one, Pulled) else one
        for one in scenario.histories
    )
    return replace(selected, scenario=scenario.model_copy(update={"histories": histories})), None


def _readers(options: RunOptions) -> int:
    """Return who may read the user's own scenario file, or control file with the scripts beside it."""
    if options.control is not None:
        control = Path(options.control)
        return (
            readers.of_files(control, *control.parent.glob("*.sh")) if control.exists() else readers.EVERYBODY
        )
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
            raise InputError(f"{which}: history {history.name} is the same with each: name one")
    words = [one.run for one in (*scenario.actions(), *scenario.tests)]
    words += [word for one in scenario.experiments for word in (one.prepare, one.perform)]
    drawn = any("CORPUS_SEED" in word for word in words)
    scattered = scenario.beside and (scenario.beside.scattered or options.source == "scattered")
    if options.corpus and not (drawn or scattered):
        raise InputError(
            f"{which}: the data of --corpus are the same with each, and nothing in scenario {scenario.name} is drawn "
            "by it: name one"
        )


def _fit(options: RunOptions, scenario: Scenario) -> None:
    """Refuse options that this scenario has no use for."""
    which, real = f"scenario {scenario.name}", options.real_disks
    if (
        options.corpus
        and scenario.histories
        and not any(isinstance(one, Pulled) for one in scenario.histories)
    ):
        raise InputError(f"--corpus: {which} has histories, no corpus", hint="your own history: --log")
    if scenario.tests_at_points and (real or options.disk):
        why = f"{real[0]} cannot be forked" if real else "--disk starts from a disk whose history is over"
        raise InputError(f"{which} measures on the way of a history: {why}")
    if scenario.experiments and (options.disk or options.keep_disk or not options.measure):
        raise InputError(
            f"{which} prepares a disk for each of its experiments: it has no one disk to keep or to start from"
        )
    if options.source and not scenario.beside:
        raise InputError(f"--source: {which} has no companion disk: nothing is copied from one")
    if real and scenario.has_power_cuts:
        raise InputError(
            f"{which} cuts the power: {real[0]} is a real disk: only a modelled one, or bare memory, can lose its "
            "power here"
        )
    if options.curve and scenario.tests_at_points:
        raise InputError(f"--curve: {which} is measured at its points always: leave --curve out")
    if options.curve and scenario.curve is None:
        raise InputError(f"--curve: {which} has no [curve]")
