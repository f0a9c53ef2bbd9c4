"""Charts of a group of runs: times, aging, curves, and the breakdown of time."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from agelab.analysis.cells import RunSet, SeedGroup
from agelab.analysis.judge import Ranked
from agelab.present.report import drawing
from agelab.present.report.blocks import Chart, Charts, Mark
from agelab.present.report.drawing import Bar, ChartLine
from agelab.present.report.numbers import text, unit_name
from agelab.results.cell_samples import Place
from agelab.results.measure import own_steps
from agelab.scenario.metrics import METRICS
from agelab.scenario.step import AGED, CONTROL, StepId
from agelab.stats.formatting import unit_scale
from agelab.stats.series import Series, Summary


def aged_and_control(step: str) -> tuple[str, str]:
    """Return the steps of a test on the aged disk and on its control."""
    test = StepId.parse(step)
    return str(test.on(AGED)), str(test.on(CONTROL))


def traced_steps(group: RunSet) -> list[str]:
    """Return the steps run under strace."""
    traced = (step for step, _, metric in group.places if metric == "syscall_seconds")
    return list(dict.fromkeys(StepId.parse(step).group for step in traced))


def repeated_steps(group: RunSet) -> list[str]:
    """Return the steps with at least three repetitions, which are drawn as a curve."""
    most: dict[str, int] = {}
    for step, repetition, metric in group.places:
        if metric == "elapsed" and not StepId.parse(step).within:
            most[step] = max(repetition, most.get(step, 0))
    return [step for step, number in most.items() if number > 2]


MAX_CHARTS = 40
"""Maximum number of charts of one kind; a control file with hundreds of tests has the rest in the table of results."""


@dataclass(frozen=True)
class TimeSplit:
    """The parts of a step's time."""

    title: str
    note: str
    parts: tuple[tuple[str, str], ...]
    """Metric and name of each."""


PROCESSOR = TimeSplit(
    "Processor time of each step",
    "In ticks of 10 ms: of a short step little is known.",
    (("cpu_user", "user"), ("cpu_system", "system"), ("cpu_iowait", "waiting for a disk"), ("cpu_idle", "idle")),
)
DRIVE = TimeSplit(
    "Drive time of each step, by cause",
    "The drive's own time, of modelled drives alone. A write cache works on after its step has ended.",
    (
        ("busy_overhead", "commands"),
        ("busy_seek", "moving the arm"),
        ("busy_rotation", "waiting for the sector"),
        ("busy_transfer", "moving data"),
    ),
)
AGED_COLOUR, FIRST_COLOUR = 1, 7
Rows = Sequence[tuple[str, Series | None, int]]
"""Bars: the name, what was measured, and the number of the colour."""
WHISKERS = "A bar is the median over the seeds; the thin line is the interval that holds it (docs/chance.md)."


def time_charts(group: RunSet) -> Iterator[Charts]:
    steps = own_steps(group.places)
    rows: dict[str, Rows] = {}
    for step in steps[:MAX_CHARTS]:
        bars = [(subject.name, subject.steps.get((step, "elapsed")), 0) for subject in group.groups]
        rows[next(series.title for _, series, _ in bars if series)] = bars
    if charts := _charts(group, "s", rows):
        yield Charts("Time of each step", tuple(charts), note=_left_out(len(steps), WHISKERS))


def slowdown_charts(group: RunSet, places: Sequence[Place]) -> Iterator[Charts]:
    """Draw the slowdown of each test, and below it the times it is computed from."""
    slowdowns: dict[str, Rows] = {}
    times: dict[str, Rows] = {}
    for place in places[:MAX_CHARTS]:
        step, repetition, _ = place
        title = step if repetition == 1 else f"{step}, point {repetition}"
        slowdowns[title] = [(subject.name, subject.series.get(place), AGED_COLOUR) for subject in group.groups]
        times[title] = [
            (subject.name, subject.series.get((side, repetition, "elapsed")), colour)
            for subject in group.groups
            for side, colour in zip(aged_and_control(step), (AGED_COLOUR, 0), strict=True)
        ]
    if charts := _charts(group, "times the unaged disk's", slowdowns, base=1):
        note = f"1, the dashed line: no slower than a disk without a history. {WHISKERS}"
        title = "Slowdown: time on the aged disk / time on the unaged one"
        yield Charts(title, tuple(charts), note=_left_out(len(places), note))
    if charts := _charts(group, "s", times):
        legend = (Mark("aged", AGED_COLOUR), Mark("unaged control", 0))
        yield Charts("The two times of each test", tuple(charts), legend)


