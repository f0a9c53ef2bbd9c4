"""Report on a log: what the engine produced beside what was asked for.

Three figures compare files with a profile's distribution. D is the distance of Kolmogorov and Smirnov: the largest
difference of the two cumulative distributions, over the classes. p is that of Pearson's chi-squared test of goodness
of fit, by which Geriatrix decides whether ages have converged (Kadekodi et al., USENIX ATC 2018). It falls with the
number of files, however small the difference. Cohen's w does not: w = sqrt(chi2 / n), of which 0.1 is small and 0.3
medium (Statistical Power Analysis for the Behavioral Sciences, 1988).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from agelab.base.types import Frozen
from agelab.data.history.operations import LogSummary
from agelab.data.history.profile import ProducedFiles
from agelab.scenario.aging_profile import Profile

REPORT = "report.json"
"""The file beside a history's image."""
CONVERGED_DISTANCE = 0.05
"""Largest D at which ages have converged: at most one file in twenty too many or too few below any age."""
MIN_EXPECTED_COUNT = 5
"""Smallest expected count of a class: smaller ones are joined for chi-squared (Cochran, 1954)."""


class AskedShare(Frozen):
    """A share of the disk's bytes; ``asked`` is null if it was not requested."""

    asked: float | None
    produced: float


class DistributionFit(Frozen):
    """Fit of the remaining files to a distribution; classes in the profile's order."""

    upto: tuple[int, ...] = Field(description="upper bound of each class: bytes, hours, directories above")
    asked: tuple[float, ...] = Field(description="share of the files in each class")
    produced: tuple[float, ...]
    distance: float = Field(description="Kolmogorov and Smirnov's D")
    p: float | None = Field(description="p of the chi-squared test; null where there are too few files")
    effect: float | None = Field(description="Cohen's w")


class ProfileFit(Frozen):
    """Fit to the three distributions of a profile."""

    profile: str
    sizes: DistributionFit
    depths: DistributionFit
    ages: DistributionFit
    converged: bool = Field(description=f"whether D of the ages is at most {CONVERGED_DISTANCE}")


class HistoryReport(Frozen):
    """Totals of a log and its fit to the request; sizes in bytes."""

    schema_: int = Field(default=1, alias="schema")
    engine: str
    disk: int
    seed: int | None = Field(description="null where the engine draws no random numbers")
    fullness: AskedShare = Field(description="files in whole blocks of 4096 bytes")
    overwrites: AskedShare
    operations: int
    counts: dict[str, int] = Field(description="number of lines by operation")
    bytes_written: int
    files: int = Field(description="at the end, as are directories and live_bytes")
    directories: int
    live_bytes: int
    peak_bytes: int = Field(description="largest live_bytes at any time")
    points: tuple[int, ...] = Field(description="number of operations before each point")
    versions: int | None = Field(default=None, description="number of versions of the tree")
    turns: int | None = Field(default=None, description="number of turns: copies of the tree, of which half is deleted")
    skipped: dict[str, int] | None = Field(
        default=None, description="number of a trace's lines that were not sent, by kind"
    )
    fits: ProfileFit | None = None


@dataclass
class EngineRecord:
    """Facts about a log that its engine knows, complete once the log is written."""

    fullness: float | None = None
    """As requested; likewise overwrites."""
    overwrites: float | None = None
    at_peak: bool = False
    """True if fullness refers to the fullest moment, not to the end."""
    overwritten_bytes: int | None = None
    """Bytes counted as overwrites, if not all are."""
    versions: int | None = None
    turns: int | None = None
    profile: Profile | None = None
    produced: ProducedFiles | None = None


def report(engine: str, disk: int, seed: int | None, record: EngineRecord, summary: LogSummary) -> HistoryReport:
    space = summary.peak_space if record.at_peak else summary.space
    counted = summary.bytes_written if record.overwritten_bytes is None else record.overwritten_bytes
    return HistoryReport(
        engine=engine,
        disk=disk,
        seed=seed,
        fullness=AskedShare(asked=record.fullness, produced=round(space / disk, 6)),
        overwrites=AskedShare(asked=record.overwrites, produced=round(counted / disk, 6)),
        **{name: total for name, total in vars(summary).items() if name in HistoryReport.model_fields},
        versions=record.versions,
        turns=record.turns,
        fits=_fit_profile(record.profile, record.produced) if record.profile and record.produced else None,
    )


