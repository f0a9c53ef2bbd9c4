"""Run external programs: every program that agelab starts goes through here.

A program gets an argument list, an environment built from scratch and an empty standard input;
when it fails, the error shows a command that can be pasted into a shell. It ends with the agelab that
started it, however that ends; its own children carry the owner tag of agelab.base.orphans.
"""

import errno
import os
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from signal import Signals
from typing import IO, Self

from agelab.base import fileio, orphans, places
from agelab.base.errors import HostError

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Passed on for programs that download.
PROXY_VARIABLES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_MOUNT_NAMESPACE = ("unshare", "--mount", "--propagation", "slave")
MOUNTS_APART = (*_MOUNT_NAMESPACE, "--")
"""Prefix that runs a program in a mount namespace of its own; it sees what the host mounts and unmounts later."""
_MOUNT_MEMORY = 'mount -t tmpfs -o mode=755 none "$0" 2>/dev/null; exec "$@"'
_AS_ROOT = ("--map-root-user", "--map-auto")
"""Options that make a user the root of the namespaces, with the ids of /etc/subuid and /etc/subgid beside."""
PACKAGES_FILE = places.HOST_PACKAGES
MAX_OUTPUT = 256 << 20
"""Bytes of each output stream that are kept in memory at most: a program may be reading what somebody made up."""
_PIPE_BYTES = 1 << 16
_stopped: ContextVar[Callable[[], bool] | None] = ContextVar("_stopped", default=None)
"""Says whether this thread's programs are to end."""


@dataclass(frozen=True)
class Completed:
    """Exit status and output of a finished program."""

    returncode: int
    stdout: str
    stderr: str


class ProcessFailed(HostError):
    """A program exited with a status that its caller does not accept."""

    def __init__(self, argv: Sequence[str], returncode: int, stderr: str, rerun: str = "") -> None:
        self.returncode = returncode
        self.stderr = stderr
        tail = "\n".join(stderr.strip().splitlines()[-12:])
        how = f"failed (exit {returncode})" if returncode >= 0 else f"was ended by {Signals(-returncode).name}"
        super().__init__(
            f"{argv[0]} {how}" + (f":\n{tail}" if tail else ""), hint="to see it again: " + (rerun or shlex.join(argv))
        )


class TooMuchOutput(HostError):
    """A program printed more than is read of it, and was ended."""


class TimedOut(HostError):
    """A program did not finish within its timeout."""


def namespaces() -> tuple[str, ...]:
    """Return the prefix that runs a program as root of pid and mount namespaces of its own, which end with it.

    A user who is not root needs newuidmap for that, and ids in /etc/subuid and /etc/subgid.
    """
    own = _AS_ROOT if os.geteuid() else ()
    return (*_MOUNT_NAMESPACE, *own, "--pid", "--fork", "--kill-child", "--mount-proc", "--")


@cache
def host_packages() -> dict[str, str]:
    """Map each program (or a file of the package) to the Debian package that contains it."""
    lines = (line.split() for line in fileio.read_text(PACKAGES_FILE).splitlines() if line and line[0] != "#")
    return {program: package for package, program in lines}


