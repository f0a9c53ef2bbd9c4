"""What ``agelab compare`` found, in Markdown: for the summary of a CI job."""

from collections.abc import Iterator, Mapping, Sequence

from agelab.analysis.comparison import Comparison, ComparisonTable
from agelab.base.sanitize import escape_markdown
from agelab.present.view.ratio_table import two_sides
from agelab.scenario.seeds import seeds_text

HEAD = ("step", "metric", "A", "B", "B/A", "from", "to", "verdict")


def markdown_lines(
    found: Sequence[Comparison],
    tables: Sequence[Sequence[ComparisonTable]],
    doubts: Mapping[int, Sequence[str]],
) -> Iterator[str]:
    """Yield a heading and a table for each pair of sides."""
    for one, table in zip(found, tables, strict=True):
        for other, judged in zip(one.others, table, strict=True):
            base = one.base
            yield f"## {escape_markdown(base.name or base.run.name)}: A and B"
            yield ""
            for letter, side in (("A", base), ("B", other)):
                name = f"{side.run.name} {side.name}".strip()
                yield f"- {letter}: {escape_markdown(name)}, {side.cell.kernel}, {seeds_text(side.cells)}"
            yield from (f"- {escape_markdown(line)}" for line in doubts[id(other)])
            yield from ("", _row(HEAD), "|---|---|" + "---:|" * 5 + "---|")
            for metric, step, cells in two_sides(judged.rows):
                yield _row((step.strip(), metric, *cells))
            yield ""


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(escape_markdown(one.strip()) for one in cells) + " |"
