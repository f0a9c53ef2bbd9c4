"""Text of other people: control characters escaped before it is shown, whole numbers read."""

import unicodedata
from typing import Any

from agelab.base.errors import InputError


def parse_digits(word: str, most: int) -> int | None:
    """Return the number that ASCII digits stand for; None for any other word, and for a number above ``most``.

    Python's ``int`` takes the digits of other scripts, and raises ValueError for more than 4,300 of them.
    """
    if not (word.isascii() and word.isdigit()) or len(word.lstrip("0")) > len(str(most)):
        return None
    number = int(word.lstrip("0") or "0")
    return number if number <= most else None


CONTROL_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Unicode categories that are acted on, not shown: controls (C0, DEL, C1), formats (direction of writing among them),
lone surrogates, separators of lines and paragraphs."""
NONCHARACTERS = "\ufffe\uffff"
"""Unicode noncharacters: they cannot be written in XML, and make chart libraries fail."""
LINE_LAYOUT = "\n\t"
"""Control characters permitted in text of several lines."""


def escape_controls(text: str, kept: str = LINE_LAYOUT) -> str:
    """Escape each such character as Python would (``\\x1b``), except those in ``kept``."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        ascii(character)[1:-1]
        if character not in kept
        and (unicodedata.category(character) in CONTROL_CATEGORIES or character in NONCHARACTERS)
        else character
        for character in text
    )


def require_utf_8(name: str) -> None:
    """Refuse a name with bytes that are no UTF-8, which Python has as lone surrogates (PEP 383).

    For names that results hold, which are text. Raises InputError.
    """
    if any("\ud800" <= character <= "\udfff" for character in name):
        raise InputError(
            f"{escape_controls(name, kept='')} is a name with bytes that are no UTF-8, and results are UTF-8",
            hint="rename it, or name a symbolic link to it",
        )


def escape_json(value: Any) -> Any:
    """Escape every text in a JSON value, keys included, for one line each."""
    match value:
        case str():
            return escape_controls(value, kept="")
        case dict():
            return {escape_controls(str(name), kept=""): escape_json(member) for name, member in value.items()}
        case list() | tuple():
            return [escape_json(element) for element in value]
    return value
