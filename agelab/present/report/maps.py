"""Parse block maps drawn for cells, so that the page can draw them in its own colours and width.

Nothing of a file becomes markup. Only texts, which the template escapes, and paths of numbers are taken from it; a
picture that is not exactly as ``agelab.evaluate.layout.picture`` writes it stays an image.
"""

import re
from xml.etree import ElementTree

from agelab.evaluate.layout.picture import CELL_HEIGHT, CELL_WIDTH, COLUMNS, FILL, LEFT
from agelab.present.report.model import BlockMapFigure, MapPanel

SVG = "{http://www.w3.org/2000/svg}"
PATH = re.compile(r"[MmHhVvZz0-9 .-]*")
ROW = re.compile(rf"M{LEFT} (\d+)h")
KIND = {fill: kind.name.lower() for kind, fill in FILL.items()}
HEADING, WORDS, NOTE, LABEL = ("12", "600"), ("12", "400"), ("11", "400"), ("10", "400")
"""Font size and weight of the texts in a picture."""


class ForeignPicture(ValueError):
    """A picture that agelab did not write."""


def parse_block_map(title: str, content: bytes) -> BlockMapFigure | None:
    """Parse a picture into its parts; return None if agelab did not write it."""
    try:
        return _parts(title, content)
    except (ForeignPicture, ElementTree.ParseError, LookupError, ValueError):
        return None


def _parts(title: str, content: bytes) -> BlockMapFigure:
    if b"<!" in content:  # entities and document types are refused
        raise ForeignPicture
    root = ElementTree.fromstring(content)
    scale = ""
    disks: list[MapPanel] = []
    heads: list[str] = []
    rows: list[list[str]] = []
    headings: list[str] = []
    layers: list[tuple[str, str]] = []
    for one in root:
        name, words = one.tag.removeprefix(SVG), (one.text or "").strip()
        letters = (one.get("font-size", ""), one.get("font-weight", ""))
        if name == "path":
            path = one.get("d", "")
            if not PATH.fullmatch(path):
                raise ForeignPicture
            if one.get("fill") != "none":
                layers.append((KIND[one.get("fill", "")], path))
                continue
            disks.append(MapPanel(" ".join(headings), _view(path), tuple(layers), path, ()))
            headings, layers = [], []
        elif name == "rect" and one.get("fill") in KIND and one.get("height") == "13":
            rows.append([KIND[one.get("fill", "")]])
        elif name == "text" and rows:
            rows[-1].append(words)
        elif name == "text" and letters == HEADING:
            (heads if one.get("text-anchor") == "end" else headings).append(words)
        elif name == "text" and letters == NOTE and disks:
            last = disks[-1]
            disks[-1] = MapPanel(last.heading, last.view, last.layers, last.outline, (*last.notes, words))
        elif name == "text" and letters == WORDS and not disks:
            scale = words
        elif name not in ("title", "desc", "defs", "rect", "text"):
            raise ForeignPicture
    if not disks or not rows or {len(row) for row in rows} != {2 + len(heads)}:
        raise ForeignPicture
    kinds = tuple((row[0], row[1], tuple(row[2:])) for row in rows)
    return BlockMapFigure(title, scale, tuple(disks), tuple(heads), kinds)


def _view(outline: str) -> str:
    """Return the viewBox of a disk's cells."""
    places = [int(found) for found in ROW.findall(outline)]
    if not places:
        raise ForeignPicture
    height = places[-1] - places[0] + CELL_HEIGHT
    return f"{LEFT - 1} {places[0] - 1} {COLUMNS * CELL_WIDTH + 2} {height + 2}"
