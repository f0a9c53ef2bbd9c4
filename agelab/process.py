"""The one door to external programs.

A program gets an argument list, an environment built from scratch and a closed standard input;
when it fails, the error shows a command that can be pasted into a shell. It ends with the agelab that
started it, however that ends; what it has started itself says whose it is (agelab.orphans).
"""

import errno
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from signal import Signals

from agelab import orphans, places
from agelab.errors import HostError

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# What a user's network set-up needs to reach the programs that download.
PASSED_ON = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
WORLD = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
"""Before a program: its processes and its mounts are in namespaces of their own, which end with it."""
PACKAGES_FILE = places.HOST_PACKAGES


@dataclass(frozen=True)
class Completed:
    """What a finished program left: its exit status and the text of both streams."""

    returncode: int
    stdout: str
    stderr: str


class ProcessFailed(HostError):
    """A program exited with a status that its caller does not accept."""

    def __init__(self, argv: Sequence[str], returncode: int, stderr: str, again: str = "") -> None:
        self.returncode = returncode
        self.stderr = stderr
        tail = "\n".join(stderr.strip().splitlines()[-12:])
        how = (
            f"failed (exit {returncode})" if returncode >= 0 else f"was ended by {Signals(-returncode).name}"
        )
        super().__init__(
            f"{argv[0]} {how}" + (f":\n{tail}" if tail else ""),
            hint="to see it again: " + (again or shlex.join(argv)),
        )


class TooSlow(HostError):
    """A program did not come to its end in the time that it was given."""


@cache
def host_packages() -> dict[str, str]:
    """Program name (or the file that proves the package) to the Debian package that brings it."""
    lines = (line.split() for line in PACKAGES_FILE.read_text().splitlines() if line and line[0] != "#")
    return {program: package for package, program in lines}


def find(program: str) -> Path | None:
    """Where ``program`` is on the search path given to every child, or None."""
    found = shutil.which(program, path=SEARCH_PATH)
    return Path(found) if found else None


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a child: built from scratch, proxies kept, ``extra`` on top."""
    base = {"PATH": SEARCH_PATH, "LC_ALL": "C.UTF-8", "HOME": os.environ.get("HOME", "/"), "TZ": "UTC"}
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {**base, **kept, orphans.VARIABLE: orphans.tag(), **(extra or {})}


def run(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: Path | None = None,
    stdout: Path | None = None,
    log: Path | None = None,
    timeout: float | None = None,
    ok: Sequence[int] = (0,),
    grace: float | None = None,
    vain: Callable[[], bool] | None = None,
    alone: bool = False,
) -> Completed:
    """Run ``argv`` to its end.

    ``stdin`` and ``stdout`` name files instead of nothing and the result; ``log`` takes both output
    streams (they are then also what the error quotes). ``timeout`` is in seconds of the host.
    ``grace`` is for a program that has children of its own to end: it gets one SIGINT and so many seconds
    when the run is interrupted or too slow, and is alone in a session, so that Ctrl-C reaches it only once.
    ``vain`` is asked every second whether there is nothing left to wait for: then the program is ended, too.
    ``alone``: in a world of processes and mounts of its own, so that all that it starts and mounts ends with it (for
    root; another user has no such right, and gets the program as it is).
    Raises HostError when the program is missing, TooSlow, ProcessFailed on a status not in ``ok`` or a vain wait.
    """
    with ExitStack() as stack:
        source = stack.enter_context(stdin.open("rb")) if stdin else subprocess.DEVNULL
        sink = stack.enter_context((log or stdout).open("wb")) if log or stdout else subprocess.PIPE  # type: ignore[union-attr]
        try:
            child = subprocess.Popen(
                _mortal(argv, alone),
                cwd=cwd,
                env=environment(env),
                stdin=source,
                stdout=sink,
                stderr=subprocess.STDOUT if log else subprocess.PIPE,
                start_new_session=grace is not None,
            )
            stack.callback(_end, child, grace)
            said, complained = _communicate(child, timeout, vain)
            if child.poll() is None:
                raise ProcessFailed(argv, -signal.SIGINT, _text(log), pastable(argv, cwd, env))
        except FileNotFoundError as error:
            raise missing(argv[0], error) from error
        except subprocess.TimeoutExpired as error:
            raise TooSlow(
                f"{argv[0]} did not finish within {timeout:g} s",
                hint=f"to see it: {pastable(argv, cwd, env)}",
            ) from error
    out = (said or b"").decode(errors="replace")
    err = _text(log) if log else (complained or b"").decode(errors="replace")
    if child.returncode not in ok:
        # Some programs complain on standard output.
        raise ProcessFailed(argv, child.returncode, err or out, pastable(argv, cwd, env))
    return Completed(child.returncode, out, err)


def _mortal(argv: Sequence[str], alone: bool) -> list[str]:
    """The command, killed by the kernel when the thread that starts it has gone: who is killed can end nobody.

    The thread waits for it, so it cannot go before. Raises FileNotFoundError when the program is missing.
    """
    if shutil.which(argv[0], path=SEARCH_PATH) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
    world = WORLD if alone and run([*WORLD, "true"], ok=range(256)).returncode == 0 else ()
    setpriv = find("setpriv")
    return [*((str(setpriv), "--pdeathsig", "KILL", "--") if setpriv else ()), *world, *argv]


def _text(log: Path | None) -> str:
    return log.read_text(errors="replace") if log else ""


def _communicate(
    child: subprocess.Popen[bytes], timeout: float | None, vain: Callable[[], bool] | None
) -> tuple[bytes | None, bytes | None]:
    """What the child has said, at its end; while it still runs where ``vain`` says so."""
    if vain is None:
        return child.communicate(timeout=timeout)
    until = None if timeout is None else time.monotonic() + timeout
    while not vain():
        with suppress(subprocess.TimeoutExpired):
            return child.communicate(timeout=1)
        if until is not None and time.monotonic() > until:
            raise subprocess.TimeoutExpired(child.args, timeout or 0)
    return b"", b""


def _end(child: subprocess.Popen[bytes], grace: float | None) -> None:
    """Leave nothing running: after an interrupt or a timeout the child may still be there."""
    try:
        if child.poll() is None and grace:
            # To all of its session, as a terminal would: some programs run behind a wrapper of their own.
            os.killpg(child.pid, signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                child.wait(grace)
    finally:
        if grace is not None:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        if child.poll() is None:
            child.kill()
            child.wait()


def pastable(argv: Sequence[str], cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """A shell line that runs ``argv`` again, there and with those variables."""
    assigned = ["env", *(f"{name}={value}" for name, value in env.items())] if env else []
    line = shlex.join([*assigned, *argv])
    return f"(cd {shlex.quote(str(cwd))} && {line})" if cwd else line


def missing(program: str, error: FileNotFoundError) -> HostError:
    """The error for a program that is not there, naming the package that brings it."""
    if error.filename not in (None, program):
        return HostError(f"cannot run {program}: {error.filename} does not exist")
    package = host_packages().get(program, program)
    return HostError(f"{program} is not installed", hint=f"install the Debian package {package}")
