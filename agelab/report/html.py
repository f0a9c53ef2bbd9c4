"""The page as HTML: one file that fetches nothing, and lets no text of a guest be more than text."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from agelab.report.model import Page, Results

UNSHOWN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Control characters, those that turn the direction of text, and what UTF-8 cannot write."""


def render(page: Page) -> str:
    """The whole file. The same page gives the same bytes."""
    templates = files("agelab.report") / "templates"
    script = (templates / "page.js").read_text()
    environment = Environment(
        loader=PackageLoader("agelab.report"),
        autoescape=True,
        finalize=clean,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["data"] = data
    return environment.get_template("page.html").render(
        page=page,
        style=Markup((templates / "page.css").read_text()),
        script=Markup(script),
        script_hash=b64encode(sha256(script.encode()).digest()).decode("ascii"),
        svg=drawn,
    )


def clean(value: Any) -> Any:
    """Text with what must not be shown written as an escape; what is markup or no text stays as it is."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return UNSHOWN.sub(lambda found: f"\\u{ord(found.group()):04x}", value)


def drawn(svg: str) -> Markup:
    """A chart: Vega has escaped the names that are in it."""
    return Markup(clean(svg))


def data(results: Results) -> Markup:
    """The rows for the page's script: each text once, in a list, and by its place in that list in the rows."""
    words: dict[str, int] = {}
    rows = [
        [words.setdefault(cell, len(words)) if isinstance(cell, str) else cell for cell in row]
        for row in results.rows
    ]
    texts = [number for number, column in enumerate(results.columns) if not column.number]
    content = {"words": [clean(word) for word in words], "texts": texts, "rows": rows}
    packed = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    # Nothing in it may end the element that holds it.
    return Markup(packed.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
