"""The command line of a maker that takes no run, and whose blocks stand in pages."""

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date

from agelab.base.errors import AgelabError
from docs.make import block, catalogue, proof
from docs.make.page import wrapped


@dataclass(frozen=True)
class Answer:
    """What a command has measured."""

    blocks: Mapping[str, str] = field(default_factory=dict)
    """Text by name of the table."""
    printed: str = ""
    """What is printed in place of the blocks."""
    status: int = 0


def parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser that shows the whole docstring of a module."""
    return argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)


def at_least(number: int) -> Callable[[str], int]:
    """Return a type of argument: a number of turns, of which it takes so many."""

    def read(text: str) -> int:
        if int(text) < number:
            raise argparse.ArgumentTypeError(f"{text}: it takes {number} at least")
        return int(text)

    return read


def run(parser: argparse.ArgumentParser, measure: Callable[[argparse.Namespace], Answer]) -> int:
    """Print what is measured; with --write put its blocks into their pages. Returns the exit code."""
    parser.add_argument("--write", action="store_true", help="put it into the pages")
    options = parser.parse_args()
    try:
        answer = measure(options)
        print(answer.printed or "\n\n".join(answer.blocks.values()))
        if options.write:
            for name, text in answer.blocks.items():
                put(name, text)
    except AgelabError as error:
        print("\n  ".join(filter(None, (f"{parser.prog}: {error}", error.hint))), file=sys.stderr)
        return error.exit_code
    return answer.status


def put(name: str, text: str) -> None:
    """Put a text into the block of that name."""
    [table] = catalogue.read().named(name)
    old = block.find(table)
    body = wrapped(text).strip("\n")
    new = block.Block(name, date.today(), body, text=proof.text(table), seconds=old.seconds)
    if (new.text, new.body, new.stale) != (old.text, old.body, old.stale):
        block.replace(table, new)
