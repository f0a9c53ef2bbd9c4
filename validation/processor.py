"""The studies' processor times beside ours: the independent test of what an instruction costs.

Takes finished runs of the virtual clock of studies that print processor time, of any scale and as many run seeds as
one likes. Nothing in a machine's file is made of these figures (validation/machines.py): they are compared and stated.

Seconds: theirs are elapsed times the percent of it that the processor was busy, divided by the scale's shrink, since a
step moves so many times fewer bytes and files; ours are user and system time without what copying took in place of a
drive's DMA (``copy_stolen``), the median over run seeds. Printed are, for each step, the geometric mean of ours over
theirs and the median absolute error. Left out, and counted, is what ticks of 10 ms cannot tell, and what does not
shrink evenly: directories without an index, whose time grows with the square of their files.

Percents: where a study prints a share of the processor alone, it stands beside ours. They are the table
``processor`` of docs/validation.md and its figure.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, median

from agelab.analysis.cells import RunResult
from agelab.analysis.published.run_columns import RunColumn
from agelab.analysis.published.study import Study, study_of_scenario
from agelab.analysis.published.values import PERCENTAGES, OurValues
from agelab.base.errors import InputError
from agelab.cli.replicate import loaded
from agelab.results.run_directory import RunDirectory
from agelab.scenario import selection
from docs.make.catalogue import Made, Table
from docs.make.page import grid
from validation import figures

FIGURE = Path("processor.svg")
SHORTEST = 0.1
"""Seconds of the study's processor time, at our scale: ten ticks."""
NEAR = 25
"""Percent: the error below which pairs are counted."""
BUSY = "cpu_percent"
KINDS = {
    "processes": ("touch", "mkdir"),
    "names": ("find-files", "remove-files", "find-directories", "remove-directories", "remove-tree"),
    "small files": ("untar", "tar", "copy-tree"),
    "pieces": ("split-1000", "split-1024", "split-2048", "split-4096", "split-8192"),
    "large files": ("copy-from-other", "copy-to-other", "copy-10", "create-1g", "copy-1g", "cat-1g"),
}
"""What a step's processor time goes into, most of it, by its commands alone."""
WITHOUT_INDEX = ("ext2", "ext3")
"""Variants whose directories have no index in the studies' days."""
MANY_IN_ONE = (
    *("touch", "find-files", "remove-files", "mkdir", "find-directories", "remove-directories"),
    *KINDS["pieces"],
)
"""Steps with so many names in one directory that such a variant searches it for most of its time."""


@dataclass(frozen=True)
class Pair:
    """One step on one filesystem: processor seconds of the study, at our scale, and ours."""

    table: str
    variant: str
    step: str
    theirs: float
    ours: float
    left_out: str = ""
    """Why it is in no median."""

    @property
    def ratio(self) -> float:
        """Ours over theirs."""
        return self.ours / self.theirs

    @property
    def error(self) -> float:
        """Percent of theirs."""
        return abs(self.ratio - 1) * 100


@dataclass(frozen=True)
class Share:
    """One share of the processor: percent of the elapsed time, of the study and ours."""

    table: str
    variant: str
    step: str
    metric: str
    theirs: float
    ours: float | None
    why: str


def step_pairs(study: Study, runs: Sequence[RunResult]) -> list[Pair]:
    """Compare each step of which the study prints seconds and the busy percent of them."""
    scales = {str(name): scale for name, scale in selection.select(study.name).scenario.scales.items()}
    shrink = scales[runs[0].plan.scale].shrink
    ours = _seconds(runs)
    compared = []
    printed = study.figures.by_place
    for (name, variant, layout, step, metric), figure in printed.items():
        elapsed = printed.get((name, variant, layout, step, "elapsed"))
        seconds = ours.get((variant, layout, step))
        if metric != BUSY or not elapsed or name == "mkfs" or seconds is None:
            continue
        theirs = float(figure.exact * elapsed.exact / 100 / shrink)
        compared.append(Pair(name, variant, step, theirs, seconds, _left_out(study, variant, step, theirs, shrink)))
    return compared


def _left_out(study: Study, variant: str, step: str, theirs: float, shrink: int) -> str:
    if mark := study.claims.why_uncounted(step, BUSY):
        return mark.kind
    # By theirs alone: by ours, too, the steps that come out much too short would be left out.
    if theirs < SHORTEST:
        return "short"
    if shrink > 1 and variant in WITHOUT_INDEX and step in MANY_IN_ONE:
        return "square"
    return ""


def _seconds(runs: Sequence[RunResult]) -> dict[tuple[str, str, str], float]:
    """Return our processor seconds by variant, layout and step: the median over run seeds."""
    by_place: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for run in runs:
        for cell in run.cells:
            if not cell.ok:
                continue
            values = {(sample.step, sample.metric): sample.value for sample in cell.samples}
            for step in {sample.step for sample in cell.samples}:
                used = [values.get((step, metric)) for metric in ("cpu_user", "cpu_system")]
                if None not in used:
                    stolen = values.get((step, "copy_stolen")) or 0
                    busy = sum(float(seconds or 0) for seconds in used) - float(stolen)
                    by_place[cell.cell.variant, cell.cell.layout, step].append(busy)
    return {place: median(values) for place, values in by_place.items()}


def printed_shares(study: Study, column: RunColumn) -> list[Share]:
    """Compare each share of the processor of which the study prints no seconds, on the variants that ran."""
    values = OurValues(study.figures, study.claims, column)
    ran = {cell.cell.variant for run in column.runs for cell in run.cells}
    compared = []
    for place, figure in study.figures.by_place.items():
        name, variant, _, step, metric = place
        if metric not in PERCENTAGES or metric == BUSY or variant not in ran:
            continue
        value = values.value(place)
        compared.append(
            Share(
                name,
                variant,
                step,
                metric,
                float(figure.exact),
                float(value.median) if value.values else None,
                "" if value.values else value.why_missing,
            )
        )
    return compared


