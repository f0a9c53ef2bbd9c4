"""What a host may hold back from any program: memory, address space, threads, open files, /proc."""

import errno
import os
import resource
from contextlib import suppress
from pathlib import Path

from agelab.base import fileio
from agelab.base.errors import HostError

PROC = Path("/proc")
LEAST = 600 * 10**6
"""Bytes of address space below which the libraries for statistics end the process, or never end themselves."""
DRAWING = 80 * 10**9
"""Bytes of address space that the program for charts reserves when it begins; without them it ends the process."""
DRAWING_MEMORY = 350 * 10**6
"""Bytes of memory that a page with its charts takes."""
LIMITS_OF_ERRNOS = {
    errno.ENOMEM: "memory (ulimit -v, a container's limit)",
    errno.EAGAIN: "threads or processes (ulimit -u)",
    errno.EMFILE: "open files (ulimit -n)",
    errno.ENFILE: "open files (all processes together)",
}
OF_LOADER = ("failed to map segment", "cannot allocate memory")
"""Words of ld.so where there is no room for a library."""
OF_THREADS = "can't start new thread"
RAISE = "raise that limit, or begin agelab where it has more"


def of_error(error: BaseException) -> HostError | None:
    """Return the error for the user where the host held something back, whatever code noticed it; else None."""
    if not (PROC / "self").exists():
        return no_proc()
    text = str(error).lower()
    # A pipe that takes no more for now is EAGAIN, too, and says how much it took.
    number = error.errno if isinstance(error, OSError) and not hasattr(error, "characters_written") else None
    if isinstance(error, MemoryError) or (isinstance(error, ImportError) and any(word in text for word in OF_LOADER)):
        number = errno.ENOMEM
    elif isinstance(error, RuntimeError) and OF_THREADS in text:
        number = errno.EAGAIN
    what = LIMITS_OF_ERRNOS.get(number or 0)
    return HostError(f"this host gives agelab no more {what}", hint=RAISE) if what else None


def no_proc() -> HostError:
    """Return the error for a host without a /proc of this process's own pid namespace."""
    return HostError(
        "/proc is not mounted, or shows other processes than those that agelab starts and ends",
        hint="in this chroot or container, as root: mount -t proc proc /proc",
    )


def prepare() -> None:
    """Make libraries take no more than they need. Raises HostError where there is less address space than that."""
    # OpenBLAS begins a thread with memory of its own for each processor; nothing of agelab has work for them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _require_address_space(LEAST, "agelab")


def require_to_draw() -> None:
    """Raise HostError where charts cannot be drawn: what draws them ends the whole process then, or the kernel does."""
    _require_address_space(DRAWING, "drawing charts")
    limit = memory_limit()
    if limit is not None and limit < DRAWING_MEMORY:
        raise HostError(
            f"this control group has {_text(limit)} of memory, drawing charts takes {_text(DRAWING_MEMORY)}",
            hint="give the container, or the control group, more memory",
        )


def memory_limit(proc: Path = PROC, groups: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the bytes of memory that this process's control group may have, None without a limit (cgroups(7))."""
    limits: list[int] = []
    with suppress(OSError):
        for line in fileio.read_text(proc / "self/cgroup").splitlines():
            _, controllers, name = line.split(":", 2)
            if controllers in ("", "memory"):
                top = groups / controllers
                place = top / name.lstrip("/")
                for directory in (place, *place.parents):
                    if directory.is_relative_to(top):
                        for file in (directory / "memory.max", directory / "memory.limit_in_bytes"):
                            limit = fileio.read_text(file).strip() if file.exists() else ""
                            limits += [int(limit)] if limit.isdecimal() else []
    return min(limits, default=None)


def _require_address_space(needed: int, what: str) -> None:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < needed:
        raise HostError(
            f"the address space is limited to {_text(limit)} here, {what} takes {_text(needed)}",
            hint="lift that limit: ulimit -v unlimited; what it takes of memory is far less",
        )


def _text(size: int) -> str:
    return f"{size / 1e9:.0f} GB" if size >= 10**10 else f"{size / 1e6:.0f} MB"
