"""docs/findings.md's counts of cells."""

from fractions import Fraction

from agelab.scenario.seeds import Seeds
from agelab.stats.series import Series
from docs.make.findings import share


def series(*values: int) -> Series:
    seeds = [Seeds(corpus=1, run=run) for run in range(1, len(values) + 1)]
    found = tuple((one, Fraction(value)) for one, value in zip(seeds, values, strict=True))
    return Series("check", 1, "files", "1", found, ())


def test_a_share_of_cells_has_the_interval_of_clopper_and_pearson() -> None:
    whole = series(9, 9, 9, 9, 9)
    assert share([(whole, whole)]) == "0 of 5 (0 to 52 %)"  # 1 - 0.025 ** (1 / 5) = 0.522
    assert share([(whole, whole), (series(9, 8, 9, 0, 9), whole)]) == "2 of 10 (3 to 56 %)"
