"""What can go wrong, sorted by who must act.

Libraries raise these; only ``agelab.cli`` turns them into an exit code and one message.
"""

import errno
from collections.abc import Sequence
from difflib import get_close_matches

DISK_ERRNOS = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM))
"""System errors that the user must mend: no space, no permission. Any other is a bug of ours."""


LISTED = 12
"""Valid names to list where none is near."""


class AgelabError(Exception):
    """An error for the user: what is wrong and where, and in ``hint`` what to do now."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class InputError(AgelabError):
    """The user's words or files are wrong (exit 2)."""

    exit_code = 2


class HostError(AgelabError):
    """This host cannot do it as it is: a missing tool, no space, no network (exit 3)."""

    exit_code = 3


def unknown(kind: str, name: str, valid: Sequence[str]) -> InputError:
    """The error for a name that nothing answers to, with the nearest names that something does."""
    if not valid:
        return InputError(f"no {kind} {name!r}; there are none")
    listed = sorted(valid)[:LISTED]
    more = f" and {len(valid) - LISTED} more" if len(valid) > LISTED else ""
    names = nearest(name, valid) or "there are: " + ", ".join(listed) + more
    return InputError(f"no {kind} {name!r}; {names}")


def nearest(name: str, valid: Sequence[str]) -> str:
    """Which of the names was meant, asked; nothing where none is near."""
    near = get_close_matches(name, valid, n=3, cutoff=0.5)
    return "did you mean " + ", ".join(near) + "?" if near else ""
