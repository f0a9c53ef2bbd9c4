"""How far our figures are from a study's: bands, the step's part and the filesystem's, and what is not counted."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import pytest

from agelab.analysis.published.claims import Claims, Uncounted
from agelab.analysis.published.report import RankedColumn, RankedRow, TableDeviation, table_deviation
from agelab.analysis.published.values import no_value, printed_value
from agelab.stats.series import Series

NAMES = "abcde"


def claims(**more: Any) -> Claims:
    tables = [{"id": "1", "about": "its table", **more.pop("table", {})}]
    known = {"study": "small", "about": "a small one", "tables": tables}
    return Claims.model_validate(
        {**known, "claims": [{"id": "none", "says": "nothing", "untestable": "it is none"}], **more}
    )


def values(numbers: Mapping[str, float | None]) -> dict[str, Series]:
    return {
        name: no_value("copy", "elapsed", "none")
        if one is None
        else printed_value("copy", "elapsed", Fraction(str(one)))
        for name, one in numbers.items()
    }


def row(step: str, theirs: list[float], ours: list[float | None], uncounted: Uncounted | None = None) -> RankedRow:
    both = values(dict(zip(NAMES, theirs, strict=False))), values(dict(zip(NAMES, ours, strict=False)))
    return ranked(step, both[:1], both[1], uncounted)


def ranked(
    step: str, theirs: Sequence[Mapping[str, Series]], ours: Mapping[str, Series], uncounted: Uncounted | None = None
) -> RankedRow:
    columns = (RankedColumn(one, None, 0) for one in theirs)
    return RankedRow(step, tuple(columns), (RankedColumn(ours, None, 0),), uncounted)


def deviation(*rows: RankedRow, unit: str = "s", shrink: int | None = 1, known: Claims | None = None) -> TableDeviation:
    known = known or claims()
    return table_deviation(rows, 0, unit, known.tables[0], known, shrink)


def test_bands_hold_their_ends() -> None:
    found = deviation(row("copy", [100] * 5, [75, 125, 200, 50, 201])).bands
    assert found == (2, 2, 1)
    assert deviation(row("copy", [100] * 3, [74, 126, 49])).bands == (0, 2, 1)


def test_what_all_filesystems_have_in_common_is_the_steps_and_the_rest_is_their_own() -> None:
    [found] = deviation(row("copy", [1, 2, 4, 8], [3, 6, 12, 48])).steps
    assert found.common == pytest.approx(3)
    assert found.rest == {name: pytest.approx(part) for name, part in zip("abcd", (1, 1, 1, 2), strict=True)}
    assert found.farthest == "d" and found.typical_rest == pytest.approx(1)


def test_a_middle_between_two_is_that_of_their_factors() -> None:
    [found] = deviation(row("copy", [1] * 4, [0.5, 1, 4, 8])).steps
    assert found.common == pytest.approx(2)


def test_two_filesystems_do_not_tell_the_step_from_themselves() -> None:
    [found] = deviation(row("copy", [1, 1], [2, 4])).steps
    assert found.common is None and found.rest == {} and found.farthest is None
    assert deviation(row("copy", [1, 1], [2, 4])).typical_step is None


def test_half_of_the_cells_are_off_by_the_typical_factor_either_way() -> None:
    found = deviation(row("copy", [4, 4, 4], [1, 8, 4]), row("list", [4, 4, 4], [4, 4, 2]))
    assert found.typical == pytest.approx(2**0.5)  # 1, 1, 1, 2, 2 and 4
    assert found.typical_step == pytest.approx(1)


def test_a_filesystems_own_part_is_its_median_over_three_steps() -> None:
    rows = [row(f"step-{number}", [1, 1, 1], [1, 1, own]) for number, own in enumerate((2, 4, 8))]
    assert deviation(*rows).own == {"a": pytest.approx(1), "b": pytest.approx(1), "c": pytest.approx(4)}
    assert deviation(*rows[:2]).own == {}


@pytest.mark.parametrize(("unit", "times"), [("s", 16), ("B", 16), ("%", 1), ("1", 1), ("times", 1)])
def test_what_grows_with_the_data_is_brought_to_the_studys_size(unit: str, times: int) -> None:
    found = deviation(row("copy", [16], [1]), unit=unit, shrink=16)
    assert (found.times, found.steps[0].ratios) == (times, {"a": Fraction(times, 16)})


def test_a_share_can_be_compared_at_any_scale() -> None:
    assert deviation(row("copy", [50], [50]), unit="%", shrink=None).bands == (1, 0, 0)


@pytest.mark.parametrize(("kind", "mark"), [("circle", "in a circle"), ("undetermined", "undetermined")])
def test_what_has_a_mark_is_not_counted(kind: str, mark: str) -> None:
    uncounted = Uncounted.model_validate({"kind": kind, "steps": ["copy"], "why": "its size"})
    marked = row("copy", [1], [1], uncounted)
    found = deviation(marked, row("list", [1], [1]))
    assert found.bands == (1, 0, 0)
    assert found.steps[0].left_out == {"a": f"{mark}: its size"} and marked.name == f"copy ({mark})"


def test_what_does_not_grow_with_the_data_counts_at_the_studys_size_alone() -> None:
    known = claims(disproportionate=[{"steps": ["copy"], "variants": ["b"], "why": "squares"}])
    quick, paper = (deviation(row("copy", [1, 1], [1, 1]), shrink=shrink, known=known).steps[0] for shrink in (16, 1))
    assert (list(quick.ratios), quick.left_out) == (["a"], {"b": "squares"})
    assert (list(paper.ratios), paper.left_out) == (["a", "b"], {})


def test_a_sum_of_printed_rows_is_no_cell_and_one_of_others_is() -> None:
    known = claims(sums={"sum": ["copy", "list"], "lost": ["aged/read"]})
    rows = [row(step, [1], [1]) for step in ("copy", "list", "sum", "lost")]
    assert [step.step for step in deviation(*rows, known=known).steps] == ["copy", "list", "lost"]


def test_a_zero_and_a_missing_figure_have_no_distance() -> None:
    [found] = deviation(row("copy", [1, 0, 1], [0, 1, None])).steps
    assert found.ratios == {} and found.left_out == dict.fromkeys("ab", "one figure is 0")


def test_factors_of_another_variant_are_compared_as_factors() -> None:
    known = claims(table={"compares": "elapsed", "relative_to": "a"})
    [found] = deviation(row("copy", [1, 1.5], [4, 12]), unit="times", known=known).steps
    assert found.ratios == {"b": 2}
    assert deviation(row("copy", [1, 1.5], [None, 12]), unit="times", known=known).bands.cells == 0


@pytest.mark.parametrize(("ours", "ratio"), [(1.2, Fraction(12, 13)), (1.4, 1), (1.8, Fraction(18, 15))])
def test_of_two_readings_the_nearest_counts(ours: float, ratio: Fraction) -> None:
    readings = [values({"a": reading}) for reading in (1.3, 1.5)]
    [found] = deviation(ranked("copy", readings, values({"a": ours})), unit="times").steps
    assert found.ratios == {"a": ratio}
