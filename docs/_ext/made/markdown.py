"""Markdown out of plain text."""

import re
from collections.abc import Iterable, Sequence


def plain(text: str) -> str:
    """Text that means nothing but itself, in one line."""
    return re.sub(r"([\\`*_{}\[\]<>|$#~])", r"\\\1", " ".join(text.split()))


def script(text: str) -> str:
    """Lines as they are typed, in one cell of a table."""
    return "<br>".join(code(line) for line in text.strip().splitlines())


def code(text: str) -> str:
    """Text as it is typed, in one line: also one with backquotes or bars in it."""
    text = " ".join(text.split()).replace("|", "\\|")
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest else ""
    return f"{fence}{space}{text}{space}{fence}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells are Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"
