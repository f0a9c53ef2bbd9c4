"""What a regression gate stops: steps that take longer by more than chance, and by more than a margin."""

from collections.abc import Iterable
from fractions import Fraction

from agelab.analysis.comparison import ComparisonTable
from agelab.errors import AgelabError
from agelab.stats.verdict import ComparedSeries

METRIC = "elapsed"


def slower_steps(tables: Iterable[ComparisonTable], margin: Fraction) -> list[ComparedSeries]:
    """Return the steps of B that are slower than A's by more than ``margin``, as a share.

    Raises AgelabError where a step that differs has too few values to be judged, and where there is no step: what could
    not be stopped must not be let pass.
    """
    times = [row for table in tables for row in table.steps if row.row.left.metric == METRIC]
    measured = [row for row in times if row.left and row.right]
    if not measured or any(row.too_few for row in measured):
        raise AgelabError(
            "too few values to judge the steps' times, so the gate lets nothing pass",
            hint="a verdict takes four run seeds (--seeds 1,2,3,4,5), and a variant that both sides have",
        )
    return [row for row in times if row.better == "left" and row.ratio is not None and row.ratio > 1 + margin]
