"""Plain text as Markdown."""

import re
from collections.abc import Iterable, Sequence

from docs.make.page import grid


def plain(text: str) -> str:
    """Escape text so that Markdown shows it as it is, in one line."""
    return re.sub(r"([\\`*_{}\[\]<>|$#~])", r"\\\1", " ".join(text.split()))


def script(text: str) -> str:
    """Write lines of code into one cell of a table."""
    return "<br>".join(code(line) for line in text.strip().splitlines())


def code(text: str) -> str:
    """Write text as code, in one line; it may have backquotes and bars."""
    text = " ".join(text.split()).replace("|", "\\|")
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest else ""
    return f"{fence}{space}{text}{space}{fence}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table whose cells are Markdown."""
    return "\n".join(grid(head, rows)) + "\n"
