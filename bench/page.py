"""Tables of a bench in the documents: between a mark that names the command, and an end mark."""

from collections.abc import Sequence
from pathlib import Path

from agelab.errors import AgelabError

DOCS = Path(__file__).resolve().parents[1] / "docs"
END = "<!-- end -->\n"


def line(cells: Sequence[str]) -> str:
    """One row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def put(page: Path, maker: str, text: str) -> None:
    """Replace what stands between the mark of ``maker`` and the next end. Raises AgelabError without marks."""
    begin = f"<!-- made by: {maker} -->\n"
    head, _, rest = page.read_text().partition(begin)
    _, end, tail = rest.partition(END)
    if not end:
        raise AgelabError(f"{page} has no place for the table: {begin.strip()}")
    page.write_text(head + begin + text + END + tail)