def which(program: str) -> Path | None:
    """Return the path of ``program`` on the search path given to every child, or None."""
    path = shutil.which(program, path=SEARCH_PATH)
    return Path(path) if path else None


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Build the environment of a child: a fixed base, the proxy settings, the owner tag, and ``extra``."""
    base = {"PATH": SEARCH_PATH, "LC_ALL": "C.UTF-8", "HOME": os.environ.get("HOME", "/"), "TZ": "UTC"}
    kept = {name: os.environ[name] for name in PROXY_VARIABLES if name in os.environ}
    return {**base, **kept, orphans.VARIABLE: orphans.tag(), **(extra or {})}


@contextmanager
def ending_when(stopped: Callable[[], bool]) -> Iterator[None]:
    """End the programs that this thread runs in the body, as by ``give_up``, once ``stopped`` returns True."""
    before = _stopped.set(stopped)
    try:
        yield
    finally:
        _stopped.reset(before)


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
    give_up: Callable[[], bool] | None = None,
    isolated: bool = False,
    in_memory: Path | None = None,
) -> Completed:
    """Run ``argv`` to its end.

    ``stdin`` and ``stdout`` are files to read from and write to instead of nothing and the result; ``log`` is a file
    for both output streams, which errors then quote. ``timeout`` is in seconds of the host.
    ``grace`` is for a program that has children of its own to end: when it is interrupted or timed out it gets one
    SIGINT and so many seconds. It runs in a session of its own, so that Ctrl-C reaches it only once.
    ``give_up`` is called every second; when it returns True the program is ended.
    ``isolated`` runs the program as root of pid and mount namespaces of its own, so that everything it starts or mounts
    ends with it. Where the host does not allow that the program runs as it is. ``in_memory`` is an empty directory that
    an isolated program finds on a tmpfs of its own.
    Raises HostError when the program is missing, TimedOut, TooMuchOutput, and ProcessFailed on a status not in ``ok``
    or a give-up.
    """
    with ExitStack() as stack:
        source = stack.enter_context(stdin.open("rb")) if stdin else subprocess.DEVNULL
        sink = stack.enter_context((log or stdout).open("wb")) if log or stdout else subprocess.PIPE  # type: ignore[union-attr]
        try:
            child = subprocess.Popen(
                _wrapped(argv, isolated, in_memory),
                cwd=cwd,
                env=environment(env),
                stdin=source,
                stdout=sink,
                stderr=subprocess.STDOUT if log else subprocess.PIPE,
                start_new_session=grace is not None,
            )
            stack.callback(_end, child, grace)
            output, errors = _communicate(child, timeout, [ask for ask in (give_up, _stopped.get()) if ask])
            if child.poll() is None:
                raise ProcessFailed(argv, -signal.SIGINT, _text(log), shell_line(argv, cwd, env))
        except FileNotFoundError as error:
            raise not_installed(argv[0], error) from error
        except TooMuchOutput as error:
            raise TooMuchOutput(f"{argv[0]}: {error}", hint=f"to see it: {shell_line(argv, cwd, env)}") from error
        except subprocess.TimeoutExpired as error:
            raise TimedOut(
                f"{argv[0]} did not finish within {timeout:g} s", hint=f"to see it: {shell_line(argv, cwd, env)}"
            ) from error
    out = output.decode(errors="replace")
    err = _text(log) if log else errors.decode(errors="replace")
    if child.returncode not in ok:
        # Some programs write errors to standard output.
        raise ProcessFailed(argv, child.returncode, err or out, shell_line(argv, cwd, env))
    return Completed(child.returncode, out, err)


def _wrapped(argv: Sequence[str], isolated: bool, in_memory: Path | None = None) -> list[str]:
    """Prefix the command so that the kernel kills it when the thread that starts it is gone (PR_SET_PDEATHSIG).

    That thread waits for the program, so it does not end first. Raises FileNotFoundError when the program is missing.
    """
    if shutil.which(argv[0], path=SEARCH_PATH) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
    apart = namespaces() if isolated else ()
    apart = apart if apart and run([*apart, "true"], ok=range(256)).returncode == 0 else ()
    if apart and in_memory:
        apart = (*apart, "sh", "-c", _MOUNT_MEMORY, str(in_memory))
    setpriv = which("setpriv")
    return [*((str(setpriv), "--pdeathsig", "KILL", "--") if setpriv else ()), *apart, *argv]


def _text(log: Path | None) -> str:
    return fileio.tail(log) if log else ""


class _OutputReader(threading.Thread):
    """Reads one output stream of a child, and ends the child where it is more than MAX_OUTPUT."""

    def __init__(self, child: subprocess.Popen[bytes], stream: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._child, self._stream = child, stream
        self._pieces: list[bytes] = []
        self.too_much = False
        self.start()

    def run(self) -> None:
        left = MAX_OUTPUT
        with self._stream:
            while piece := os.read(self._stream.fileno(), _PIPE_BYTES):
                left -= len(piece)
                if left < 0:
                    self.too_much = True
                    self._child.kill()
                    return
                self._pieces.append(piece)

    @property
    def output(self) -> bytes:
        return b"".join(self._pieces)


def _communicate(
    child: subprocess.Popen[bytes], timeout: float | None, give_up: Sequence[Callable[[], bool]]
) -> tuple[bytes, bytes]:
    """Wait for the child's end and return its output; return early with none when one of ``give_up`` returns True."""
    out, err = (stream and _OutputReader(child, stream) for stream in (child.stdout, child.stderr))
    readers = [reader for reader in (out, err) if reader]
    until = None if timeout is None else time.monotonic() + timeout
    while not any(ask() for ask in give_up):
        waits = [1.0] if give_up else []
        waits += [] if until is None else [max(0.0, until - time.monotonic())]
        if _has_ended(child, readers, min(waits, default=None)):
            if any(reader.too_much for reader in readers):
                raise TooMuchOutput(f"it printed more than {MAX_OUTPUT >> 20} MiB")
            return out.output if out else b"", err.output if err else b""
        if until is not None and time.monotonic() >= until:
            raise subprocess.TimeoutExpired(child.args, timeout or 0)
    return b"", b""


def _has_ended(child: subprocess.Popen[bytes], readers: Sequence[_OutputReader], seconds: float | None) -> bool:
    """Wait until the child has ended and all of its output is read, or so many seconds."""
    until = None if seconds is None else time.monotonic() + seconds
    for reader in readers:
        reader.join(None if until is None else max(0.0, until - time.monotonic()))
        if reader.is_alive():
            return False
    with suppress(subprocess.TimeoutExpired):
        child.wait(None if until is None else max(0.0, until - time.monotonic()))
    return child.poll() is not None


def _end(child: subprocess.Popen[bytes], grace: float | None) -> None:
    """End a child that still runs after an interrupt, a timeout or a give-up."""
    try:
        if child.poll() is None and grace:
            # To the whole process group, as a terminal would: some programs run behind a wrapper.
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


def shell_line(argv: Sequence[str], cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Return a shell line that runs ``argv`` in that directory and with those variables."""
    assigned = ["env", *(f"{name}={value}" for name, value in env.items())] if env else []
    line = shlex.join([*assigned, *argv])
    return f"(cd {shlex.quote(str(cwd))} && {line})" if cwd else line


def not_installed(program: str, error: FileNotFoundError) -> HostError:
    """Return the error for a missing program, naming the package that contains it."""
    if error.filename not in (None, program):
        return HostError(f"cannot run {program}: {error.filename} does not exist")
    return HostError(f"{program} is not installed", hint=install_hint(program))


def install_hint(program: str) -> str:
    """Return what to do where a program (or a file of a package) is missing."""
    return f"install the Debian package {host_packages().get(program, program)}"


class SideBySide:
    """A context in which things are made ahead; an error in its body ends the programs that make them.

    What goes wrong there is nobody's yet: whoever asks for the thing makes it, meets the same error, and tells it.
    """

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def begin(self, make: Callable[[], object]) -> None:
        """Begin to make something. Whoever asks for it is kept waiting by its lock (``Store.obtain``)."""
        thread = threading.Thread(target=self._carry_out, args=(make,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _carry_out(self, make: Callable[[], object]) -> None:
        with suppress(Exception), ending_when(self._stop.is_set):
            make()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error:
            self._stop.set()
        for thread in self._threads:
            thread.join()
