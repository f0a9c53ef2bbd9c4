"""A study beside our runs on the page: seconds beside seconds, how far ours are off, and on a narrow screen, too."""

from pathlib import Path

from playwright.sync_api import Browser

from agelab.analysis.cells import load
from agelab.present.report.blocks import Item, Page, Prose, Table
from agelab.present.report.html import render
from agelab.present.report.page import build_page
from agelab.results.run_directory import RunDirectory
from tests.build.chromium import PHONE, browser
from tests.build.report_tables import cells
from tests.build.study_runs import make, printed

__all__ = ["browser"]


def page_of(home: Path, *names: str) -> Page:
    return build_page([load(RunDirectory(home / "runs" / name)) for name in names])


def tum(home: Path) -> str:
    """The study's own times at its own size, but jfs takes 1.9 times as long to list in full."""
    values = printed("tum-2005")
    values["jfs"]["recls2"] *= 1.9
    return make(home, "tum-2005", values, scale="paper")


def tables(page: Page, id: str) -> list[Table]:
    """The tables whose id has that word."""
    [part] = page.parts
    blocks = [block for section in part.sections for block in section.blocks]
    return [block for block in blocks if isinstance(block, Table) and id in block.id]


def rows(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in cells(table)]


def test_seconds_stand_beside_seconds_with_how_far_ours_are_off(tmp_path: Path) -> None:
    [table] = tables(page_of(tmp_path, tum(tmp_path)), "-ranking-0")
    assert [column.name.replace("\n", " ") for column in table.columns] == [
        "step", "filesystem", "study: s", "A: s", "A: off",
        "study: times the lowest", "study: rank", "A: times the lowest", "A: rank",
    ]  # fmt: skip
    listed = {row[1]: row[2:5] for row in rows(table) if row[0] == "recls2"}
    assert listed["ext3"] == ["41.4939", "41.4939", "1.00"]
    assert listed["jfs"] == ["80.6649", "153.263", "1.90"]
    circle = next(row for row in rows(table) if row[0] == "read3 (in a circle)")
    assert circle[4] == "-"
    assert all(len(row) == len(table.columns) for row in table.rows)


def test_each_step_has_its_part_and_the_filesystem_that_is_off_the_most(tmp_path: Path) -> None:
    page = page_of(tmp_path, tum(tmp_path))
    [table] = tables(page, "-off-0")
    assert table.caption == "How far off, in cells: A, table means, single, elapsed. Off is ours / theirs"
    by_step = {row[0]: row[1:] for row in rows(table)}
    assert by_step["recls2"] == ["3", "1", "0", "1.00", "1.00", "jfs 1.90"]
    assert not {"read3", "delete"} & {*by_step}
    [part] = page.parts
    blocks = [block for section in part.sections for block in section.blocks]
    lists = [block.lines for block in blocks if isinstance(block, Prose)]
    said = [line for lines in lists for line in lines if isinstance(line, str)]
    notes = [note.text for lines in lists for line in lines if isinstance(line, Item) for note in line.below]
    counts = "15 of 16 cells within 25 %, 1 more within a factor of 2, 0 beyond"
    assert f"table means, single, elapsed: {counts}" in notes and f"{counts}." in said
    assert any(line.startswith("Not counted: read3 of ext3, xfs, reiserfs, jfs: in a circle: ") for line in said)


def test_sides_and_stand_ins_have_columns_and_tables_of_their_own(tmp_path: Path) -> None:
    own = printed("fedorchuk-2005")
    ours = {f"{name}-{variant.partition('-')[2]}": steps for name in ("ext3", "jfs") for variant, steps in own.items()}
    page = page_of(tmp_path, make(tmp_path, "fedorchuk-2005", ours))
    first = tables(page, "-ranking-0")[0]
    assert [column.name.replace("\n", " ") for column in first.columns][2:7] == [
        "study: s", "A ext3: s", "A ext3: off", "A jfs: s", "A jfs: off",
    ]  # fmt: skip
    assert tables(page, "-off-0-") == []  # another system: no seconds beside seconds


def test_a_phone_shows_both_seconds_and_how_far_off_without_scrolling(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(render(page_of(tmp_path, tum(tmp_path))))
    page = browser.new_context(viewport=PHONE).new_page()  # type: ignore[arg-type]
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    cells = page.locator("[id$='-ranking-0'] tbody tr:first-child > *").all()
    boxes = [cell.bounding_box() for cell in cells[:5]]
    assert all(box and box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"] for box in boxes)
