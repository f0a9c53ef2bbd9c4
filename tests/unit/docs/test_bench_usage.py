"""How far fullness and usage each move the slowdown of a scan, and when neither is said to move it further."""

import pytest

from agelab.results.result import Sample
from agelab.scenario.seeds import Seeds
from agelab.stats.series import series
from docs.make.aging import Variant
from docs.make.usage import answers

HISTORIES = ("full35", "full50", "full65")
USAGES = 3


def variant(history: str, row: tuple[float, ...], noise: float, seeds: int) -> Variant:
    """Slowdowns of a scan at each usage; each seed's is larger by some noise than the one's before it."""
    cells = []
    for seed in range(1, seeds + 1):
        rows = [
            Sample(step=step, metric=metric, value=value * (1 + noise * seed), unit="1", repetition=point)
            for point, value in enumerate(row, start=1)
            for step, metric in (("then/scan", "slowdown"), ("replay", "fullness"))
        ]
        cells.append((Seeds(1, seed), rows))
    return Variant(f"ext4-{history}", series(cells), "")


def grid(usage: float, fullness: float, both: float = 1) -> list[tuple[float, ...]]:
    """Slowdowns that one more disk and one more degree of fullness multiply, and by ``both`` where both are full."""
    rows = [[2 * usage**n * fullness**m for n in range(USAGES)] for m in range(len(HISTORIES))]
    rows[-1][-1] *= both
    return [tuple(row) for row in rows]


@pytest.mark.parametrize(
    ("table", "noise", "seeds", "usage", "fullness", "further"),
    [
        (grid(1.5, 1.02), 0.01, 5, "2.250 (2.228 to 2.272), higher", "1.040", "usage"),
        (grid(1.0, 2.0), 0.01, 5, "1.000 (0.990 to 1.010), equal", "4.00", "fullness"),
        (grid(1.2, 1.2), 0.01, 5, "1.440", "1.440", "not known"),
        (grid(1.01, 1.2, both=2), 0.01, 5, "35 %: 1.0", "1: 1.44 (1.39 to 1.50), ", "each depends on the other"),
        (grid(1.5, 1.02), 0.0, 1, "2.250, not known", "1.040, not known", "not known: too few seeds"),
    ],
)  # fmt: skip
def test_the_answer(
    table: list[tuple[float, ...]], noise: float, seeds: int, usage: str, fullness: str, further: str
) -> None:
    found = [variant(history, row, noise, seeds) for history, row in zip(HISTORIES, table, strict=True)]
    *_, last = answers(found, HISTORIES)
    _, name, by_usage, by_fullness, said, _ = (cell.strip() for cell in last.split("|"))
    assert (name, said) == ("ext4", further)
    assert by_usage.startswith(usage)
    assert by_fullness.startswith(fullness)
