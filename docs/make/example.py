"""The report that the documents show, docs/example-report.html, and README's pictures of its top, light and dark."""

import re
import tempfile
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from agelab.analysis.cells import load
from agelab.base.errors import AgelabError
from agelab.present.report.html import render
from agelab.present.report.page import build_page
from agelab.results.run_directory import RunDirectory
from docs.make.catalogue import Made, Table
from docs.make.page import DOCS, PROJECT

PAGE = DOCS / "example-report.html"
PICTURES = {"light": Path("report.png"), "dark": Path("report-dark.png")}
NAME = re.compile(r"\d{8}-\d{6}-[a-z0-9-]+")
CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-lcd-text",
)  # fmt: skip
"""The browser alone, and the same pixels on every host."""
WIDTH, HIGHEST, MARGIN = 1100, 600, 20
"""Pixels of the page, which a picture has twice."""
LARGEST = 350_000
"""Bytes of a picture."""


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Make the page, its pictures, and the line of README that shows them."""
    [run] = runs
    page = build_page([load(run)])
    text = render(page)
    if directories := local(text, places(run)):
        raise AgelabError(f"the page names places of this machine: {', '.join(directories)}")
    files = {Path("example-report.html"): _unless_the_same(text).encode()}
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        shown = Path(directory) / "report.html"
        shown.write_text(text)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        for scheme, path in PICTURES.items():
            files[path] = picture(browser, shown, scheme)
        browser.close()
    for path, content in files.items():
        if path.suffix == ".png" and len(content) > LARGEST:
            raise AgelabError(f"docs/{path} would have more than {LARGEST / 1e3:.0f} kB")
    answer = page.parts[0].answers[0]
    named = f"{answer.named}. " if answer.named else ""
    description = f"The top of a report: {answer.question} {named}{answer.verdict}"
    dark, light = (f"docs/{PICTURES[scheme]}" for scheme in ("dark", "light"))
    return Made(
        f'[<picture><source media="(prefers-color-scheme: dark)" srcset="{dark}"><img src="{light}" '
        f'alt="{escape(description, quote=True)}"></picture>](docs/example-report.html)',
        files,
    )


def _unless_the_same(text: str) -> str:
    """Return the page that is there where nothing differs but the name of the run, which is one of a store."""
    there = PAGE.read_text() if PAGE.exists() else ""
    return there if NAME.sub("", there) == NAME.sub("", text) else text


def places(run: RunDirectory) -> list[str]:
    """Directories of this machine that are nobody else's business: of the store, the project, the user, the command."""
    begun = run.plan().command.get("directory", "")
    return [str(run.path), str(run.path.parent.parent), str(PROJECT), str(Path.home()), str(begun)]


def local(text: str, directories: Iterable[str]) -> list[str]:
    """List the directories that a page names, without the root."""
    return [directory for directory in dict.fromkeys(directories) if len(directory) > 1 and directory in text]


def picture(browser: Browser, shown: Path, scheme: str) -> bytes:
    """Capture the top of the page as PNG, from its title to the last line of the first answer that fits."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": HIGHEST},
        device_scale_factor=2,
        color_scheme="dark" if scheme == "dark" else "light",
    )
    opened = context.new_page()
    opened.goto(shown.as_uri())
    bounds = [
        box
        for element in opened.locator("h1, .answer:first-of-type :is(.verdict, li)").all()
        if (box := element.bounding_box())
    ]
    if not bounds:
        raise AgelabError(f"{shown} has no answer")
    top = bounds[0]["y"] - MARGIN
    ends = [box["y"] + box["height"] - top for box in bounds]
    height = max(end for end in ends if end <= HIGHEST) + 3
    taken = opened.screenshot(clip={"x": 0, "y": top, "width": WIDTH, "height": height}, full_page=True, type="png")
    context.close()
    return taken
