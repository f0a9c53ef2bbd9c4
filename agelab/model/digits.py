"""Whole numbers in words that somebody else has written."""


def parse_digits(word: str, most: int) -> int | None:
    """Return the number that ASCII digits stand for; None for any other word, and for a number above ``most``.

    Python's ``int`` takes the digits of other scripts, and raises ValueError for more than 4,300 of them.
    """
    if not (word.isascii() and word.isdigit()) or len(word.lstrip("0")) > len(str(most)):
        return None
    number = int(word.lstrip("0") or "0")
    return number if number <= most else None
