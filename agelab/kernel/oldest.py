"""The oldest Linux that a guest can run on; docs/kernels.md says what each older one lacks."""

import re

from agelab.base.errors import InputError

OLDEST = (5, 3)
"""The newest of what the guest needs: the harness waits for each step by pidfd_open(2)."""
HINT = "the harness waits for each step by pidfd_open; docs/kernels.md says what else an older kernel lacks"
_VERSION = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")


def require(name: str, version: str) -> None:
    """Raise InputError for a ``version`` or release that is too old; what does not begin with two numbers passes."""
    match = _VERSION.match(version)
    if match and (int(match[1]), int(match[2])) < OLDEST:
        needed = ".".join(map(str, OLDEST))
        raise InputError(f"{name} is Linux {version}, and a guest needs Linux {needed} or newer", hint=HINT)
