"""Which of fullness and usage moves more, and when that is not said."""

import pytest

from agelab.model.result import Sample
from agelab.model.seeds import Seeds
from agelab.stats.series import series
from bench.aging import Variant
from bench.usage import _answers

HISTORIES = ("full35", "full65")


def variant(history: str, at: tuple[float, float], noise: float, seeds: int = 5) -> Variant:
    """Slowdowns of a scan at two points, the same for each seed but for some noise of the last."""
    cells = []
    for seed in range(1, seeds + 1):
        more = noise if seed == seeds else 0
        rows = [
            Sample(step=step, metric=metric, value=value + more, unit="1", repetition=point)
            for point, value in enumerate(at, start=1)
            for step, metric in (("then/scan", "slowdown"), ("replay", "fullness"))
        ]
        cells.append((Seeds(1, seed), rows))
    return Variant(f"ext4-{history}", series(cells), "")


@pytest.mark.parametrize(
    ("grid", "noise", "seeds", "said"),
    [
        (((1.0, 2.0), (1.1, 2.1)), 0.1, 5, ["0.100", "1.000", "0.100", "usage"]),
        (((1.0, 1.1), (2.0, 2.1)), 0.1, 5, ["1.000", "0.100", "0.100", "fullness"]),
        (((1.0, 1.1), (1.2, 1.3)), 0.4, 5, ["0.200", "0.100", "0.400", "neither: they differ by less than seeds do"]),
        (((1.0, 2.0), (1.1, 2.1)), 0.0, 1, ["0.100", "1.000", "-", "usage; too few seeds"]),
    ],
)  # fmt: skip
def test_the_answer(grid: tuple[tuple[float, float], ...], noise: float, seeds: int, said: list[str]) -> None:
    found = [variant(history, at, noise, seeds) for history, at in zip(HISTORIES, grid, strict=True)]
    *_, last = _answers(found, HISTORIES)
    assert last == f"| {' | '.join(['ext4', *said])} |"
