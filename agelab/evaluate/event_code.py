"""The code of an event line, from which it follows that the harness of this boot has written it.

Format: ``{"line":<number>,"code":"<hex>",<the event's fields>}``; the code is a keyed BLAKE2b (RFC 7693) of the number
and the event's JSON. The key is a secret that the host draws for each boot. harness/events.py writes it.
"""

import re
from hashlib import blake2b
from hmac import compare_digest

SECRET_BYTES, CODE_BYTES = 32, 16
_LINE = re.compile(r'\{"line":([1-9][0-9]{0,8}),"code":"([0-9a-f]{32})",(.*)', re.DOTALL)


def decode(line: str, secret: bytes) -> tuple[int, str]:
    """Return the number of the line, from 1, and the JSON of its event; 0 where the code does not fit."""
    coded = _LINE.fullmatch(line)
    if not coded:
        return 0, line
    number, text = coded[1], "{" + coded[3]
    return int(number) if compare_digest(_code(number, text, secret), coded[2]) else 0, text


def encode(number: int, text: str, secret: bytes) -> str:
    """Return the line of an event's JSON, as the harness writes it."""
    return f'{{"line":{number},"code":"{_code(str(number), text, secret)}",{text[1:]}'


def _code(number: str, text: str, secret: bytes) -> str:
    return blake2b((number + text).encode(), key=secret, digest_size=CODE_BYTES).hexdigest()
