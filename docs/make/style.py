"""``python -m docs.make.style``: hold pages, help texts and messages against the style sheet (docs/style.toml).

Exit: 0; 1 with a line for each phrase that the sheet replaces and each sentence that is too long.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

import click
from pydantic import Field

from agelab import cli
from agelab.base import places
from agelab.base.types import Frozen
from agelab.scenario import toml_files
from docs.make import block
from docs.make.page import DOCS, PROJECT

NOT_PROSE = re.compile(r"`[^`]*`|\]\([^)]*\)|<[^>]*>")
"""Code, targets of links, markup."""
SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+|\n")
OWN_LINE = ("#", "|", "-", "!", "*", ">")
"""How lines begin that do not go on with the sentence before."""


class Phrase(Frozen):
    """Words to avoid, and an example of how to say it."""

    match: str = Field(description="regular expression")
    bad: str = Field(description="a sentence with them")
    good: str = Field(description="the same in English")

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.match, re.IGNORECASE)


class Sheet(Frozen):
    """The style sheet, as far as a program can check it."""

    sentence: int = Field(gt=0, description="words of a sentence at most")
    phrases: tuple[Phrase, ...]

    def errors(self, lines: Iterable[tuple[str, str]]) -> Iterator[str]:
        """Yield what is wrong in lines, each with its place before it."""
        words, begun = 0, ""
        for place, line in lines:
            text = NOT_PROSE.sub("x", line.strip())
            for phrase in self.phrases:
                if found := phrase.pattern.search(text):
                    yield f"{place}: {found[0]!r}: say it as in {phrase.good!r}"
            if not text or text.startswith(OWN_LINE):
                words, begun = 0, place
            if text.startswith(("#", "|")):
                continue
            for number, part in enumerate(SENTENCE_END.split(text)):
                if number or not words:
                    words, begun = 0, place
                words += len(part.split())
                if words > self.sentence:
                    yield f"{begun}: a sentence of more than {self.sentence} words: make it two"
                    words = -1000
            if text.endswith((".", "!", "?", ":", ";")):
                words = 0


def read(path: Path = DOCS / "style.toml") -> Sheet:
    """Read the sheet. Raises InputError that names each error's place."""
    return toml_files.read(path, Sheet)


def page_lines(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the prose of a page, each line after its place: no code, no table of runs, nothing that a study says."""
    code = study = False
    for number, line in block.outside(page):
        if line.startswith("<!--"):
            study = line.startswith("<!-- generated: study")
        elif study:
            continue
        elif line.lstrip().startswith("```"):
            code = not code
        elif not code:
            yield f"{page.relative_to(PROJECT)}:{number}", line


def help_lines(command: click.Command, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """Yield the help texts of a command and of those below it."""
    context = click.Context(command, parent, command.name)
    texts = [command.help, command.epilog, *(getattr(param, "help", None) for param in command.params)]
    for text in filter(None, texts):
        yield f"{context.command_path} --help", " ".join(text.split())
        yield f"{context.command_path} --help", ""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if below := command.get_command(context, name):
                yield from help_lines(below, context)


def message_lines(module: Path) -> Iterator[tuple[str, str]]:
    """Yield the texts of a module that are no docstrings, each as one line."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            place = f"{module.relative_to(PROJECT)}:{node.lineno}"
            # A line each: what is no sentence, as a query of a database, is as long as it likes.
            yield from ((place, line) for part in node.value.split("\n") for line in (part, ""))


def main() -> int:
    """Return the exit code."""
    sheet = read()
    pages = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
    wrong = [
        error
        for path in [*pages, *sorted(places.PACKAGE.rglob("*.py"))]
        for error in sheet.errors(page_lines(path) if path.suffix == ".md" else message_lines(path))
    ]
    wrong += sheet.errors(help_lines(cli.agelab))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
