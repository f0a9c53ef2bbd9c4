"""A study from its files: citation, machine, steps, variants, open questions, tables."""

from collections.abc import Iterator

from agelab.analysis.published import study as published
from agelab.base.types import Figure
from agelab.scenario import selection
from agelab.scenario.scenario import Scenario
from agelab.scenario.step import Action, Cycle, Experiment
from agelab.scenario.unstated import Unstated
from docs.make.generated.markdown import code, plain, script, table

LANGUAGES = {"de": "German", "en": "English", "ru": "Russian", "zh": "Chinese"}


def sections(name: str) -> str:
    """Write the sections of a study's page."""
    scenario = selection.select(name).scenario
    parts = (_cited, _with, _steps, _variants, _open, _published)
    return "\n".join(line for part in parts for line in part(scenario))


def _cited(scenario: Scenario) -> Iterator[str]:
    citation = scenario.citation
    assert citation, "a study's scenario cites it"
    rows = [
        ("title", plain(citation.title)),
        ("by", f"{plain(citation.author)}, {citation.year}, in {LANGUAGES[citation.language]}"),
        ("measured on", plain(citation.measured_on)),
        ("the scenario", plain(scenario.summary)),
    ]
    yield table(["the study", ""], rows)


def _with(scenario: Scenario) -> Iterator[str]:
    yield "## Machine, disk and data\n"
    machine = selection.machine(scenario.machine)
    drives = ", ".join(code(fitted.drive) for fitted in machine.drives)
    rows = [["machine", f"{code(machine.name)}: {plain(machine.summary)}; its drives: {drives}", ""]]
    rows.append(_figure("disk under test, MiB", scenario.disk.mib))
    if scenario.corpus:
        rows.append(_figure(f"data, MiB: corpus {code(scenario.corpus.kind)}", scenario.corpus.mib))
    if scenario.beside:
        rows.append(_figure(f"{scenario.beside.filesystem} beside it, MiB", scenario.beside.mib))
    rows.append(_figure("memory that the first step finds, MiB", scenario.memory.available_mib))
    yield table(["", "at the study's sizes", "origin"], rows)
    for name, scale in scenario.scales.items():
        if scale.note:
            yield f"Scale {code(name)}: {plain(scale.note)}.\n"


def _figure(what: str, figure: Figure) -> list[str]:
    return [what, f"{figure.value:g}", f"{figure.origin}{': ' if figure.note else ''}{plain(figure.note)}"]


def _steps(scenario: Scenario) -> Iterator[str]:
    head = ["step", "times", "command", "origin"]
    if scenario.steps:
        yield "## The steps\n"
        yield table(head, (row for step in scenario.steps for row in _rows(step)))
    if scenario.tests:
        yield "Then, on a fork of the disk and on an unaged control:\n"
        yield table(head, (row for test in scenario.tests for row in _rows(test)))
    if scenario.experiments:
        yield "## The tests, each on a fresh filesystem\n"
        rows = ([code(e.name), script(e.prepare), script(e.perform), _why(e)] for e in scenario.experiments)
        yield table(["test", "prepared by", "command", "origin"], rows)


def _rows(step: Action | Cycle) -> Iterator[list[str]]:
    """Yield a row for a step, or for each of the steps of a cycle."""
    for action in step.cycle if isinstance(step, Cycle) else (step,):
        yield [code(action.name), str(step.repeat), script(action.run), _why(action)]


def _why(step: Action | Experiment) -> str:
    return f"{step.origin}{': ' if step.note else ''}{plain(step.note)}"


def _variants(scenario: Scenario) -> Iterator[str]:
    """Write a row for variants that are alike but for their names, without columns that are empty everywhere."""
    yield "## The variants\n"
    alike: dict[tuple[str, ...], list[str]] = {}
    for variant in scenario.variants:
        shape = (
            code(variant.filesystem),
            ", ".join(variant.layouts),
            code(" ".join(variant.mkfs_options_for(scenario.defaults)))
            if variant.mkfs_options_for(scenario.defaults)
            else "",
            code(",".join(variant.mount_options)) if variant.mount_options else "",
            code(variant.machine) if variant.machine else "",
        )
        alike.setdefault(shape, []).append(code(variant.name))
    rows = [(", ".join(names), *shape) for shape, names in alike.items()]
    heads = ("variants", "filesystem", "layouts", "mkfs", "mount", "machine")
    used = [number for number in range(len(heads)) if any(row[number] for row in rows)]
    yield table([heads[number] for number in used], [[row[number] for number in used] for row in rows])
    yield "The options of the filesystem's own file, in `scenarios/filesystems/`, come on top.\n"


def _open(scenario: Scenario) -> Iterator[str]:
    yield "## Open questions of the study\n"
    yield "\n".join(map(_open_point, scenario.unstated)) + "\n"


def _open_point(point: Unstated) -> str:
    other = f" ({code(f'--instead {point.name}')}: {plain(point.called)})" if point.name else ""
    return f"- {plain(point.says)}{other}"


def _published(scenario: Scenario) -> Iterator[str]:
    study = published.read_study(scenario.name)
    yield "## Published tables and claims\n"
    rows = ([plain(use.id), plain(use.about), str(len(study.figures.of(use.id)))] for use in study.claims.tables)
    yield table(["table", "about", "figures here"], rows)
    file = code(f"scenarios/published/{scenario.name}.claims.toml")
    yield f"Its {len(study.claims.claims)} claims, each with its test, are in {file}; `agelab replicate` judges them.\n"
