"""Parts of pages that follow from the code: ``<!-- made: cli -->`` in a page becomes what the code says now.

Nothing of it is kept in a file, so nothing of it can be out of date.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from made import commands, keys, measured, studies

if TYPE_CHECKING:
    from sphinx.application import Sphinx

MARK = re.compile(r"^<!-- made: (?P<what>\w+)(?: (?P<words>.+?))? -->$", re.MULTILINE)
PARTS: dict[str, Callable[..., str]] = {
    "cli": commands.every,
    "keys": keys.of,
    "metrics": measured.metrics,
    "study": studies.page,
}
"""What can be made; words in the mark are its arguments. All of it is Markdown."""


def filled(text: str) -> str:
    """The text of a page with what its marks stand for."""
    return MARK.sub(lambda found: PARTS[found["what"]](*(found["words"] or "").split()), text)


def _read(app: "Sphinx", page: str, source: list[str]) -> None:
    source[0] = filled(source[0])


def setup(app: "Sphinx") -> dict[str, bool]:
    """Sphinx's way in."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}
