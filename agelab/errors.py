"""Errors for the user, by who must act: the user (InputError) or the owner of the host (HostError).

The package raises these; only ``agelab.cli`` turns them into an exit code and one message.
"""

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

DISK_ERRNOS = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM))
"""System errors that the user can fix: no space, no permission. Any other is a bug in agelab."""

MAX_LISTED = 12
"""Valid names that an error lists when none is similar."""


class AgelabError(Exception):
    """An error for the user. The message says what is wrong and where, ``hint`` what to do now."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class InputError(AgelabError):
    """The user's arguments or files are wrong (exit 2)."""

    exit_code = 2


class HostError(AgelabError):
    """The host lacks something: a tool, space, the network (exit 3)."""

    exit_code = 3


@contextmanager
def goes_on(command: str) -> Iterator[None]:
    """Have the user told the command that goes on, where the body is interrupted or the host cannot do it.

    What is begun within something else names its command first: the outermost one is told.
    """
    try:
        yield
    except (KeyboardInterrupt, HostError, OSError) as error:
        error.add_note(command)
        raise


def unknown(kind: str, name: str, valid: Sequence[str], where: str = "") -> InputError:
    """Return the error for an unknown name, with the most similar valid names or else the first of them."""
    said = " ".join(filter(None, (f"no {kind} {name!r}", where)))
    if not valid:
        return InputError(f"{said}; there are none")
    listed = sorted(valid)[:MAX_LISTED]
    more = f" and {len(valid) - MAX_LISTED} more" if len(valid) > MAX_LISTED else ""
    names = did_you_mean(name, valid) or "there are: " + ", ".join(listed) + more
    return InputError(f"{said}; {names}")


def did_you_mean(name: str, valid: Sequence[str]) -> str:
    """Return a question that suggests the most similar names; empty when none is similar."""
    near = get_close_matches(name, valid, n=3, cutoff=0.5)
    return "did you mean " + ", ".join(near) + "?" if near else ""
