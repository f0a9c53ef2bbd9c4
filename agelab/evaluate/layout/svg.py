"""SVG written as text: words, lines and documents that are the same bytes for the same input."""

import re
import textwrap
from collections.abc import Iterable
from html import escape

INK, FAINT, PAPER = "#222222", "#5f5f5f", "#ffffff"
FONT = 'font-family="DejaVu Sans, Verdana, sans-serif" font-size="12"'
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def plain(text: str) -> str:
    """Put text on one line, with a mark in place of each character that XML cannot hold."""
    return " ".join(_NO_XML.sub("\ufffd", text).split())


def words(text: str) -> str:
    """Escape text for XML."""
    return escape(plain(text))


def number(value: float) -> str:
    """A coordinate, to a tenth of a unit."""
    shown = f"{value:.1f}".removesuffix(".0")
    return "0" if shown == "-0" else shown


def human(count: int) -> str:
    """Bytes in the largest unit that leaves at least one of it, to four digits."""
    power = min(max(count.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    value = f"{count / (1 << 10 * power):.1f}".removesuffix(".0")
    return f"{value} {_UNITS[power]}"


def power(count: int) -> int:
    """The power of 1024 of the largest unit of which so many bytes are a whole number."""
    return min(max((count & -count).bit_length() - 1, 0) // 10, len(_UNITS) - 1)


def exact(count: int, unit: int) -> str:
    """A whole number of a unit, given as its power of 1024."""
    return f"{count >> 10 * unit} {_UNITS[unit]}" if count else "0"


def text(
    x: float,
    y: float,
    shown: str,
    *,
    anchor: str = "start",
    fill: str = INK,
    size: int = 12,
    weight: int = 400,
) -> str:
    """Words at a place."""
    return (
        f'<text x="{number(x)}" y="{number(y)}" text-anchor="{anchor}" fill="{fill}" font-size="{size}"'
        f' font-weight="{weight}">{words(shown)}</text>'
    )


def rect(x: float, y: float, width: float, height: float, fill: str, more: str = "") -> str:
    return (
        f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}" fill="{fill}"'
        f"{' ' + more if more else ''}/>"
    )


def folded(shown: str, columns: int) -> list[str]:
    """Words in lines of at most so many characters; at least one line."""
    return textwrap.wrap(" ".join(shown.split()), columns) or [""]


def document(width: int, height: int, title: str, description: str, parts: Iterable[str]) -> str:
    """A whole picture on paper of its own, so that it reads the same on a page of any colour."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
            f' height="{height}" role="img" {FONT}>',
            f"<title>{words(title)}</title>",
            f"<desc>{words(description)}</desc>",
            rect(0, 0, width, height, PAPER),
            *parts,
            "</svg>\n",
        ]
    )
