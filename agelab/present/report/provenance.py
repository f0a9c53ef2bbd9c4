"""What was run, how to repeat it, the doubts, and the origin of every number."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from agelab.analysis.cells import RunSet
from agelab.base.errors import InputError, name_some
from agelab.base.gathered import gathered
from agelab.data.history.report import HistoryReport as History
from agelab.data.history.report import report_lines
from agelab.present.report.blocks import Block, Command, Facts, Prose
from agelab.present.report.command import repeat_command
from agelab.present.report.tables import list_outliers
from agelab.results.rows import GOING, origins
from agelab.scenario import selection
from agelab.scenario.scenario import Scenario
from agelab.scenario.seeds import seeds_text

MAX_PLACES = 3
"""Places listed for one reason why something was not measured."""


def read_scenario(group: RunSet) -> Scenario | None:
    """Read the scenario's file; return None if it is not one of ours or unreadable."""
    with suppress(InputError):
        return selection.select(group.plan.scenario).scenario
    return None


def run_facts(group: RunSet) -> Iterator[Block]:
    """Return what was run, as facts and prose, and the commands."""
    plan, scenario = group.plan, read_scenario(group)
    cells = [entry.cell for _, entry in group.cells]
    statuses = [entry.status for _, entry in group.cells]
    summary = _summary(scenario, plan.scale) if scenario else ""
    rows = [("scenario", plan.scenario + (f": {summary}" if summary else ""))]
    if scenario and (cited := scenario.citation):
        rows.append(("after", f"{cited.author}, “{cited.title}”, {cited.year}; measured on {cited.measured_on}"))
    plans = [run.plan for run in group.runs]
    kernels = (str(plan.kernel or plan.provenance.get("kernel", "not stated")) for plan in plans)
    note = scenario.scales[plan.scale].note if scenario and plan.scale in scenario.scales else ""
    counts = (f"{statuses.count(status)} {status}" for status in dict.fromkeys(statuses))
    rows += [
        ("scale", f"{plan.scale}: {note}" if note else plan.scale),
        ("clock", f"{plan.clock}{', EMULATED: such times are no machine’s' if plan.emulated else ''}"),
        ("time", str(plan.provenance.get("model", "not stated"))),
        ("filesystems", ", ".join(subject.name for subject in group.groups) or "none"),
        ("kernel", "; ".join(dict.fromkeys(kernels))),
        ("machine", ", ".join(dict.fromkeys(cell.machine for cell in cells)) or "none"),
        ("drives", ", ".join(dict.fromkeys(drive for cell in cells for drive in cell.drives)) or "none"),
        ("defaults", ", ".join(dict.fromkeys(cell.defaults for cell in cells)) or "none"),
        ("run seeds", _numbers({seeds.run for seeds in group.seeds})),
        ("corpus seeds", _numbers({seeds.corpus for seeds in group.seeds})),
        ("cells", ", ".join(counts) or "none"),
    ]
    if reused := "; ".join(origins(entry.end for _, entry in group.cells)):
        rows.append(("reused", f"not run again, since their keys were known: {reused}"))
    yield Facts(tuple(rows))
    commands = gathered((repeat_command(plan), plan.run) for plan in plans)
    for text, names in commands.items():
        if text:
            yield Command(f"Run it again ({', '.join(names)}), from a clone of agelab:", text)
        else:
            yield Prose((f"{', '.join(names)}: the run does not say by which command it was made.",))
    packed = "\n".join(f"agelab capsule pack {loaded.plan.run}" for loaded in group.runs)
    yield Command("Hand it on, to be replayed elsewhere and held against this:", packed)
    yield Prose(("In the virtual clock the same inputs_key gives the same digest, to the last digit, on any host.",))
    for name, report in plan.histories.items():
        with suppress(ValueError):
            yield Prose(tuple(report_lines(History.model_validate(report))), True, f"History {name}")
    if scenario and scenario.tests:
        yield Facts(tuple((f"test {test.name}", " ".join(test.run.split())) for test in scenario.tests))


def _numbers(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers))) or "none"


def _summary(scenario: Scenario, scale: str) -> str:
    """Return the scenario's summary with repetitions at its scale."""
    divided = next((settings.history for name, settings in scenario.scales.items() if name == scale), 1)
    fewer = f" (at scale {scale} the repetitions are divided by {divided})" if divided > 1 else ""
    return scenario.summary + fewer


def varied(group: RunSet) -> str:
    """Say in one sentence what was varied, and what was not: over that spread, intervals and p are."""
    corpora, runs = ({getattr(seeds, of) for seeds in group.seeds} for of in ("corpus", "run"))
    same = "; the same seeds give the same digits" if group.plan.clock == "virtual" else ""
    if len(group.seeds) < 2:
        return f"Nothing was varied: one run seed, one corpus{same}."
    if len(corpora) < 2:
        return (
            f"Varied: {len(runs)} run seeds (what should not matter); not varied: the corpus (which files there are, "
            f"which are deleted){same}."
        )
    if len(runs) < 2:
        return (
            f"Varied: {len(corpora)} corpora (which files there are, which are deleted); not varied: the run seed"
            f"{same}."
        )
    return (
        f"Varied: {len(corpora)} corpora (which files there are, which are deleted) and {len(runs)} run seeds (what "
        f"should not matter); not varied: the kind of data, the machine and the drives{same}."
    )


