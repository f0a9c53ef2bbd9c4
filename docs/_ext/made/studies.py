"""A study as its files have it: who measured what on which machine, what is run for it, what it leaves open."""

from collections.abc import Iterator

from agelab.model.figure import Figure
from agelab.model.scenario import Scenario
from agelab.model.step import Action, Cycle, Experiment
from agelab.published import study as published
from agelab.published.claims import Claim
from agelab.scenario import selection
from made.markdown import code, plain, script, table

LANGUAGES = {"de": "German", "en": "English", "ru": "Russian", "zh": "Chinese"}


def page(name: str) -> str:
    """All of it, in sections."""
    scenario = selection.select(name).scenario
    parts = (_cited, _with, _steps, _variants, _open, _published)
    return "\n".join(line for part in parts for line in part(scenario))


def _cited(scenario: Scenario) -> Iterator[str]:
    said = scenario.citation
    rows = [
        ("title", plain(said.title)),
        ("by", f"{plain(said.author)}, {said.year}, in {LANGUAGES[said.language]}"),
        ("measured on", plain(said.measured_on)),
        ("what is done", plain(scenario.summary)),
    ]
    yield table(["the study", ""], rows)


def _with(scenario: Scenario) -> Iterator[str]:
    yield "## What it is run with\n"
    machine = selection.machine(scenario.machine)
    drives = ", ".join(code(one.drive) for one in machine.drives)
    rows = [["machine", f"{code(machine.name)}: {plain(machine.summary)}; its drives: {drives}", ""]]
    rows.append(_figure("disk under test, MiB", scenario.disk.mib))
    if scenario.corpus:
        rows.append(_figure(f"data, MiB: corpus {code(scenario.corpus.kind)}", scenario.corpus.mib))
    if scenario.beside:
        rows.append(_figure(f"{scenario.beside.filesystem} beside it, MiB", scenario.beside.mib))
    rows.append(_figure("memory that the first step finds, MiB", scenario.memory.available_mib))
    yield table(["", "at the study's sizes", "where the figure comes from"], rows)
    for name, scale in scenario.scales.items():
        if scale.note:
            yield f"Scale {code(name)}: {plain(scale.note)}.\n"


def _figure(what: str, figure: Figure) -> list[str]:
    return [what, f"{figure.value:g}", f"{figure.origin}{': ' if figure.note else ''}{plain(figure.note)}"]


def _steps(scenario: Scenario) -> Iterator[str]:
    head = ["step", "times", "command", "where it comes from"]
    if scenario.steps:
        yield "## The steps\n"
        yield table(head, (row for step in scenario.steps for row in _rows(step)))
    if scenario.tests:
        yield "Then, on a fork of the disk and on an unaged control:\n"
        yield table(head, (row for test in scenario.tests for row in _rows(test)))
    if scenario.experiments:
        yield "## The tests, each on a fresh filesystem\n"
        rows = ([code(e.name), script(e.prepare), script(e.perform), _why(e)] for e in scenario.experiments)
        yield table(["test", "prepared by", "command", "where it comes from"], rows)


def _rows(step: Action | Cycle) -> Iterator[list[str]]:
    """One for a step, or one for each that are repeated together."""
    for one in step.cycle if isinstance(step, Cycle) else (step,):
        yield [code(one.name), str(step.repeat), script(one.run), _why(one)]


def _why(one: Action | Experiment) -> str:
    return f"{one.origin}{': ' if one.note else ''}{plain(one.note)}"


def _variants(scenario: Scenario) -> Iterator[str]:
    yield "## The variants\n"
    rows = (
        [
            code(one.name),
            code(one.filesystem),
            ", ".join(one.layouts),
            code(" ".join(one.mkfs_options_for(scenario.defaults)))
            if one.mkfs_options_for(scenario.defaults)
            else "",
            code(",".join(one.mount_options)) if one.mount_options else "",
            code(one.machine) if one.machine else "",
        ]
        for one in scenario.variants
    )
    yield table(["variant", "filesystem", "layouts", "mkfs", "mount", "machine"], rows)
    yield "Beside these options stand those of the filesystem's own file, in `scenarios/filesystems/`.\n"


def _open(scenario: Scenario) -> Iterator[str]:
    yield "## What the study leaves open\n"
    yield "\n".join(f"- {plain(line)}" for line in scenario.unstated) + "\n"


def _published(scenario: Scenario) -> Iterator[str]:
    study = published.read_study(scenario.name)
    yield "## What it published\n"
    rows = (
        [plain(use.id), plain(use.about), str(len(study.figures.of(use.id)))] for use in study.claims.tables
    )
    yield table(["table", "about", "figures that we have"], rows)
    yield "What it says of them, in our words:\n"
    rows = ([code(claim.id), plain(claim.says), plain(_untested(claim))] for claim in study.claims.claims)
    yield table(["claim", "", "why it cannot be tested, or not on every kernel"], rows)


def _untested(claim: Claim) -> str:
    gone = claim.gone
    return claim.untestable or (f"gone since Linux {gone.since}: {gone.why}" if gone else "")