def fit_distribution(upto: Sequence[int], asked: Sequence[float], counts: Mapping[int, int]) -> DistributionFit:
    """Return how well files, counted by class, fit the shares."""
    from scipy.stats import chisquare

    files = sum(counts.values())
    produced = [counts.get(index, 0) / files if files else 0.0 for index in range(len(asked))]
    distance = ours = theirs = 0.0
    for share, asked_share in zip(produced, asked, strict=True):
        ours, theirs = ours + share, theirs + asked_share
        distance = max(distance, abs(ours - theirs))
    p = effect = None
    seen, expected = _join_small_classes([counts.get(index, 0) for index in range(len(asked))], asked, files)
    if len(seen) > 1:
        statistic, chance = chisquare(seen, expected)
        p, effect = float(chance), round(math.sqrt(statistic / files), 6)
    return DistributionFit(
        upto=tuple(upto),
        asked=tuple(round(share, 6) for share in asked),
        produced=tuple(round(share, 6) for share in produced),
        distance=round(distance, 6),
        p=None if p is None else float(f"{p:.6g}"),
        effect=effect,
    )


def _join_small_classes(counts: Sequence[int], asked: Sequence[float], files: int) -> tuple[list[int], list[float]]:
    """Join neighbouring classes until each is large enough; return counts and expected counts."""
    seen: list[int] = []
    expected: list[float] = []
    some, due = 0, 0.0
    for count, share in zip(counts, asked, strict=True):
        some, due = some + count, due + share * files
        if due >= MIN_EXPECTED_COUNT:
            seen.append(some)
            expected.append(due)
            some, due = 0, 0.0
    if seen:
        seen[-1] += some
        expected[-1] += due
    return seen, expected


def _fit_profile(profile: Profile, produced: ProducedFiles) -> ProfileFit:
    sizes, depths, ages = profile.sizes, profile.depths, profile.ages
    aged = fit_distribution(ages.upto, ages.shares(), produced.ages)
    return ProfileFit(
        profile=profile.name,
        sizes=fit_distribution(sizes.upto, sizes.shares(), produced.sizes),
        depths=fit_distribution(range(1, len(depths.weights) + 1), depths.shares(), produced.depths),
        ages=aged,
        converged=aged.distance <= CONVERGED_DISTANCE,
    )


def report_lines(history: HistoryReport) -> list[str]:
    """Format the report as lines for a terminal."""
    mean = history.live_bytes / history.files if history.files else 0
    counts = ", ".join(f"{what} {count}" for what, count in history.counts.items() if what != "point")
    lines = [
        f"disk         {history.disk} bytes",
        f"fullness     {_share(history.fullness)}",
        f"overwrites   {_share(history.overwrites)}",
        f"operations   {history.operations}: {counts}",
        f"written      {history.bytes_written} bytes",
        f"left         {history.files} files in {history.directories} directories, {history.live_bytes} bytes, "
        f"{mean:.0f} a file",
        f"points       {len(history.points)}",
    ]
    if history.engine == "iolog":  # requests to a disk: no files
        lines = [line for line in lines if line.startswith(("disk", "overwrites", "operations", "written"))]
    if history.versions is not None:
        lines.append(f"versions     {history.versions}")
    if history.turns is not None:
        lines.append(f"turns        {history.turns}")
    if history.skipped:
        kinds = ", ".join(f"{kind} {count}" for kind, count in history.skipped.items())
        lines.append(f"skipped      {sum(history.skipped.values())}: {kinds}")
    if fits := history.fits:
        for name, fit in (("sizes", fits.sizes), ("depths", fits.depths), ("ages", fits.ages)):
            p, effect = ("-" if value is None else f"{value:.3g}" for value in (fit.p, fit.effect))
            lines.append(f"{name:12} D {fit.distance:.4f}, p {p}, w {effect}")
        verdict = "have converged" if fits.converged else "have not converged: more overwrites are needed"
        lines.append(f"             the ages {verdict} (D at most {CONVERGED_DISTANCE})")
    return lines


def _share(pair: AskedShare) -> str:
    return f"{pair.produced:.4f}" + ("" if pair.asked is None else f", asked {pair.asked:g}")
