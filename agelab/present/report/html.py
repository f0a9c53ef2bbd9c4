"""Render the page as one HTML file without external resources; untrusted text stays text."""

import json
import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from agelab.base import fileio
from agelab.present.report.blocks import Page, Results

PRINTED = 3
"""Sections of each part that are printed: with all of them the example of four filesystems has 29 pages, not 11."""
TEMPLATES = Path(__file__).with_name("templates")
UNSHOWN_CHARACTERS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Control characters, bidirectional controls, and code points that UTF-8 cannot encode."""


def render(page: Page) -> str:
    """Render the whole file. The same page gives the same bytes."""
    script = fileio.read_text(TEMPLATES / "page.js")
    return _template().render(
        page=page,
        printed=PRINTED,
        style=Markup(fileio.read_text(TEMPLATES / "page.css")),
        script=Markup(script),
        script_hash=b64encode(sha256(script.encode()).digest()).decode("ascii"),
        svg=lambda drawing: Markup(escape_unshown(drawing)),  # names in it are escaped
    )


@cache
def _template() -> Template:
    """Return the page's template, which takes as long to be compiled as a small page to be rendered."""
    environment = Environment(
        loader=PackageLoader("agelab.present.report"),
        autoescape=True,
        finalize=escape_unshown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["data"] = encode_rows
    return environment.get_template("page.html")


def escape_unshown(value: Any) -> Any:
    """Escape characters that must not be shown; leave markup and values that are no text unchanged."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return UNSHOWN_CHARACTERS.sub(lambda match: f"\\u{ord(match.group()):04x}", value)


def encode_rows(results: Results) -> Markup:
    """Encode rows for the page's script: a list of distinct texts, and rows that refer to them by index."""
    words: dict[str, int] = {}
    rows = [
        [words.setdefault(cell, len(words)) if isinstance(cell, str) else cell for cell in row] for row in results.rows
    ]
    texts = [number for number, column in enumerate(results.columns) if not column.number]
    content = {"words": [escape_unshown(word) for word in words], "texts": texts, "rows": rows}
    packed = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    # The data must not close the element that contains them.
    return Markup(packed.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
