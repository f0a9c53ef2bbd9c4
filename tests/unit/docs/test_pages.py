"""The pages in Markdown: no line is too long, and every path of the code that they name is there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agelab.runner.request.options import OPTIONS, make_variable

PROJECT = Path(__file__).parents[3]
PAGES = [PROJECT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES += sorted((PROJECT / "docs").rglob("*.md"))
MAKEFILE = (PROJECT / "Makefile").read_text()
WIDTH = 160
MADE = ("<!-- table:", "<!-- drives", "<!-- machines", "<!-- options")
"""Marks before a table that a program has made; ``<!-- end -->`` follows it."""
PATH = re.compile(
    r"(?<![\w/.~-])(?:agelab|harness|bench|docs|images|packer|scenarios|tests|validation)/[\w./-]*[\w/](?![\w<*{])"
)
"""A path in the repository, but for patterns such as ``scenarios/<name>.toml``."""
ELSEWHERE = {"agelab/share", "scenarios/kernels/reiser4.patch"}
"""Paths in a wheel, and in the checkout of a user."""


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a page outside code blocks and outside tables that a program has made."""
    code = made = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif line.startswith("<!--"):
            made = line.startswith(MADE)
        elif not code and not (made and line.startswith("|")):
            yield number, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_no_line_is_too_long(page: Path) -> None:
    long = [number for number, line in prose(page) if len(line) > WIDTH and "<picture>" not in line]
    assert long == []


@pytest.mark.parametrize("page", [*PAGES[:2], *PAGES[3:]], ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_path_that_a_page_names_is_there(page: Path) -> None:
    named = {found.rstrip("./") for _, line in prose(page) for found in PATH.findall(line)}
    assert {path for path in named - ELSEWHERE if not (PROJECT / path).exists()} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_variable_that_a_page_gives_to_make_is_one_of_make(page: Path) -> None:
    commands = re.findall(r"\bmake [a-z][a-z-]* ([^`\n#&|;]*)", page.read_text())
    given = {name for command in commands for name in re.findall(r"\b([A-Z][A-Z_]*)=", command)}
    [others] = re.findall(r"^export (.*) \$\(OPTIONS_run\)$", MAKEFILE, re.M)
    assert given - {*map(make_variable, OPTIONS), *others.split(), "SNAPSHOT"} == set()


def test_every_link_of_the_readme_leads_to_a_file() -> None:
    links = set(re.findall(r"\]\(([\w./-]+)", (PROJECT / "README.md").read_text()))
    assert len(links) > 15
    assert {link for link in links if not (PROJECT / link).exists()} == set()


def test_every_test_that_a_page_names_is_there() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    files = list((PROJECT / "tests").rglob("test_*.py"))
    named = set(re.findall(r"\btest_\w+\.py\b", text))
    functions = set(re.findall(r"`(test_\w+?)_?(?:\.\.\.)?`", text))
    assert len(named) > 20 and len(functions) > 20
    assert named - {path.name for path in files} == set()
    code = "\n".join(path.read_text() for path in files)
    assert {name for name in functions if f"def {name}" not in code} == set()