def sort_subjects(title: str, order: Ranked, group: RunSet, *, unit: str = "1", base: float | None = None) -> Chart:
    """Return the subjects in order of the first colour's values; those without a value come last."""
    shown = [
        _summary_bar(subject.name, summary, unit, FIRST_COLOUR if at == 0 else AGED_COLOUR)
        for at, (subject, summary) in enumerate(order.order)
    ]
    known = {subject.name for subject, _ in order.order}
    for subject in group.groups:
        if subject.name not in known:
            status = "not measured" if subject.counted else subject.results[0].status
            shown.append(Bar(subject.name, None, status, kind=AGED_COLOUR))
    words = "; ".join(f"{bar.name} {bar.shown}" for bar in shown)
    axis = "times the unaged disk's" if base else unit_name(unit)
    return Chart(title, f"{title}: {words}", partial(drawing.bars, shown, axis, base=base, side_by_side=False))


def _charts(group: RunSet, unit: str, rows: Mapping[str, Rows], base: float | None = None) -> list[Chart]:
    """Draw a chart of the subjects under each title; of one subject alone one chart, with a bar for each title."""
    if len(group.groups) == 1:
        alone = [(title, series, kind) for title, bars in rows.items() for _, series, kind in bars]
        return _bars(group.groups[0].name, unit, alone, base)
    return [chart for title, bars in rows.items() for chart in _bars(title, unit, bars, base)]


def _bars(title: str, unit: str, bars: Rows, base: float | None = None) -> list[Chart]:
    """Draw a chart of medians, or nothing if nothing was measured."""
    shown = [_bar(name, series, kind) for name, series, kind in bars if series is not None]
    if not any(bar.value is not None for bar in shown):
        return []
    words = "; ".join(f"{bar.name} {bar.shown}" for bar in shown)
    return [Chart(title, f"{title}, {unit}: {words}", partial(drawing.bars, shown, unit, base=base))]


def _bar(name: str, series: Series, kind: int) -> Bar:
    if series.summary is None:
        return Bar(name, None, "not measured", kind=kind)
    return _summary_bar(name, series.summary, series.unit, kind)


def _summary_bar(name: str, summary: Summary, unit: str, kind: int) -> Bar:
    divisor = unit_scale(unit).divisor
    value = float(summary.median / divisor)
    if summary.n == 1 or not summary.spread:
        return Bar(name, value, text(summary, unit), kind=kind)
    low, high = (float(end / divisor) for end in (summary.interval.low, summary.interval.high))
    return Bar(name, value, text(summary, unit), low, high, kind)


def _left_out(number: int, note: str) -> str:
    left = number - MAX_CHARTS
    return f"{note} {left} more are in the table of all results." if left > 0 else note


def history_charts(group: RunSet) -> Iterator[Charts]:
    """Draw the course over a history: throughput by repetition, layout scores and slowdowns by point."""
    curves: list[tuple[str, str, str]] = []
    for step in repeated_steps(group):
        measured = {metric for at, _, metric in group.places if at == step}
        curves.append((step, "throughput" if "throughput" in measured else "elapsed", "repetition"))
    points = [at for at in group.places if at[1] > 1 and at[2] in ("layout_score", "slowdown")]
    curves += dict.fromkeys((step, metric, "point of the history") for step, _, metric in points)
    charts = []
    for step, metric, axis in curves[:MAX_CHARTS]:
        unit = METRICS[metric].unit
        lines = [_line(number, subject, step, metric) for number, subject in enumerate(group.groups)]
        known = [line for line in lines if any(y is not None for _, y in line.points)]
        if not known:
            continue
        title = f"{_named(step)}: {metric.replace('_', ' ')}"
        ends = "; ".join(f"{line.name} from {_end(line, 0)} to {_end(line, -1)}" for line in known)
        name = unit_name(unit)
        drawn = partial(drawing.lines, known, axis, name, shares=metric == "layout_score")
        charts.append(Chart(title, f"{title}{name and f', {name}'}, by {axis}: {ends}", drawn))
    if charts:
        legend = [
            Mark(subject.name, *line_style(number)) for number, subject in enumerate(group.groups) if subject.counted
        ]
        yield Charts("Over the history", tuple(charts), tuple(legend), "Medians over run seeds.")


