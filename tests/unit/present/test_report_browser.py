"""The page in a real browser: Debian's Chromium, without a window and without a network."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from struct import unpack

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from agelab.analysis.cells import load
from agelab.present.report.html import render
from agelab.present.report.page import build_page as page_of
from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from docs.make import example
from tests.build import aging_runs
from tests.build.chromium import PHONE, browser, opened

__all__ = ["browser"]
PICTURES = Path(__file__).parents[3] / "docs" / "aging"
CONTRAST = """
() => {
  const part = (value) => { value /= 255; return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4; };
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map(part);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const colour = getComputedStyle(element).backgroundColor;
      if (colour !== "rgba(0, 0, 0, 0)") return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const ratio = (one, other) => {
    const [a, b] = [light(one), light(other)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const TEXTS = "p, li, dt, dd, th, td, a, h1, h2, h3, caption, figcaption, button, svg text";
  const paper = getComputedStyle(document.body).backgroundColor;
  const words = [...document.querySelectorAll(TEXTS)]
    .filter((element) => element.checkVisibility())
    .map((element) => {
      const style = getComputedStyle(element);
      return ratio(element.closest("svg") ? style.fill : style.color, behind(element));
    });
  const marks = [...document.querySelectorAll(".drawn path[fill^='var(']")]
    .map((element) => ratio(getComputedStyle(element).fill, paper));
  return { paper, words: Math.min(...words), marks: Math.min(...marks), counted: [words.length, marks.length] };
}
"""
"""The least contrast of any text and of any bar with what is behind it, as WCAG 2 defines it."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    slowdowns = {"btrfs": 2.2, "ext4": 1.5, "reiser4": 1, "xfs</script><b>": 1.4}
    name = aging_runs.make(home, slowdowns, seeds=(1, 2), statuses={"reiser4": Status.UNSUPPORTED}, pictures=PICTURES)
    path = home / "report.html"
    path.write_text(render(page_of([load(RunDirectory(home / "runs" / name))])))
    return path


@pytest.fixture(autouse=True)
def closed(browser: Browser) -> Iterator[None]:
    """Close what a test has opened: a page that is left goes on being drawn."""
    yield
    for context in browser.contexts:
        context.close()


def column(page: Page, table: str, number: int) -> list[str]:
    return page.locator(f"#{table} tbody tr > :nth-child({number})").all_inner_texts()


def test_it_loads_alone_and_without_a_complaint(browser: Browser, report: Path) -> None:
    shown = opened(browser, report)
    assert [url for url in shown.asked if not url.startswith("data:")] == [report.as_uri()]
    assert shown.complaints == []
    charts = shown.page.locator(".charts svg").all()
    assert len(charts) > 50
    sizes = [chart.bounding_box() for chart in charts]
    assert all(size and size["width"] > 200 and size["height"] > 40 for size in sizes)
    assert shown.page.locator(".blockmap").count() == 2
    maps = [one.bounding_box() for one in shown.page.locator(".disks svg").all()]
    assert len(maps) == 4
    assert all(size and size["width"] > 400 and size["height"] > 100 for size in maps)


def test_the_policy_keeps_out_what_is_not_the_pages_own(browser: Browser, report: Path) -> None:
    shown = opened(browser, report)
    shown.page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.got_in = true";
          document.body.append(script);
          const image = document.createElement("img");
          image.src = "http://127.0.0.1:9/x.png";
          document.body.append(image);
        }"""
    )
    assert shown.page.evaluate("window.got_in") is None
    assert len(shown.complaints) == 2
    assert all("Content Security Policy" in line for line in shown.complaints)


def test_tables_are_sorted_by_mouse_and_by_keyboard(browser: Browser, report: Path) -> None:
    page = opened(browser, report).page
    head = page.locator("#part1-slowdowns thead th").nth(4)
    assert head.get_attribute("aria-sort") == "none"
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    falling = [float(text) for text in column(page, "part1-slowdowns", 5)]
    assert falling == sorted(falling, reverse=True)
    head.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert [float(text) for text in column(page, "part1-slowdowns", 5)] == sorted(falling)
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    names = column(page, "part1-slowdowns", 1)
    assert names == sorted(names)
    assert head.get_attribute("aria-sort") == "none"
    assert page.locator("#said").inner_text().startswith("sorted by test, ascending:")


def test_the_long_table_is_filtered_and_turned_page_by_page(browser: Browser, report: Path) -> None:
    page = opened(browser, report).page
    box = page.locator("[data-table=data]")
    rows = box.locator("tbody tr")
    assert rows.count() == 100
    assert box.locator("output").inner_text().startswith("rows 1 to 100 of 3")
    box.get_by_role("button", name="Next").click()
    assert box.locator("output").inner_text().startswith("rows 101 to 200 of 3")
    box.get_by_role("searchbox").focus()
    page.keyboard.type("BTRFS aged/read elapsed")
    assert column(page, "part1-results", 2) == ["aged/read", "aged/read-large"]
    page.keyboard.type(" nowhere")
    assert rows.count() == 0
    box.get_by_role("searchbox").fill("layout_score aged/map")
    assert len(rows.all()) == 3
    assert page.locator("#said").inner_text().startswith("filtered: rows 1 to 3 of 3")


def test_a_phone_scrolls_down_alone(browser: Browser, report: Path) -> None:
    page = opened(browser, report, viewport=PHONE).page
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    wide = """all => all
      .filter((one) => one.getBoundingClientRect().right > innerWidth && !one.closest(".scroll, pre, .unseen"))
      .map((one) => one.outerHTML.slice(0, 90))"""
    assert page.locator("main *").evaluate_all(wide) == []


def test_block_maps_have_the_colours_and_the_width_of_the_page(browser: Browser, report: Path) -> None:
    fill = "kind => getComputedStyle(document.querySelector(`.disks .map-${kind}`)).fill"
    kinds = ("short", "long", "whole", "own", "free")
    pages = {scheme: opened(browser, report, color_scheme=scheme).page for scheme in ("light", "dark")}
    colours = {scheme: [page.evaluate(fill, kind) for kind in kinds] for scheme, page in pages.items()}
    assert all(len(set(one)) == len(kinds) for one in colours.values())
    assert all(light != dark for light, dark in zip(colours["light"], colours["dark"], strict=True))
    pages["dark"].get_by_role("button", name="Light").click()
    assert [pages["dark"].evaluate(fill, kind) for kind in kinds] == colours["light"]
    phone = opened(browser, report, viewport=PHONE).page
    sizes = [one.bounding_box() for one in phone.locator(".disks svg").all()]
    assert len(sizes) == 4
    assert all(size and size["x"] >= 0 and 300 < size["width"] <= PHONE["width"] for size in sizes)


def test_the_first_three_sections_are_printed_and_the_page_says_so(browser: Browser, report: Path) -> None:
    page = opened(browser, report).page
    sections, note = (page.locator("article > section:not(.answer)"), page.get_by_text("Printed: the first 3 of"))
    assert sections.count() > 3 and not note.is_visible()
    page.emulate_media(media="print")
    assert [section.is_visible() for section in sections.all()][:4] == [True, True, True, False]
    assert note.is_visible()


def test_a_phone_shows_the_chart_before_the_words(browser: Browser, report: Path) -> None:
    page = opened(browser, report).page
    page.set_viewport_size({"width": 360, "height": 740})
    chart, verdict = (page.locator(f".charted {what}").first.bounding_box() for what in ("figure", ".verdict"))
    assert chart and verdict and chart["y"] + chart["height"] <= verdict["y"]
    page.set_viewport_size({"width": 1280, "height": 800})
    chart, verdict = (page.locator(f".charted {what}").first.bounding_box() for what in ("figure", ".verdict"))
    assert chart and verdict and verdict["x"] + verdict["width"] <= chart["x"]


def test_a_page_that_is_printed_has_all_that_was_filtered(browser: Browser, report: Path) -> None:
    page = opened(browser, report).page
    box = page.locator("[data-table=data]")
    rows, note = box.locator("tbody tr"), box.locator(".printed")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert rows.count() == 100  # more than a thousand: those of the screen, and a word on the rest
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not note.is_visible()
    page.emulate_media(media="print")
    page.evaluate("for (const hidden of document.querySelectorAll('.unprinted')) hidden.classList.remove('unprinted')")
    assert note.is_visible()
    page.emulate_media(media="screen")
    box.get_by_role("searchbox").fill("btrfs aged/")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert 100 < rows.count() < 1000
    assert str(rows.count()) in box.locator("output").inner_text()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert rows.count() == min(100, rows.count())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_rules_of_wcag_find_no_violation(browser: Browser, report: Path, scheme: str) -> None:
    found = Axe().run(opened(browser, report, color_scheme=scheme).page)
    assert [(one["id"], one["nodes"][0]["html"]) for one in found.response["violations"]] == []
    assert len(found.response["passes"]) > 40


def test_both_colour_schemes_have_contrast(browser: Browser, report: Path) -> None:
    found = {}
    for scheme in ("light", "dark"):
        found[scheme] = opened(browser, report, color_scheme=scheme).page.evaluate(CONTRAST)
        assert min(found[scheme]["counted"]) > 200
        assert found[scheme]["words"] >= 4.5
        assert found[scheme]["marks"] >= 3
    assert found["light"]["paper"] == "rgb(255, 255, 255)"
    assert found["dark"]["paper"] != found["light"]["paper"]


def test_the_switch_turns_the_colours(browser: Browser, report: Path) -> None:
    page = opened(browser, report, color_scheme="dark").page
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(paper)
    page.get_by_role("button", name="Light").click()
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    page.reload()
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    page.get_by_role("button", name="Dark").press("Enter")
    assert page.evaluate(paper) == dark


def test_a_reader_without_eyes_or_mouse_finds_the_way(browser: Browser, report: Path) -> None:
    page = opened(browser, report).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    for role in ("banner", "navigation", "main", "contentinfo"):
        assert page.get_by_role(role).count() == 1
    assert page.locator("table:not(:has(caption)), th:not([scope])").count() == 0
    unnamed = "all => all.filter((one) => !(one.ariaLabel || one.labels?.length || one.textContent.trim())).length"
    assert page.locator("a, button, input, [role=img], [role=region]:not([aria-labelledby])").evaluate_all(unnamed) == 0
    lost = "all => all.filter((one) => !document.getElementById(one.hash.slice(1))).length"
    assert page.locator("a[href^='#']").evaluate_all(lost) == 0
    levels = page.locator("h1, h2, h3").evaluate_all("all => all.map((one) => Number(one.tagName[1]))")
    assert all(after - before <= 1 for before, after in pairwise(levels))
    page.locator("th button").first.focus()
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_without_its_script_the_page_can_be_read(browser: Browser, report: Path) -> None:
    page = opened(browser, report, java_script_enabled=False).page
    assert page.locator(".verdict").first.inner_text().startswith("Not known yet")
    assert page.locator("#part1-slowdowns tbody tr").count() == 27
    assert page.locator("noscript p").is_visible()
    assert page.get_by_role("button").count() == 0


def test_printing_shows_all_of_a_table_in_black_on_white(browser: Browser, report: Path) -> None:
    page = opened(browser, report, color_scheme="dark").page
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    hidden = "all => all.filter((one) => one.scrollHeight > one.clientHeight + 1).length"
    assert page.locator(".scroll").evaluate_all(hidden) == 0
    assert not page.locator("nav").is_visible()
    # An answer that is longer than a page must not leave the first one empty.
    assert page.evaluate("getComputedStyle(document.querySelector('.answer')).breakInside") == "auto"
    assert len(page.pdf()) > 50_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_picture_of_the_top_is_sharp_and_small(browser: Browser, report: Path, scheme: str) -> None:
    taken = example.picture(browser, report, scheme)
    width, height = unpack(">II", taken[16:24])
    assert taken.startswith(b"\x89PNG")
    assert width == 2 * example.WIDTH
    assert 600 < height <= 2 * example.HIGHEST + example.MARGIN
    assert len(taken) < example.LARGEST
