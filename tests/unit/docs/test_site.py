"""The documentation as a site: it is built without a warning, complete, and alone."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from playwright.sync_api import Browser

from agelab.analysis.published import study
from agelab.base.verbs import VERBS
from agelab.cli.schema import KINDS, schema_of
from agelab.scenario import selection
from agelab.scenario.metrics import METRICS
from docs.make.generated.keys import properties
from tests.build.chromium import PHONE, browser, opened

__all__ = ["browser"]
PROJECT = Path(__file__).parents[3]
HOST = "http://agelab.test"
"""A host that is none: the browser is given the site's files for it."""


class Read(HTMLParser):
    """A built page: what it loads, where it leads, what can be led to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.leads: list[str] = []
        self.ids: set[str] = set()
        self.text: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids.add(found.get("id", ""))
        if tag == "a":
            self.leads.append(found.get("href", "#"))
        else:
            self.loads += [found[name] for name in ("src", "href") if name in found]

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def says(self, text: str) -> bool:
        return " ".join(text.split()) in " ".join("".join(self.text).split())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("site")
    words = [
        "-W", "--keep-going", "-n", "-q", "-b", "html", "-d", str(made / "doctrees"), "docs",
        str(made / "html"),
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *words], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return made / "html"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Read]:
    return {path: Read(path) for path in site.rglob("*.html")}


def test_every_page_is_there(site: Path, pages: dict[Path, Read]) -> None:
    sources = [path.relative_to(PROJECT / "docs") for path in (PROJECT / "docs").rglob("*.md")]
    assert len(sources) > 35
    assert {site / path.with_suffix(".html") for path in sources} <= set(pages)


def test_nothing_is_loaded_from_elsewhere_and_every_link_leads_somewhere(pages: dict[Path, Read]) -> None:
    lost = []
    for path, page in pages.items():
        for url in page.loads:
            parts = urlsplit(url)
            assert parts.scheme in ("", "data") and not parts.netloc, (path, url)
        for url in page.loads + page.leads:
            place, anchor = urldefrag(url)
            if urlsplit(place).scheme:
                continue
            target = (path.parent / unquote(urlsplit(place).path)).resolve() if place else path
            known = pages.get(target)
            if not target.exists() or (anchor and known and unquote(anchor) not in known.ids):
                lost.append(f"{path.name}: {url}")
    assert lost == []


def test_the_reference_has_what_the_code_has(site: Path, pages: dict[Path, Read]) -> None:
    def page(name: str) -> Read:
        return pages[site / f"{name}.html"]

    for verb in VERBS:
        assert f"agelab-{verb}" in page("reference/cli").ids
    assert page("reference/cli").says("--fail DRIVE@STEP[:N][+SECONDS]")
    assert page("reference/cli").says("With --kernel more than once it is a sweep")
    for name, metric in METRICS.items():
        assert page("reference/result").says(name) and page("reference/result").says(metric.meaning)
    for kind in set(KINDS) - {"claims"}:  # those of a study: its file is the example
        where = page(f"reference/{kind if kind in ('scenario', 'result') else 'files'}")
        for one in (schema := schema_of(kind), *schema.get("$defs", {}).values()):
            for key, what in properties(one).items():
                assert where.says(key) and where.says(what["description"]), key


def test_each_study_has_a_page_that_cites_it_and_says_what_it_leaves_open(site: Path, pages: dict[Path, Read]) -> None:
    for name in study.study_names():
        page, scenario = pages[site / "studies" / f"{name}.html"], selection.select(name).scenario
        said = scenario.citation
        assert said
        for text in (
            said.title,
            said.author,
            str(said.year),
            said.measured_on,
            *(one.says for one in scenario.unstated),
        ):
            assert page.says(text), text
        assert all(page.says(variant.name) for variant in scenario.variants)
        assert page.says(f"scenarios/published/{name}.claims.toml")
        assert page.says(f"make scenario NAME={name}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser_it_is_alone_and_fits_a_phone(browser: Browser, site: Path, scheme: str) -> None:
    shown = opened(browser, site / "index.html", viewport=PHONE, color_scheme=scheme)
    for name in ("index", "faq", "reference/scenario", "reference/cli", "studies/aging", "validation"):
        shown.page.goto((site / f"{name}.html").as_uri())
        assert shown.page.evaluate("document.documentElement.scrollWidth") == PHONE["width"], name
    paper = shown.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
    assert shown.complaints == []
    assert [url for url in shown.asked if urlsplit(url).scheme not in ("file", "data")] == []


def test_code_fits_its_column_and_the_sidebar_a_screen(browser: Browser, site: Path) -> None:
    shown = opened(browser, site / "index.html", viewport={"width": 1280, "height": 900})
    for name in ("quickstart", "compare", "capsules", "howto/workloads", "howto/cluster"):
        shown.page.goto((site / f"{name}.html").as_uri())
        wide = "[...document.querySelectorAll('pre')].filter(code => code.scrollWidth > code.clientWidth).length"
        assert shown.page.evaluate(wide) == 0, name
    assert len(shown.page.query_selector_all(".sidebar-tree .toctree-l1")) <= 30
    assert shown.complaints == []


def test_it_can_be_searched(browser: Browser, site: Path) -> None:
    shown = opened(browser, site / "index.html")
    shown.asked.clear()
    shown.page.route(f"{HOST}/**", lambda route: route.fulfill(path=site / urlsplit(route.request.url).path[1:]))
    shown.page.goto(f"{HOST}/search.html?q=platters")
    shown.page.get_by_role("link", name="Drives, machines, the block layer").last.wait_for()
    shown.page.get_by_text("platters").first.wait_for()
    assert shown.complaints == []
    assert [url for url in shown.asked if not url.startswith(HOST)] == []