def _named(step: str) -> str:
    step_id = StepId.parse(step)
    return step_id.group if step_id.is_map else step


def line_style(number: int) -> tuple[int, int]:
    """Return colour and dash of the line with that number."""
    return number % drawing.COLOURS, number // drawing.COLOURS


def _line(number: int, subject: SeedGroup, step: str, metric: str) -> ChartLine:
    points = []
    for place, series in subject.series.items():
        if (place[0], place[2]) == (step, metric):
            summary = series.summary
            value = float(summary.median / unit_scale(series.unit).divisor) if summary else None
            points.append((float(place[1]), value))
    return ChartLine(subject.name, sorted(points), *line_style(number))


def _end(line: ChartLine, at: int) -> str:
    values = [value for _, value in line.points if value is not None]
    return f"{values[at]:.4g}"


def split_charts(group: RunSet, steps: Sequence[str], split: TimeSplit) -> Iterator[Charts]:
    """Draw how the time of each step was spent: a chart for each step, of one subject alone one chart of its steps."""
    times: dict[str, dict[str, dict[int, float]]] = {}
    for step in steps[:MAX_CHARTS]:
        for subject in group.groups:
            means = [subject.steps.get((step, metric)) for metric, _ in split.parts]
            parts = {kind: float(mean.summary.median) for kind, mean in enumerate(means) if mean and mean.summary}
            if parts and sum(parts.values()):
                title = next(mean.title for mean in means if mean)
                of, name = (subject.name, title) if len(group.groups) == 1 else (title, subject.name)
                times.setdefault(of, {})[name] = parts
    charts = []
    for title, names in times.items():
        words = "; ".join(
            f"{name} {', '.join(f'{split.parts[kind][1]} {value:.3g}' for kind, value in parts.items())}"
            for name, parts in names.items()
        )
        charts.append(Chart(title, f"{title}, s: {words}", partial(drawing.stacked, names, "s")))
    if charts:
        legend = tuple(Mark(name, kind) for kind, (_, name) in enumerate(split.parts))
        yield Charts(split.title, tuple(charts), legend, _left_out(len(steps), split.note))


def share_charts(
    title: str, shares: Mapping[str, Mapping[str, Mapping[str, float]]], most: int, note: str
) -> Iterator[Charts]:
    """Draw shares (chart to name to part to share); the largest parts have their own colours, the others share one."""
    sums: Counter[str] = Counter()
    for parts in (parts for names in shares.values() for parts in names.values()):
        sums.update(parts)
    large = sorted(sums, key=lambda part: -sums[part])[:most]
    charts = []
    for chart, names in list(shares.items())[:MAX_CHARTS]:
        drawn: dict[str, dict[int, float]] = {}
        for name, parts in names.items():
            drawn[name] = {kind: 100 * parts.get(part, 0) for kind, part in enumerate(large)}
            drawn[name][len(large)] = 100 * sum(share for part, share in parts.items() if part not in large)
        words = "; ".join(
            f"{name} {', '.join(f'{part} {100 * parts.get(part, 0):.0f} %' for part in large)}"
            for name, parts in names.items()
        )
        charts.append(Chart(chart, f"{chart}: {words}", partial(drawing.stacked, drawn, "%")))
    if charts:
        legend = [Mark(part, kind) for kind, part in enumerate(large)] + [Mark("others", len(large))]
        yield Charts(title, tuple(charts), tuple(legend), _left_out(len(shares), note))
