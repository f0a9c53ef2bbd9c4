"""Pages and pictures of hostile names in a real browser: whatever a reader clicks, one script runs, and it is ours."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, CDPSession, Dialog, Page

from agelab.analysis.cells import load
from agelab.analysis.vega import plot
from agelab.base.sanitize import escape_controls
from agelab.evaluate.layout.picture import MappedDisk, draw_disks
from agelab.present.report.html import render
from agelab.present.report.page import build_page
from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from tests.build import aging_runs, hostile_runs
from tests.build.chromium import browser
from tests.build.hostile_runs import HOSTILE
from tests.build.run_readers import OBEYED

__all__ = ["browser"]
STRANGE = (
    "img:not([src^='data:']), main script:not([type='application/json']), "
    "iframe, object, embed, base, meta[http-equiv='refresh'], main b, main style, [onerror], [onload], [onclick]"
)
"""Elements that no page of ours has."""
RUNS_SCRIPTS = (
    '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(2)</script>'
    '<foreignObject><body xmlns="http://www.w3.org/1999/xhtml"><img src="x" onerror="alert(3)"/></body></foreignObject>'
    '<image href="http://127.0.0.1:9/x"/><desc>"&gt;<b>&lt;script&gt;alert(4)&lt;/script&gt;</b></desc></svg>'
)
"""A picture that somebody else has put into a run."""
USED = (
    "a:visible, button:visible:not(thead button), "
    "thead th:first-child button:visible, thead th:last-child button:visible"
)
"""Links, and buttons: of those that sort a table by a column the first and the last, since one script serves all."""
VARIANTS = 8
"""So many have all hostile names between them: a page with one for each is as dangerous, and slow to click through."""


@dataclass
class Watched:
    """A page, all that it has said and asked for, and the scripts that ran in it."""

    page: Page
    session: CDPSession
    heard: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    """The hash of each script that was compiled in a world of the page's own; Playwright's own world is another."""

    def __post_init__(self) -> None:
        self.page.on("console", lambda message: self.heard.append(message.text))
        self.page.on("pageerror", lambda error: self.heard.append(str(error)))
        self.page.on("dialog", self._refuse)
        self.page.on("popup", lambda popup: self.heard.append(popup.url))
        self.page.on("download", lambda download: self.heard.append(download.url))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.session.on("Debugger.scriptParsed", self._note)
        self.session.send("Debugger.enable")

    def open(self, path: Path) -> None:
        """Open a page, and forget the one before: what that still had to say comes before the empty one."""
        self.page.goto("about:blank")
        for heard in (self.heard, self.asked, self.scripts):
            heard.clear()
        self.page.goto(path.as_uri())
        self._hear_out()

    def stayed(self, path: Path) -> None:
        """Fail where the page has said something, asked for something or led elsewhere."""
        self._hear_out()
        assert not self.heard
        assert [asked for asked in self.asked if not asked.startswith("data:")] == [path.as_uri()]
        assert self.page.url.partition("#")[0] == path.as_uri()

    def _hear_out(self) -> None:
        """Wait for the scripts that ran so far: on a busy host a page has loaded before its debugger tells of them."""
        self.session.send("Debugger.enable")

    def _refuse(self, dialog: Dialog) -> None:
        self.heard.append(dialog.message)
        dialog.dismiss()

    def _note(self, script: dict[str, Any]) -> None:
        if script["executionContextAuxData"]["isDefault"]:
            self.scripts.append(script["hash"])


@pytest.fixture(scope="module")
def watched(browser: Browser) -> Iterator[Watched]:
    context = browser.new_context()
    page = context.new_page()
    yield Watched(page, context.new_cdp_session(page))
    context.close()


@contextmanager
def opened(watched: Watched, path: Path) -> Iterator[Watched]:
    watched.open(path)
    yield watched
    watched.stayed(path)


def use(page: Page) -> None:
    """Do what a reader can do: buttons, each link, each search for each hostile text, colours, print."""
    for one in page.locator(USED).all():
        one.focus()
        page.keyboard.press("Enter")
    for box in page.locator("input[type=search]").all():
        for word in (HOSTILE["script"], HOSTILE["template"], ""):
            box.fill(word)
    page.emulate_media(media="print", color_scheme="dark")
    page.emulate_media(media="screen", color_scheme="light")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")


def written(home: Path, *runs: RunDirectory) -> Path:
    path = home / "page.html"
    path.write_text(render(build_page([load(run) for run in runs])), encoding="utf-8", errors="strict")
    return path


def aged(home: Path) -> RunDirectory:
    """A run of a study with a chart, a table and an answer of every kind, whose variants have hostile names."""
    each = [escape_controls(word, kept="") for word in HOSTILE.values() if word.strip()]
    words = ["".join(each[first::VARIANTS]) for first in range(VARIANTS)]
    slowdowns = {word: 1 + number / 7 for number, word in enumerate(words)}
    dead = {words[1]: Status.PANICKED, words[-1]: Status.UNSUPPORTED}
    name = aging_runs.make(home, slowdowns, statuses=dead, reason=HOSTILE["script"])
    run = RunDirectory(home / "runs" / name)
    for number, cell in enumerate(run.plan().cells):
        maps = run.cell_directory(number) / "maps"
        maps.mkdir(exist_ok=True)
        drawn = draw_disks(cell.variant, [MappedDisk(cell.variant, 1 << 30, None, None)])
        (maps / "block-map.svg").write_text(RUNS_SCRIPTS if number % 3 else drawn)
        (maps / "<img src=x onerror=alert(5)>.svg").write_text(RUNS_SCRIPTS)
    return run


def test_a_page_of_hostile_names_runs_our_script_alone_whatever_is_clicked(watched: Watched, tmp_path: Path) -> None:
    runs = [hostile_runs.hostile(tmp_path, *HOSTILE.values()), aged(tmp_path)]
    with opened(watched, written(tmp_path, *runs)) as shown:
        ours = list(shown.scripts)
        assert len(ours) == 1, "the page's own script, and no other"
        words = shown.page.locator("body").inner_text()
        assert shown.page.locator(STRANGE).count() == 0 and not OBEYED.search(shown.page.title())
        assert "<script>alert" in words and "\\u202e" in words and "{{ 7 * 7 }}" in words
        use(shown.page)
        assert shown.page.locator(STRANGE).count() == 0
    assert shown.scripts == ours


def test_a_script_that_does_run_is_seen(watched: Watched, tmp_path: Path) -> None:
    """The watch itself: a page without our escapes and policy is found out by each of its ways."""
    path = tmp_path / "page.html"
    path.write_text(f"<!DOCTYPE html><body>{HOSTILE['script']}<p id=x onclick='y=1'>a</p></body>")
    with pytest.raises(AssertionError), opened(watched, path) as shown:
        shown.page.locator("#x").click()
    assert len(watched.scripts) > 2 and watched.heard


@pytest.mark.parametrize("name", HOSTILE)
def test_a_picture_of_hostile_names_runs_no_script_when_it_is_opened_alone(
    watched: Watched, tmp_path: Path, name: str
) -> None:
    word = HOSTILE[name]
    pictures = {
        "block-map.svg": draw_disks(word, [MappedDisk(word, 1 << 30, None, None)]),
        "plot.svg": plot(word, word, word, {word: [(0, 0.5), (1, None)], f"{word}2": [(0, 1.5)]}, [word, f"x{word}"]),
    }
    for file, text in pictures.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
        with opened(watched, tmp_path / file) as shown:
            assert shown.page.locator("script, foreignObject, image, use, a, [onload], [href]").count() == 0
        assert shown.scripts == []
