"""The small charts of a page: where bars and lines end, what stands at their axes, and that names stay text."""

import re
from xml.etree import ElementTree

import pytest

from agelab.present.report import drawing
from agelab.present.report.drawing import WIDTH, Bar, ChartLine

SVG = "{http://www.w3.org/2000/svg}"


def words_of(drawn: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(drawn).iter(f"{SVG}text")]


def paths(drawn: str, **look: str) -> list[str]:
    """The paths that look so."""
    every = ElementTree.fromstring(drawn).iter(f"{SVG}path")
    return [path.get("d", "") for path in every if all(path.get(name) == value for name, value in look.items())]


def boxes(path: str) -> list[tuple[float, float]]:
    """Where each box of a path begins, and how long it is."""
    return [(float(x), float(length)) for x, length in re.findall(r"M([\d.]+) [\d.]+h([\d.]+)", path)]


def test_bars_are_as_long_as_their_values_and_the_interval_lies_around_the_end() -> None:
    drawn = drawing.bars([Bar("ext4", 1.0, "1.0", 0.5, 1.5), Bar("xfs", 2.0, "2.0")], "s", base=1)
    [path] = paths(drawn, fill="var(--c0)")
    (_, first), (_, second) = boxes(path)
    assert second == pytest.approx(2 * first, abs=0.2)
    [interval] = paths(drawn, **{"stroke-width": "1.5"})
    low, high = map(float, re.findall(r"[MH]([\d.]+)", interval))
    assert (low + high) / 2 == pytest.approx(first, abs=0.2)
    [base] = paths(drawn, **{"stroke-dasharray": "3 3"})
    assert base.startswith(f"M{first:g} ")
    assert words_of(drawn) == ["0.0", "0.5", "1.0", "1.5", "2.0", "s", "ext4", "xfs", "1.0", "2.0"]


def test_bars_of_several_kinds_stand_below_one_another_unless_each_name_has_one() -> None:
    both = [Bar("ext4", 1.0, "a", kind=1), Bar("ext4", 2.0, "b")]
    assert len(paths(drawing.bars(both, "s"), fill="var(--c1)")) == 1
    heights = {kind: paths(drawing.bars(both, "s"), fill=f"var(--c{kind})")[0].split("h")[0] for kind in (0, 1)}
    assert len({place.split()[1] for place in heights.values()}) == 2
    alone = drawing.bars([Bar("ext4", 1.0, "a", kind=1), Bar("xfs", 2.0, "b")], "s", side_by_side=False)
    assert float(alone.split('viewBox="0 0 340 ')[1].split('"')[0]) < 90


def test_what_was_not_measured_has_no_bar_but_its_words() -> None:
    drawn = drawing.bars([Bar("ext4", None, "not measured")], "s")
    assert boxes(paths(drawn, fill="var(--c0)")[0]) == [(0, 0)] and "not measured" in words_of(drawn)


def test_labels_with_many_digits_leave_one_another_room() -> None:
    assert words_of(drawing.bars([Bar("b" * 30, 1234567.0, "x")], "")) == [
        "0", "1,000,000", "b" * 23 + "…", "x",
    ]  # fmt: skip


def test_parts_stand_behind_one_another() -> None:
    drawn = drawing.stacked({"ext4": {0: 30.0, 1: 70.0}, "xfs": {1: 50.0}}, "%")
    [(_, first)] = boxes(paths(drawn, fill="var(--c0)")[0])
    (begin, second), (other, third) = boxes(paths(drawn, fill="var(--c1)")[0])
    assert (begin, other) == (first, 0) and second == pytest.approx(first * 7 / 3, abs=0.3)
    assert third == pytest.approx((first + second) / 2, abs=0.2)
    assert {"0", "20", "40", "60", "80", "100"} <= set(words_of(drawn))


def test_a_line_is_broken_where_it_was_not_measured() -> None:
    line = ChartLine("ext4", [(1, 3.0), (2, None), (3, 4.0), (4, 6.0)], 1, 2)
    drawn = drawing.lines([line], "repetition", "MB/s")
    [path] = paths(drawn, **{"stroke-width": "1.8", "stroke-dasharray": "2 3"})
    assert [piece.count("L") for piece in path.split("M")[1:]] == [0, 1]
    [dots] = paths(drawn, **{"stroke-linecap": "round"})
    assert dots.count("h0") == 3
    assert words_of(drawn) == ["0", "1", "2", "3", "4", "5", "6", "MB/s", "1", "2", "3", "4", "repetition"]


def test_shares_have_the_whole_scale_and_any_figures_a_place() -> None:
    drawn = drawing.lines([ChartLine("a", [(0, 0.99)], 0)], "x", "", shares=True)
    assert {"0.0", "1.0"} <= set(words_of(drawn)) and f"M{(WIDTH - 2 - 28) / 2:g} 2.2" in drawn
    for points in ([(0, 0.0)], [(1, -2.5), (2, 3.0)], [(0, 1e-9), (1, 2e12)], [(1.0, None)]):
        assert "nan" not in drawing.lines([ChartLine("a", points, 0)], "x", "y")
    assert "nan" not in drawing.stacked({"a": {0: 0.0}}, "s")
    for figures in ([], [Bar("a", 0.0, "0")], [Bar("a", -3.0, "-3", -4.0, -2.0)], [Bar("a", -3.0, "-3")]):
        assert words_of(drawing.bars(figures, "s"))[:2] == ["0.0", "0.2"]


def test_names_stay_text() -> None:
    hostile = "<b>&\"'\x00</svg>"
    charts = [
        drawing.bars([Bar(hostile, 1.0, hostile)], hostile),
        drawing.stacked({hostile: {0: 1.0}}, hostile),
        drawing.lines([ChartLine(hostile, [(0, 1.0)], 0)], hostile, hostile),
    ]
    for drawn in charts:
        assert words_of(drawn).count("<b>&\"'\ufffd</svg>") >= 2 and "<b>" not in drawn
