"""The picture of a metric over the time of aging."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from agelab.analysis import vega

SVG = "{http://www.w3.org/2000/svg}"
WIDTH, HEIGHT = 720, vega.PLOT_HEIGHT


def words_of(document: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(document).iter(f"{SVG}text")]


def paths(document: str, kind: str) -> list[ElementTree.Element]:
    """The paths of the marks of that kind: line or symbol."""
    root = ElementTree.fromstring(document)
    groups = [one for one in root.iter(f"{SVG}g") if f"mark-{kind} role-mark" in (one.get("class") or "")]
    return [path for group in groups for path in group.iter(f"{SVG}path")]


def lines_of(document: str) -> list[list[tuple[float, float]]]:
    """The points of each unbroken piece of a line."""
    found = []
    for path in paths(document, "line"):
        for piece in (path.get("d") or "").split("M")[1:]:
            found.append([(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", piece)])
    return found


def test_a_gap_stays_a_gap() -> None:
    line = [(0, 1.0), (1, 0.9), (2, None), (3, 0.7), (4, None), (5, 0.5), (6, 0.4)]
    document = vega.plot("score", "repetitions", "layout score", {"ext4": line})
    assert [len(found) for found in lines_of(document) if len(found) > 1] == [2, 2]
    assert len(paths(document, "symbol")) == 5  # the lone one, too
    assert words_of(document).count("×") == 2
    assert "not measured (×, and a gap in the line): ext4 at 2 of 7 points" in words_of(document)


def test_a_filesystem_without_any_value_is_named() -> None:
    document = vega.plot("score", "x", "y", {"zfs": [(0, None), (1, None)], "ext4": [(0, 1.0), (1, 0.5)]})
    assert len(lines_of(document)) == 1
    assert any("zfs at all points" in words for words in words_of(document))
    assert "nothing was measured" in words_of(vega.plot("none", "x", "y", {}))


def test_shares_are_drawn_on_the_whole_scale() -> None:
    document = vega.plot("score", "x", "layout score", {"ext4": [(0, 0.99), (10, 0.97)]})
    [[(_, high), (_, low)]] = lines_of(document)
    assert [HEIGHT - high, HEIGHT - low] == pytest.approx([0.99 * HEIGHT, 0.97 * HEIGHT], abs=0.1)
    assert {"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"} <= set(words_of(document))


def test_other_values_have_a_scale_of_their_own() -> None:
    document = vega.plot("runs", "bytes", "runs per file", {"ext4": [(0, 12.0), (2.5e9, 19.0)]})
    assert {"12", "14", "16", "18"} <= set(words_of(document)) and "0.0" not in words_of(document)


@pytest.mark.parametrize("points", [[(0, 3.0)], [(1, 0.0), (2, 0.0)], [(5, -2.5)], [(0, 1e-9), (1, 2e12)]])
def test_any_figures_stand_inside_the_axes(points: list[vega.Point]) -> None:
    document = vega.plot("any", "x", "y", {"one": points})
    symbols = [path.get("transform") or "" for path in paths(document, "symbol")]
    places = [re.findall(r"-?[\d.]+(?:e-?\d+)?", place) for place in symbols]
    assert len(places) == len(points)
    for x, y in places:
        assert 0 <= float(x) <= WIDTH and -0.1 <= float(y) <= HEIGHT + 0.1


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_figure_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="not measured is None"):
        vega.plot("bad", "x", "y", {"ext4": [(0, value)]})


def test_no_two_of_many_lines_look_the_same() -> None:
    series = {f"fs{index:02}": [(0, 1.0), (1, 0.01 * (index % 4))] for index in range(16)}
    document = vega.plot("many", "x", "y", series)
    assert [words for words in words_of(document) if words.startswith("fs")] == list(series)
    looks = {(path.get("stroke"), path.get("stroke-dasharray")) for path in paths(document, "line")}
    assert len(looks) == 16


def test_names_stand_below_the_axis_in_place_of_figures() -> None:
    kernels = ["5.10", "6.1", '6.12 "<\u2028']
    document = vega.plot("sweep", "kernel", "elapsed, s", {"ext4": [(0, 3.0), (1, None), (2, 4.0)]}, kernels)
    assert {"5.10", "6.1", '6.12 "<'} <= set(words_of(document)) and "0.5" not in words_of(document)


def test_hostile_names_stay_text_and_the_bytes_are_the_same_again() -> None:
    hostile = "<b>&\"'\x00</svg>"
    series = {hostile: [(0, 1.0), (1, 0.5)]}
    document = vega.plot(hostile, hostile, hostile, series)
    assert document == vega.plot(hostile, hostile, hostile, series)
    root = ElementTree.fromstring(document)
    assert root.findtext(f"{SVG}title") == "<b>&\"'\ufffd</svg>"
    assert not list(root.iter("b")) and "var(" not in document and "currentColor" not in document