def counted(pairs: Iterable[Pair]) -> list[Pair]:
    """Return those that are in the medians."""
    return [pair for pair in pairs if not pair.left_out]


def _figures(pairs: Sequence[Pair]) -> list[str]:
    """Return how many, the geometric mean of the ratios, their range and the median absolute error."""
    ratios = [pair.ratio for pair in pairs]
    if not ratios:
        return ["0", "-", "-", "-"]
    return [
        str(len(pairs)),
        f"{geometric_mean(ratios):.2f}",
        f"{min(ratios):.2f} to {max(ratios):.2f}",
        f"{median(pair.error for pair in pairs):.0f} %",
    ]


HEAD = ("step", "mostly", "pairs", "ours / theirs", "range", "median error", "left out")


def rows(pairs: Sequence[Pair]) -> Iterator[list[str]]:
    """Yield a row for each step, each kind of step, each table of the study, and all."""
    kind_of = {step: kind for kind, steps in KINDS.items() for step in steps}
    for step in dict.fromkeys(pair.step for pair in pairs):
        yield _row(step, kind_of.get(step, "-"), [pair for pair in pairs if pair.step == step])
    for kind in KINDS:
        yield _row("all of a kind", kind, [pair for pair in pairs if kind_of.get(pair.step) == kind])
    for name in dict.fromkeys(pair.table for pair in pairs):
        yield _row(f"all of table {name}", "", [pair for pair in pairs if pair.table == name])
    yield _row("all", "", pairs)


def _row(name: str, kind: str, some: Sequence[Pair]) -> list[str]:
    reasons = [pair.left_out for pair in some if pair.left_out]
    left_out = ", ".join(f"{reasons.count(why)} {why}" for why in dict.fromkeys(reasons))
    return [name, kind, *_figures(counted(some)), left_out]


def verdict(pairs: Sequence[Pair]) -> str:
    """Say how far off all pairs that count are, and how near they could be."""
    some = counted(pairs)
    if not some:
        return "Nothing can be compared."
    error = median(pair.error for pair in some)
    near = sum(pair.error < NEAR for pair in some)
    ratio = geometric_mean(pair.ratio for pair in some)
    return (
        f"Median absolute error {error:.0f} %; {near} of {len(some)} pairs are within {NEAR} %; "
        f"ours are {ratio:.2f} times theirs in the geometric mean.{between_tables(pairs)}"
    )


def between_tables(pairs: Sequence[Pair]) -> str:
    """Say how far a study's tables of one machine differ from each other: no one processor is nearer to both."""
    by_step: dict[tuple[str, str], list[float]] = defaultdict(list)
    for pair in counted(pairs):
        by_step[pair.variant, pair.step].append(pair.theirs)
    apart = [abs(last / first - 1) * 100 for first, last in (some for some in by_step.values() if len(some) == 2)]
    if not apart:
        return ""
    return (
        f"\nThe study's own two tables differ from each other by {median(apart):.0f} % in the median of {len(apart)} "
        "steps: the goal is to be no farther off."
    )


def share_rows(shares: Sequence[Share]) -> Iterator[list[str]]:
    """Yield a row for each share."""
    for share in shares:
        ours = share.why if share.ours is None else f"{share.ours:.0f} %"
        yield [share.variant, share.step, share.metric, f"{share.theirs:.0f} %", ours]


SHARE_HEAD = ("variant", "step", "metric", "theirs", "ours")


def page(study: str, pairs: Sequence[Pair], beside: Sequence[Share], runs: Sequence[RunResult]) -> Iterator[str]:
    """Yield the lines of a study in the document."""
    machines = ", ".join(dict.fromkeys(f"`{cell.cell.machine}`" for run in runs for cell in run.cells))
    seeds = len({cell.cell.seed for run in runs for cell in run.cells})
    yield f"**{study}**, scale {runs[0].plan.scale}, machine {machines}, {seeds} run seed{'s' * (seeds > 1)}."
    yield ""
    if pairs:
        yield verdict(pairs)
        yield ""
        yield from grid(HEAD, rows(pairs), ["---", "---", *["---:"] * 4, "---"])
        yield ""
    if beside:
        yield from grid(SHARE_HEAD, share_rows(beside), ["---", "---", "---", "---:", "---:"])
        yield ""


def by_study(runs: Iterable[RunResult]) -> Mapping[str, list[RunResult]]:
    """Sort runs by the study they follow. Raises InputError for runs of two scales, or of the wall clock."""
    grouped: dict[str, list[RunResult]] = defaultdict(list)
    for run in runs:
        if run.plan.clock != "virtual":
            raise InputError(f"{run.name} is of the wall clock: its processor is this host's")
        grouped[study_of_scenario(run.plan.scenario).name].append(run)
    for name, some in grouped.items():
        scales = {run.plan.scale for run in some}
        if len(scales) > 1:
            raise InputError(f"the runs of {name} are of several scales ({', '.join(sorted(scales))}): give one")
    return grouped


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Make the tables of all studies, and one figure."""
    text: list[str] = []
    drawn: list[Pair] = []
    for name, some in by_study(map(loaded, runs)).items():
        study = study_of_scenario(name)
        pairs, beside = step_pairs(study, some), printed_shares(study, RunColumn(tuple(some)))
        text += page(name, pairs, beside, some)
        drawn += counted(pairs)
    return Made("\n".join(text), {FIGURE: figures.processor(drawn, KINDS).encode()})
