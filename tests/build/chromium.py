"""The browser in which pages are opened: the fixture ``browser``, to import."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from docs.make.example import CHROMIUM, FLAGS


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield chromium
        chromium.close()


PHONE = {"width": 360, "height": 740}


@dataclass
class Opened:
    """The page, and what it has said and asked for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


def opened(browser: Browser, report: Path, **options: object) -> Opened:
    shown = Opened(browser.new_context(**options).new_page())  # type: ignore[arg-type]
    shown.page.on("console", lambda message: shown.complaints.append(message.text))
    shown.page.on("pageerror", lambda error: shown.complaints.append(str(error)))
    shown.page.on("request", lambda request: shown.asked.append(request.url))
    shown.page.goto(report.as_uri())
    return shown
