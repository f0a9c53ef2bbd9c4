"""Report on a study: its rankings beside ours, and a verdict on each of its claims."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from agelab.analysis.cells import RunResult
from agelab.analysis.published.claims import Claim
from agelab.analysis.published.our_values import OurValues
from agelab.analysis.published.processor_band import within_band
from agelab.analysis.published.ranking import Ranking, rankings
from agelab.analysis.published.run_columns import RunColumn, run_columns
from agelab.analysis.published.study import Study, study_of_scenario
from agelab.analysis.published.verdict import (
    COUNTED,
    KINDS,
    ClaimVerdict,
    JudgedClaim,
    judge_claim,
    stand_ins_run,
)
from agelab.stats.formatting import letter


@dataclass(frozen=True)
class StudyColumn:
    """A column of the rankings: a side, with the filesystem that stands in for the study's, if any."""

    letter: str
    side: RunColumn
    stand_in: str = ""

    @property
    def name(self) -> str:
        return f"{self.letter} {self.stand_in}".rstrip()


@dataclass(frozen=True)
class ClaimCounts:
    """How many claims replicated, and how many of them filesystems that are all alike would replicate."""

    judged: tuple[JudgedClaim, ...]

    @cached_property
    def kinds(self) -> dict[str, int]:
        """The number of claims of each of KINDS."""
        kinds = [one.kind for one in self.judged]
        return {kind: kinds.count(kind) for kind in KINDS}

    @property
    def counted(self) -> int:
        return sum(self.kinds[kind] for kind in COUNTED)

    @cached_property
    def rated(self) -> "ClaimCounts":
        """Those that are counted and have a base rate."""
        return ClaimCounts(tuple(one for one in self.judged if one.rate and one.kind in COUNTED))

    @property
    def replicated(self) -> int:
        return self.kinds[ClaimVerdict.REPLICATED]

    @property
    def alike(self) -> tuple[float, ...]:
        """How many of the rated ones filesystems that are all alike would replicate, at each of NOISES."""
        return tuple(
            sum(rates) for rates in zip(*(one.rate for one in self.rated.judged if one.rate), strict=True)
        )


@dataclass(frozen=True)
class StudyReport:
    """One study and the runs beside it."""

    study: Study
    sides: tuple[tuple[str, RunColumn], ...]
    """The sides, each with its letter."""
    columns: tuple[StudyColumn, ...]
    rankings: tuple[Ranking, ...]
    claims: tuple[tuple[Claim, tuple[tuple[str, JudgedClaim], ...]], ...]
    """Each claim with its verdicts, and the letter of the side that each is of."""

    def counts(self, letter: str) -> ClaimCounts:
        """Return the counts of a side; each stand-in has verdicts of its own."""
        return ClaimCounts(tuple(one for _, judged in self.claims for side, one in judged if side == letter))


def study_reports(runs: Iterable[RunResult]) -> list[StudyReport]:
    """Report on each study that the runs belong to, in their order. Raises InputError for a run of none."""
    by_study: dict[str, tuple[Study, list[RunResult]]] = {}
    for run in runs:
        study = study_of_scenario(run.plan.scenario)
        by_study.setdefault(study.name, (study, []))[1].append(run)
    return [_report(study, these) for study, these in by_study.values()]


def _report(study: Study, runs: Iterable[RunResult]) -> StudyReport:
    lettered = tuple((letter(at), column) for at, column in enumerate(run_columns(runs)))
    columns = tuple(
        StudyColumn(side_letter, side, name)
        for side_letter, side in lettered
        for name in (stand_ins_run(study, side) if study.claims.stand_ins else ("",))
    )
    sources = [OurValues(study.figures, study.claims, column.side, column.stand_in) for column in columns]
    sides = dict(lettered)
    claims = tuple(
        (
            claim,
            within_band(
                [(name, one) for name, side in lettered for one in judge_claim(study, claim, side)], sides
            ),
        )
        for claim in study.claims.claims
    )
    return StudyReport(
        study, lettered, columns, tuple(rankings(study.figures, study.claims, sources)), claims
    )
