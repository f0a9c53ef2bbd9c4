"""The chart of a metric over the time of aging."""

import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest

from agelab.layout import curve

SVG = "{http://www.w3.org/2000/svg}"


def words_of(document: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(document).iter(f"{SVG}text")]


def lines_of(document: str) -> list[list[tuple[float, float]]]:
    found = []
    for node in ElementTree.fromstring(document).iter(f"{SVG}polyline"):
        pairs = (node.get("points") or "").split()
        found.append([(float(x), float(y)) for x, y in (pair.split(",") for pair in pairs)])
    return found


def test_a_gap_stays_a_gap() -> None:
    line = [(0, 1.0), (1, 0.9), (2, None), (3, 0.7), (4, None), (5, 0.5), (6, 0.4)]
    document = curve.plot("score", "repetitions", "layout score", {"ext4": line})
    assert [len(found) for found in lines_of(document)] == [2, 2]
    # All five points are there, the lone one too, and one more beside the name.
    assert document.count("<path ") == 6
    assert words_of(document).count("×") == 2
    assert "not measured (×, and a gap in the line): ext4 at 2 of 7 points" in words_of(document)


def test_a_filesystem_without_any_value_is_named() -> None:
    document = curve.plot("score", "x", "y", {"zfs": [(0, None), (1, None)], "ext4": [(0, 1.0), (1, 0.5)]})
    assert len(lines_of(document)) == 1
    assert any("zfs at all points" in words for words in words_of(document))
    assert "nothing was measured" in words_of(curve.plot("none", "x", "y", {}))


def test_shares_are_drawn_on_the_whole_scale() -> None:
    document = curve.plot("score", "x", "layout score", {"ext4": [(0, 0.99), (10, 0.97)]})
    [[(left, high), (right, low)]] = lines_of(document)
    assert (left, right) == (curve.LEFT, curve.WIDTH - curve.NAMES)
    height = curve.BOTTOM - curve.TOP
    assert curve.BOTTOM - high == pytest.approx(0.99 * height, abs=0.1)
    assert curve.BOTTOM - low == pytest.approx(0.97 * height, abs=0.1)
    assert {"0", "0.2", "0.4", "0.6", "0.8", "1"} <= set(words_of(document))


def test_other_values_have_a_scale_of_their_own() -> None:
    document = curve.plot("runs", "bytes", "runs per file", {"ext4": [(0, 12.0), (2.5e9, 19.0)]})
    assert {"12", "14", "16", "18", "20"} <= set(words_of(document))
    assert "0" in words_of(document) and "bytes (×10⁹)" in words_of(document)
    [[_, (_, top)]] = lines_of(document)
    assert curve.TOP < top < curve.BOTTOM


@pytest.mark.parametrize("points", [[(0, 3.0)], [(1, 0.0), (2, 0.0)], [(5, -2.5)], [(0, 1e-9), (1, 2e12)]])
def test_any_figures_stand_inside_the_axes(points: list[curve.Point]) -> None:
    document = curve.plot("any", "x", "y", {"one": points})
    places = re.findall(r'transform="translate\(([-\d.]+) ([-\d.]+)\)"', document)
    assert len(places) == len(points) + 1
    for _, y in places:
        assert curve.TOP <= float(y) <= curve.BOTTOM


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_figure_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="not measured is None"):
        curve.plot("bad", "x", "y", {"ext4": [(0, value)]})


def test_names_of_many_lines_do_not_overlap_and_keep_their_order() -> None:
    series = {f"fs{index:02}": [(0, 1.0), (1, 0.01 * (index % 4))] for index in range(16)}
    document = curve.plot("many", "x", "y", series)
    names = [
        (float(node.get("y") or 0), node.text or "")
        for node in ElementTree.fromstring(document).iter(f"{SVG}text")
        if (node.text or "").startswith("fs")
    ]
    assert len(names) == 16
    heights = [height for height, _ in names]
    assert all(after - before >= curve.LINE_HEIGHT - 0.1 for before, after in pairwise(heights))
    assert max(heights) <= curve.BOTTOM + 4.1
    assert [int(name[2:]) % 4 for _, name in names] == [3] * 4 + [2] * 4 + [1] * 4 + [0] * 4
    # No two look the same, nor did they with the points alone in grey.
    looks = re.findall(r'<path d="([^"]*)" transform="translate\(\d+ [-\d.]+\)" fill="([^"]*)"/>', document)
    assert len(set(looks)) == 16


def test_names_that_crowd_are_centred_on_their_lines() -> None:
    document = curve.plot("three", "x", "y", {name: [(0, 1.0), (1, 0.5)] for name in ("fs1", "fs2", "fs3")})
    middle = (curve.TOP + curve.BOTTOM) / 2 + 4
    for name, height in zip(("fs1", "fs2", "fs3"), (middle - 15, middle, middle + 15), strict=True):
        assert re.search(f'y="{height:g}"[^>]*>{name}<', document)


def test_hostile_names_stay_text_and_the_bytes_are_the_same_again() -> None:
    hostile = "<b>&\"'\x00</svg>"
    series = {hostile: [(0, 1.0), (1, 0.5)]}
    document = curve.plot(hostile, hostile, hostile, series)
    assert document == curve.plot(hostile, hostile, hostile, series)
    root = ElementTree.fromstring(document)
    assert root.findtext(f"{SVG}title") == "<b>&\"'�</svg>"
    assert not list(root.iter("b"))
