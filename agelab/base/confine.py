"""Run programs on files that somebody may have made to do harm: under bubblewrap, with nothing of the host to reach.

A confined program has no network, no other processes and no terminal, and of the host's files those alone that it is
given: to read, or to write where its result belongs. What is confined and what is trusted: docs/security.md.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from agelab.base import process
from agelab.base.errors import HostError
from agelab.base.process import Completed, ProcessFailed, TimedOut

# A session of its own, or a program could type into the terminal from which agelab was started (TIOCSTI).
_ALONE = ("--die-with-parent", "--new-session")
_USER = ("--unshare-all",)
# In a user namespace root would lose its right to read a user's private files.
_ROOT = (
    *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    *("--cap-drop", "ALL", "--cap-add", "CAP_DAC_OVERRIDE"),
)
# For the kernel root's user id is enough to write in /proc/sys, without any capability and in a user namespace: with
# core_pattern it would be given a command of the host.
_PROC = ("--proc", "/proc", "--remount-ro", "/proc")
_SCRATCH = ("--size", str(256 << 20))  # it is memory
_TOPS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


def command(
    argv: Sequence[str],
    *,
    system: Sequence[str],
    read_only: Mapping[str, Path],
    writable: Mapping[str, Path],
    environment: Mapping[str, str],
    directory: str,
    namespaces: Sequence[str] = _USER,
    scratch: Sequence[str] = (),
) -> list[str]:
    """Return the command that runs ``argv`` confined.

    ``system`` are bubblewrap's options for the programs that it sees; ``read_only`` and ``writable`` map its paths to
    those of the host, ``directory`` is the one that it starts in, ``scratch`` bubblewrap's options for its /tmp.
    """
    binds = [("--ro-bind", source, target) for target, source in read_only.items()]
    binds += [("--bind", source, target) for target, source in writable.items()]
    return [
        *("bwrap", *namespaces, *_ALONE, *system, "--dev", "/dev", *_PROC, *scratch, "--tmpfs", "/tmp"),
        *(str(word) for bind in binds for word in bind),
        "--clearenv",
        *(word for name, value in environment.items() for word in ("--setenv", name, value)),
        *("--chdir", directory, "--", *argv),
    ]


def run(
    argv: Sequence[str],
    *,
    read: Sequence[Path] = (),
    write: Sequence[Path] = (),
    env: Mapping[str, str] | None = None,
    stdout: Path | None = None,
    timeout: float | None = None,
) -> Completed:
    """Run a program of the host to its end, confined to these files and directories, under their own names.

    Paths are absolute and without links; ``timeout`` is in seconds. Raises as ``process.run`` does, and HostError
    where bubblewrap cannot run.
    """
    if process.which(argv[0]) is None:
        raise process.not_installed(argv[0], FileNotFoundError(2, "", argv[0]))
    confined = command(
        argv,
        system=_host_programs(),
        read_only={str(path): path for path in read},
        writable={str(path): path for path in write},
        environment={"PATH": process.SEARCH_PATH, "LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": "/tmp", **(env or {})},
        directory="/tmp",
        namespaces=_ROOT if os.geteuid() == 0 else _USER,
        scratch=_SCRATCH,
    )
    try:
        return process.run(confined, stdout=stdout, timeout=timeout)
    except TimedOut as error:
        raise TimedOut(f"{argv[0]} did not finish within {timeout:g} s", error.hint) from error
    except ProcessFailed as error:
        raise_unconfined(error, argv[0])
        raise ProcessFailed(argv, error.returncode, error.stderr, process.shell_line(confined)) from error


def raise_unconfined(error: ProcessFailed, program: str) -> None:
    """Raise HostError if it was bubblewrap itself that failed, and not what it ran."""
    lines = error.stderr.strip().splitlines()
    if lines and lines[-1].startswith("bwrap: ") and "execvp" not in lines[-1]:
        raise HostError(
            f"bwrap cannot confine {program} here: {lines[-1]}",
            hint="agelab doctor tries what it needs, and says what is missing",
        ) from error


def _host_programs() -> list[str]:
    """Return bubblewrap's options that show the host's programs, read-only, and nothing else of it."""
    words = ["--ro-bind", "/usr", "/usr", "--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    for top in (Path("/", name) for name in _TOPS):
        if top.is_symlink():
            words += ["--symlink", str(top.readlink()), str(top)]
        elif top.is_dir():
            words += ["--ro-bind", str(top), str(top)]
    return words
