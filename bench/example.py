"""The report that the documents show, and the README's pictures of it: ``python -m bench.example RUN``.

Writes docs/example-report.html, and its top in light and dark colours as docs/report.png and docs/report-dark.png.
RUN is a name of agelab list, or latest; docs/report.md says which.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from agelab.analysis.cells import load
from agelab.cli.options import open_store
from agelab.errors import AgelabError
from agelab.report.html import render
from agelab.report.page import build_page
from agelab.results import run_lookup
from agelab.results.run_directory import RunDirectory

PROJECT = Path(__file__).resolve().parents[1]
PAGE = PROJECT / "docs" / "example-report.html"
PICTURES = {"light": PROJECT / "docs" / "report.png", "dark": PROJECT / "docs" / "report-dark.png"}
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


def main() -> int:
    """Make all three from a run. Exit code: 2 for wrong input."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        run = run_lookup.find(open_store().runs, sys.argv[1])
        text = render(build_page([load(run)]))
        if found := local(text, places(run)):
            raise AgelabError(f"the page names places of this machine: {', '.join(found)}")
    except AgelabError as error:
        print(f"bench.example: {error}", file=sys.stderr)
        return error.exit_code
    PAGE.write_text(text)
    print(f"{PAGE}: {len(text.encode()) / 1e6:.2f} MB")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        for scheme, path in PICTURES.items():
            taken = picture(browser, PAGE, scheme)
            path.write_bytes(taken)
            print(f"{path}: {len(taken) / 1e3:.0f} kB")
            if len(taken) > LARGEST:
                print(f"bench.example: more than {LARGEST / 1e3:.0f} kB", file=sys.stderr)
        browser.close()
    return 0


def places(run: RunDirectory) -> list[str]:
    """Directories of this machine that are nobody else's business: of the store, the project, the user, the command."""
    begun = run.plan().command.get("directory", "")
    return [str(run.path), str(run.path.parent.parent), str(PROJECT), str(Path.home()), str(begun)]


def local(text: str, directories: Iterable[str]) -> list[str]:
    """List the directories that a page names, without the root."""
    return [one for one in dict.fromkeys(directories) if len(one) > 1 and one in text]


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
        for one in opened.locator("h1, .answer:first-of-type :is(.verdict, li)").all()
        if (box := one.bounding_box())
    ]
    if not bounds:
        raise AgelabError(f"{shown} has no answer")
    top = bounds[0]["y"] - MARGIN
    ends = [box["y"] + box["height"] - top for box in bounds]
    height = max(end for end in ends if end <= HIGHEST) + 3
    taken = opened.screenshot(
        clip={"x": 0, "y": top, "width": WIDTH, "height": height}, full_page=True, type="png"
    )
    context.close()
    return taken


if __name__ == "__main__":
    sys.exit(main())
