"""Parts of pages that say what the code says: verbs, options, keys of files, drives, metrics, studies; options.mk.

    <!-- generated: keys scenario -->
    ...
    <!-- end -->

``make format`` writes them, ``make check`` holds them against the code.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from docs.make.generated import hardware, keys, options, programs, studies, verbs
from docs.make.page import DOCS, PROJECT, wrapped

MAKE = "options.mk"
END = "<!-- end -->"
BLOCK = re.compile(
    rf"^(?P<mark><!-- generated: (?P<part>\w+)(?: (?P<arguments>[^\n]+?))? -->)\n(?:.*?\n)??{END}$",
    re.MULTILINE | re.DOTALL,
)
PARTS: dict[str, Callable[..., str]] = {
    "cli": verbs.sections,
    "drives": hardware.table_of_drives,
    "keys": keys.sections,
    "machines": hardware.table_of_machines,
    "metrics": programs.table_of_metrics,
    "options": options.table_of_options,
    "programs": programs.sections,
    "study": studies.sections,
}
"""The Markdown of each part; further words in a mark are its arguments."""


def expand(text: str) -> str:
    """Return the text of a page with what the code says today between its marks."""

    def block(found: re.Match[str]) -> str:
        body = PARTS[found["part"]](*(found["arguments"] or "").split())
        return f"{found['mark']}\n{wrapped(body.strip())}\n{END}"

    return BLOCK.sub(block, text)


def stale() -> Iterator[tuple[Path, str]]:
    """Yield the pages, and options.mk, that say something else than the code, with what they should say."""
    if (today := options.make_text()) != (PROJECT / MAKE).read_text(encoding="utf-8"):
        yield Path(MAKE), today
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if (today := expand(text)) != text:
            yield page.relative_to(PROJECT), today


def write() -> None:
    """Write these pages anew."""
    for page, text in stale():
        (PROJECT / page).write_text(text, encoding="utf-8")
        print(f"agelab: {page} says what the code says")
