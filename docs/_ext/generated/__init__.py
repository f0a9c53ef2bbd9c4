"""Generate parts of pages from the code: ``<!-- generated: cli -->`` in a page is replaced while the site is built."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from generated import keys, metrics, programs, studies, verbs

if TYPE_CHECKING:
    from sphinx.application import Sphinx

MARK = re.compile(r"^<!-- generated: (?P<part>\w+)(?: (?P<arguments>.+?))? -->$", re.MULTILINE)
PARTS: dict[str, Callable[..., str]] = {
    "cli": verbs.sections,
    "keys": keys.sections,
    "metrics": metrics.table_of_metrics,
    "programs": programs.sections,
    "study": studies.sections,
}
"""The Markdown of each part; further words in a mark are its arguments."""


def expand(text: str) -> str:
    """Replace the marks in the text of a page."""
    return MARK.sub(lambda mark: PARTS[mark["part"]](*(mark["arguments"] or "").split()), text)


def _expand_source(app: "Sphinx", page: str, source: list[str]) -> None:
    source[0] = expand(source[0])


def setup(app: "Sphinx") -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("source-read", _expand_source)
    return {"parallel_read_safe": True}
