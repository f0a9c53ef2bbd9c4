"""The tables of docs/aging-numbers.md: what aging did to every variant, block maps, and what the data take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from agelab.analysis.calibration import HostNoise
from agelab.analysis.cells import RunSet, load
from agelab.analysis.judge import judge
from agelab.base.errors import InputError
from agelab.results.cell_samples import Place
from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from agelab.scenario.seeds import seeds_text
from agelab.stats.series import Series, SeriesPair, Summary
from docs.make.catalogue import Made, Table
from docs.make.page import grid

HEAD = (
    *(
        "variant",
        "layout score",
        "of control",
        "files in pieces, %",
        "free in runs >= 1 MiB, %",
        "full at, %",
    ),
    *("copy, last / first", "read", "random read", "write", "search"),
)
SPACE_HEAD = (
    "variant", "held, MB", "of the data, %", "pieces without room", "used, MB", "used / held", "full at, %"
)  # fmt: skip
DECIMALS = (4, 4, 1, 1, 1, 3, 3, 3, 3, 3)
PERCENT = Fraction(100)
COLUMNS: tuple[tuple[Place, Fraction], ...] = (
    (("aged/map", 1, "layout_score"), Fraction(1)),
    (("control/map", 1, "layout_score"), Fraction(1)),
    (("aged/map", 1, "fragmented_files"), PERCENT),
    (("aged/map", 1, "free_usable_1mib"), PERCENT),
    (("fill", 1, "fullness"), PERCENT),
    (("copy", 1, "throughput_ratio"), Fraction(1)),
    (("read", 1, "slowdown"), Fraction(1)),
    (("random-read", 1, "slowdown"), Fraction(1)),
    (("write", 1, "slowdown"), Fraction(1)),
    (("search", 1, "slowdown"), Fraction(1)),
)
SHARED = ("kernel", "qemu", "image", "corpus_sha256")
"""Provenance that runs of one table have in common."""
RANKED: Place = ("read", 1, "slowdown")
"""The metric that decides "aged worst": how much longer a scan of all files takes than on the control."""


@dataclass(frozen=True)
class Variant:
    """The cells of one variant that ended ok, over the run seeds, or why there are none."""

    name: str
    measured: Mapping[Place, Series]
    why: str

    def summary(self, place: Place) -> Summary | None:
        return self.measured[place].summary if place in self.measured else None


def variants_of(runs: Sequence[RunDirectory]) -> list[Variant]:
    """List the variants of the runs."""
    variants = []
    for group in RunSet(tuple(map(load, runs))).groups:
        # Where none is ok the reason is the same for all; else it is one seed's.
        wrong = dict.fromkeys(
            f"seed {result.seed} {result.ended}" if group.counted else result.ended
            for result in group.results
            if not result.ok
        )
        variants.append(Variant(group.name, group.series, "; ".join(wrong)))
    return variants


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Make the table, and below it which aged worst, but for chance. Raises InputError for runs of different tables."""
    variants = variants_of(runs)
    rows = [[variant.name, *_figures(variant)] for variant in variants]
    lines = [
        *headed(runs),
        "Medians, and in brackets the spread (largest less smallest). The last four columns are slowdowns: time on "
        "the aged disk / time on the control.",
        "",
        *grid(HEAD, rows),
        "",
        *(f"- {variant.name}: {variant.why}" for variant in variants if variant.why),
        "",
        *_ranking(variants),
    ]
    return Made("\n".join(lines))


def headed(runs: Sequence[RunDirectory], shared: Sequence[str] = SHARED) -> list[str]:
    """Return the lines above the runs' table. Raises InputError for runs of different tables, by what they share."""
    plans = [run.plan() for run in runs]
    environments = {(plan.scale, *(plan.provenance[name] for name in shared)) for plan in plans}
    if len(environments) > 1:
        raise InputError(f"the runs differ in scale, {', '.join(shared[:-1])} or {shared[-1]}")
    seeds = seeds_text(cell.seeds for plan in plans for cell in plan.cells)
    return [
        f"Run {seeds}; scale {plans[0].scale}, kernel {plans[0].provenance['kernel']}, {plans[0].provenance['qemu']}."
    ]


