"""Benches whose tables stand in the documents: their command line, and a place between two marks of a page."""

import argparse
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agelab.cli.options import open_store
from agelab.cli.run_options import execute
from agelab.errors import AgelabError, InputError
from agelab.results import run_lookup
from agelab.results.run_directory import RunDirectory
from agelab.runner.request.options import RunOptions

DOCS = Path(__file__).resolve().parents[1] / "docs"
END = "<!-- end -->\n"
WIDTH = 160
"""Characters of a line of a page (tests/unit/test_pages.py)."""


def line(cells: Sequence[str]) -> str:
    """Write a row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def wrapped(text: str) -> str:
    """Break lines of prose that are wider than a page's; rows of tables, headings and pictures stay whole."""
    return "\n".join(map(_wrapped, text.split("\n")))


def _wrapped(one: str) -> str:
    if len(one) <= WIDTH or one.startswith(("|", "#", "![")):
        return one
    indent = len(one) - len(one.lstrip(" -"))
    return textwrap.fill(
        one, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )


def put(page: Path, maker: str, text: str) -> None:
    """Replace the text between the mark of ``maker`` and the next end. Raises AgelabError without marks."""
    begin = f"<!-- made by: {maker} -->\n"
    head, _, rest = page.read_text().partition(begin)
    _, end, tail = rest.partition(END)
    if not end:
        raise AgelabError(f"{page} has no place for the table: {begin.strip()}")
    page.write_text(head + begin + wrapped(text) + END + tail)


def print_report(doc: str | None, page: Path, maker: str, report: Callable[[], str]) -> int:
    """Print what ``report`` returns; with --write put it into the page, too. Raises AgelabError without marks."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    text = report()
    print(text)
    if options.write:
        put(page, maker, text)
    return 0


def between(page: Path, maker: str) -> str:
    """Return the text between the mark of ``maker`` and the next end. Raises AgelabError without marks."""
    _, begin, rest = page.read_text().partition(f"<!-- made by: {maker} -->\n")
    text, end, _ = rest.partition(END)
    if not (begin and end):
        raise AgelabError(f"{page} has no place for the table of {maker}")
    return text


def command(
    doc: str | None,
    scenario: str,
    seeds: str,
    report: Callable[[Sequence[RunDirectory]], str],
    write: Callable[[Sequence[RunDirectory], str], None],
    asked: Sequence[Mapping[str, str]] = ({},),
) -> int:
    """Run a scenario, or take runs that are there; print their report, and with --write put it where it belongs.

    Where the run seeds are several, others may be chosen. ``asked`` has options of each run. Returns the exit code.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.set_defaults(seeds=seeds)
    if "," in seeds:
        parser.add_argument("--seeds", default=seeds)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--run", help="runs that are there, instead of a new one, with commas")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    try:
        if options.run:
            store = open_store()
            runs = [run_lookup.find(store.runs, name) for name in options.run.split(",")]
            for other in (run for run in runs if run.plan().scenario != scenario):
                raise InputError(
                    f"{other.name} is a run of scenario {other.plan().scenario}: this table is of {scenario}",
                    hint=f"agelab list names runs; without --run a new one is made: make scenario NAME={scenario}",
                )
        else:
            usual = RunOptions(name=scenario, seeds=options.seeds, jobs=options.jobs)
            runs = [execute(usual.changed(**more)) for more in asked]
        text = report(runs)
        print(text)
        if options.write:
            write(runs, text)
    except AgelabError as error:
        print(f"bench.{scenario}: {error}", file=sys.stderr)
        return error.exit_code
    return 0
