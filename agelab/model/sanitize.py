"""Text that was made elsewhere (in a guest, by another host's run) and will be shown: it is data, never orders.

A terminal obeys escape sequences, and lays text out as control characters tell it. What holds such text
as one of two types (``Text``, ``Label`` of agelab.model.base) holds it without them, wherever it is printed.
"""

import unicodedata
from typing import Any

CONTROL_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Unicode's categories of what is not shown but obeyed: controls (C0, DEL, C1), formats (those for the direction of
writing among them), lone surrogates, separators of lines and of paragraphs."""
NONCHARACTERS = "\ufffe\uffff"
"""No characters by Unicode, though it lets them by; XML has no way to write them, and they end whoever draws charts."""
LINE_LAYOUT = "\n\t"
"""What a text of several lines needs."""


def escape_controls(text: str, kept: str = LINE_LAYOUT) -> str:
    """The text with each such character escaped as Python would (``\\x1b``), but for those that are kept."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        ascii(one)[1:-1]
        if one not in kept and (unicodedata.category(one) in CONTROL_CATEGORIES or one in NONCHARACTERS)
        else one
        for one in text
    )


def escape_json(value: Any) -> Any:
    """The same for every text in a JSON value, names among them: each in one line."""
    match value:
        case str():
            return escape_controls(value, kept="")
        case dict():
            return {escape_controls(str(name), kept=""): escape_json(one) for name, one in value.items()}
        case list() | tuple():
            return [escape_json(one) for one in value]
    return value
