"""The browser in which pages are opened: a plugin of pytest with the fixture ``browser``."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from docs.make.example import CHROMIUM, FLAGS


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield chromium
        chromium.close()