def main_doubts(group: RunSet) -> Iterator[str]:
    """Return the doubts that must be read with the answer."""
    plan = group.plan
    if group.apart:
        yield f"In no table with other runs of this question: {group.apart}."
    if plan.emulated:
        yield "EMULATED: real time of an emulated processor; such times belong to no real machine."
    elif plan.clock == "virtual":
        yield (
            "A model: guest time counts instructions, and modelled drives follow their data sheets. "
            "Its times belong to no real machine."
        )
    if plan.clock == "wall":
        why = group.host.unknown
        yield "Real time: " + (
            f"{'; '.join(why)}."
            if why
            else "no difference is named that this host shows by chance, the same thing run twice."
        )
    without = {subject.name: subject.unhonoured for subject in group.groups if subject.unhonoured}
    yield from (f"{name}: {reason}." for name, reason in without.items())
    yield varied(group)
    if plan.scale != "paper":
        yield f"Scale {plan.scale}: sizes are not the study's."
    if going := [run.plan.run for run in group.runs if run.running]:
        yield f"Still going on, and shown as far as it is: {', '.join(going)}."
    bad = [entry for _, entry in group.cells if entry.status not in ("ok", *GOING)]
    for subject, entry in group.cells:
        if entry.end and entry.end.disputes:
            yield (
                f"{subject.name}, {seeds_text([entry.seeds], group.seeds)}: its digest {entry.end.digest} is not "
                f"{entry.end.disputes}, which an earlier cell of the same key has: one of them is wrong."
            )
    if bad:
        yield f"{len(bad)} of {len(group.cells)} cells did not end ok: “Doubts” below has their reasons."


def all_doubts(group: RunSet) -> Iterator[Block]:
    """Return all reasons to doubt a number."""
    yield Prose(tuple(main_doubts(group)), listed=True)
    failed = [
        f"{subject.name}, {seeds_text([entry.seeds])}: {' '.join(entry.ended.split())}"
        for subject, entry in group.cells
        if not entry.ok
    ]
    outliers = "Times that lie far from their other seeds' (Grubbs' test, 5 %); they are in every figure"
    unstated = dict.fromkeys(line for run in group.runs for line in run.plan.unstated)
    doubts = {
        "Cells that are left out": failed,
        "Cells that are there more than once": _repeated_cells(group),
        outliers: list_outliers(group),
        "The study leaves open, or is not reproduced": unstated,
        "Not measured": _not_measured(group),
        "Says less than its name": _caveats(group),
    }
    for title, reasons in doubts.items():
        if lines := tuple(reasons):
            yield Prose(lines, True, title)


def _repeated_cells(group: RunSet) -> Iterator[str]:
    """Report cells with the same seeds, of which the first counts."""
    for subject in group.groups:
        for at, first in subject.counted.items():
            same = [entry for entry in subject.results if entry.seeds == at and entry.ok]
            digests = {entry.end.digest for entry in same if entry.end}
            if len(same) > 1:
                alike = len(digests) == 1
                remark = "with the same digest" if alike else "with another digest: their inputs differ"
                yield f"{subject.name}, {seeds_text([at])}: in {len(same)} cells, {remark}; that of {first.run} counts"


def _not_measured(group: RunSet) -> Iterator[str]:
    """Return each reason why something was not measured, with its places."""
    reasons: dict[str, dict[str, None]] = {}
    for subject in group.groups:
        for (step, _, metric), series in subject.series.items():
            for _, why in series.missing:
                reasons.setdefault(why, {})[f"{subject.name} {step} {metric}"] = None
    for why, places in reasons.items():
        yield f"{' '.join(why.split())}: {name_some(list(places), MAX_PLACES)}"


def _caveats(group: RunSet) -> Iterator[str]:
    """Return each reason why values say less than their names, with its places."""
    reasons: dict[str, dict[str, None]] = {}
    for subject in group.groups:
        for (step, _, metric), series in subject.series.items():
            if series.caveat and series.numbers and series.caveat != subject.unhonoured:
                reasons.setdefault(series.caveat, {})[f"{subject.name} {step} {metric}"] = None
    for why, places in reasons.items():
        yield f"{why}: {name_some(list(places), MAX_PLACES)}"


def all_provenance(group: RunSet) -> Iterator[Block]:
    for loaded in group.runs:
        rows = [("run", loaded.plan.run), *((str(k), str(v)) for k, v in loaded.plan.provenance.items())]
        yield Facts(tuple(rows))
