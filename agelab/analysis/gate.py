"""What a regression gate stops: steps that take longer by more than chance, and by more than a margin."""

from collections.abc import Iterable
from fractions import Fraction

from agelab.analysis.comparison import ComparisonTable
from agelab.base.errors import AgelabError
from agelab.stats.phrasing import TOO_FEW
from agelab.stats.verdict import ComparedSeries

METRIC = "elapsed"


def times(table: ComparisonTable) -> list[ComparedSeries]:
    """Return the rows of a table that a gate judges."""
    return [row for row in table.steps if row.row.left.metric == METRIC]


def is_slower(row: ComparedSeries, margin: Fraction) -> bool:
    """Tell whether B's step is slower than A's by more than chance, and by more than ``margin``, as a share."""
    return row.better == "left" and row.ratio is not None and row.ratio > 1 + margin


def slower_steps(tables: Iterable[ComparisonTable], margin: Fraction) -> list[ComparedSeries]:
    """Return the steps that are slower.

    Raises AgelabError where a step that differs has too few seeds to be judged, and where there is no step: what could
    not be stopped must not be let pass.
    """
    found = [row for table in tables for row in times(table)]
    measured = [row for row in found if row.left and row.right]
    if not measured or any(row.too_few for row in measured):
        raise AgelabError(
            f"{TOO_FEW} to judge the steps' times, so the gate lets nothing pass",
            hint="a verdict takes four run seeds (--seeds 1,2,3,4,5), and a variant that both sides have",
        )
    return [row for row in found if is_slower(row, margin)]