def _figures(variant: Variant) -> list[str]:
    pairs = zip(COLUMNS, DECIMALS, strict=True)
    return [figure(variant, place, scale, decimals) for (place, scale), decimals in pairs]


def figure(variant: Variant, place: Place, factor: Fraction, decimals: int) -> str:
    """Format the median over the run seeds, with the spread in brackets if there are several."""
    summary = variant.summary(place)
    if summary is None:
        return "-" if not variant.measured else "not measured"
    middle, spread = (f"{float(value * factor):.{decimals}f}" for value in (summary.median, summary.spread))
    return f"{middle} ({spread})" if summary.n > 1 else middle


def _ranking(variants: Sequence[Variant]) -> list[str]:
    """Rank the variants by the slowdown of a scan, and compare each with the next and with no slowdown."""
    known = [(summary, variant.name) for variant in variants if (summary := variant.summary(RANKED))]
    known.sort(key=lambda pair: (-pair[0].median, pair[1]))
    lines = ["By the slowdown of reading every file, the worst first:", ""]
    series = {variant.name: variant.measured for variant in variants}
    tests = [(f"{disk}/{RANKED[0]}", 1, "elapsed") for disk in ("control", "aged")]
    sides = [SeriesPair(*(series[name][test] for test in tests)) for _, name in known]
    own = judge(sides, HostNoise())
    pairs = [SeriesPair(series[other][RANKED], series[name][RANKED]) for (_, name), (_, other) in pairwise(known)]
    against = judge(pairs, HostNoise())
    for place, ((summary, name), alone) in enumerate(zip(known, own, strict=True), start=1):
        verdict = f"on the aged disk {alone.word}"
        if place < len(known):
            verdict += f"; against {known[place][1]} {against[place - 1].word}"
        lines.append(f"{place}. {name} {float(summary.median):.3f} ({verdict})")
    return lines


def block_maps(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Show the map of each cell that has one: a picture of each variant, aged above its control."""
    files = {}
    for run in runs:
        for number, cell in enumerate(run.plan().cells):
            drawn = run.cell_directory(number) / "maps" / "block-map.svg"
            if drawn.exists():
                files[Path(table.pictures) / f"{cell.variant}.svg"] = drawn.read_bytes()
    shown = [f"![block map of {path.stem}, aged and control]({path})" for path in files]
    return Made("\n\n".join([*headed(runs), *shown]), files)


def space(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Show what the data that just fill zfs take on every filesystem of one run.

    The least space comes first, filesystems that cannot hold it all last.
    """
    [run] = runs
    plan, samples = run.plan(), run.samples()
    cells, others = [], []
    for number, cell in enumerate(plan.cells):
        end = run.end(number)
        if end is None or end.status is not Status.OK:
            others.append(f"- {cell.variant}: {end.status if end else 'interrupted'}: {end.reason if end else ''}")
            continue
        values = {(sample.step, sample.metric): sample.value or 0 for sample in samples.get(number, [])}
        cells.append((cell.variant, values))
    whole = max(values["count", "content_bytes"] for _, values in cells)
    cells.sort(key=lambda row: (row[1]["count", "content_bytes"] < whole, row[1]["count", "space_used"], row[0]))
    lines = [
        f"Run seed 1; scale {plan.scale}, kernel {plan.provenance['kernel']}, {plan.provenance['qemu']}.",
        "",
        *grid(SPACE_HEAD, ([variant, *_space_figures(values, whole)] for variant, values in cells)),
        "",
        *others,
    ]
    return Made("\n".join(lines))


def _space_figures(values: Mapping[tuple[str, str], float], whole: float) -> list[str]:
    held, used = values["count", "content_bytes"], values["count", "space_used"]
    return [
        f"{held / 1e6:.1f}",
        f"{100 * held / whole:.1f}",
        f"{values.get(('fill', 'refused'), 0):.0f}",
        f"{used / 1e6:.1f}",
        f"{used / held:.3f}",
        f"{100 * values['count', 'fullness']:.1f}",
    ]
