"""The pages in Markdown: no line is too long, and every path of the code that they name is there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agelab.analysis.published.study import all_studies
from agelab.runner.request.options import OPTIONS, make_variable

PROJECT = Path(__file__).parents[3]
PAGES = [PROJECT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES += sorted((PROJECT / "docs").rglob("*.md"))
MAKEFILE = (PROJECT / "Makefile").read_text()
WIDTH = 160
MADE = ("<!-- table:", "<!-- generated")
"""Marks before a table that a program has made; ``<!-- end -->`` follows it."""
PATH = re.compile(
    r"(?<![\w/.~-])(?:agelab|harness|bench|docs|images|packer|scenarios|tests|validation)/[\w./-]*[\w/](?![\w<*{])"
)
"""A path in the repository, but for patterns such as ``scenarios/<name>.toml``."""
ELSEWHERE = {"agelab/share", "scenarios/kernels/reiser4.patch"}
"""Paths in a wheel, and in the checkout of a user."""
CONTRADICTIONS = "## Its figures against each other\n"
COLUMNS = ("what contradicts what", "kept", "witness outside the study", "the other choice would give")


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


def lacks_contradictions(name: str, page: str) -> str:
    """Say in one line what a study's page lacks of the table of its contradictions; nothing where it has it."""
    section = page.partition(CONTRADICTIONS)[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")
    ]
    if not rows or rows[0] != [*COLUMNS] or len(rows) < 3:
        return f"docs/studies/{name}.md lacks the table {CONTRADICTIONS.strip()!r}: | {' | '.join(COLUMNS)} |"
    unfinished = [row[0] for row in rows[2:] if len(row) != len(COLUMNS) or not all(row)]
    return f"docs/studies/{name}.md: a cell is empty in the row of {unfinished[0]!r}" if unfinished else ""


@pytest.mark.parametrize("name", [study.name for study in all_studies()])
def test_every_page_of_a_study_has_the_table_of_its_contradictions(name: str) -> None:
    assert lacks_contradictions(name, (PROJECT / "docs" / "studies" / f"{name}.md").read_text()) == ""


@pytest.mark.parametrize(
    ("rows", "said"),
    [("", "lacks the table"), ("| a | b | c | d |\n", ""), ("| a | b |  | d |\n", "a cell is empty in the row of 'a'")],
)
def test_a_page_without_its_table_is_told_in_one_line(rows: str, said: str) -> None:
    head = f"| {' | '.join(COLUMNS)} |\n|---|---|---|---|\n"
    found = lacks_contradictions("mine", f"# Mine\n\n{CONTRADICTIONS}\n{head}{rows}\n## Next\n| e |\n")
    assert said in found and bool(found) == bool(said) and "\n" not in found
    assert "lacks the table" in lacks_contradictions("mine", "# Mine\n")
