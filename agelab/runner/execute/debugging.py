"""A cell once more, up to a moment: there its guest stops, and QEMU waits for a debugger."""

import re
import shlex
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from agelab.base import atomic, process
from agelab.base.errors import HostError, InputError
from agelab.kernel import debian_kernel
from agelab.machine import qemu
from agelab.machine.vm.guest import Stop
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute.guests import Debugger, GuestLauncher
from agelab.runner.execute.passes import run_phases
from agelab.runner.execute.phases import BootRunner, CellBoots, PassProgress, PhaseRunner
from agelab.runner.execute.runner import opened_cell
from agelab.runner.progress import Progress
from agelab.runner.request.options import RunOptions
from agelab.scenario.step import StepId
from agelab.store.artefacts import Store

PLACE = "debug"
"""Directory of a cell's for what the debugger needs."""
SOCKET, COMMANDS = "socket", "gdb"
MODULES = Path(__file__).with_name("modules.gdb")
"""Has gdb look for the modules that are loaded, and read the symbols of those that it finds."""
STEP = re.compile(r"(?P<step>[^\s:+]+)(?::(?P<repetition>\d+))?(?:\+(?P<seconds>\d+(?:\.\d+)?))?")
LONGEST = 200
"""Characters of a message to wait for."""


class _Looked(Exception):
    """The guest has stopped, and was looked at."""


@dataclass(frozen=True)
class Moment:
    """The moment to stop at."""

    text: str
    """What the guest has written then."""
    seconds: float = 0.0
    """Of the machine, after it has."""
    phase: str | None = None

    @classmethod
    def of(cls, words: str, boots: CellBoots) -> "Moment":
        """Read ``STEP[:REPETITION][+SECONDS]``; where the cell has no such step it is a message of the kernel."""
        if match := STEP.fullmatch(words):
            repetition = int(match["repetition"] or 1)
            for phase in boots.phases:
                for step in phase.steps:
                    name = str(StepId.parse(step.name).inside(phase.in_samples))
                    if (name, step.repetition) == (match["step"], repetition):
                        text = f'"event":"begin","step":"{step.name}","repetition":{repetition}'
                        return cls(text, float(match["seconds"] or 0), phase.in_samples)
        if not words.isascii() or not words.isprintable() or not 0 < len(words) <= LONGEST:
            raise InputError(f"--at: neither a step nor a message of the kernel of 1 to {LONGEST} characters of ASCII")
        return cls(words)


def debug(
    directory: RunDirectory,
    number: int,
    at: str,
    script: Path | None,
    store: Store,
    progress: Progress,
    *,
    with_symbols: bool,
) -> str:
    """Run a cell again until the moment ``at``. Returns what gdb printed of ``script``; without one it is waited for.

    Raises InputError where the guest never comes there or cannot be stopped, HostError where gdb is missing.
    """
    if script and process.which("gdb") is None:
        raise HostError("gdb is not installed", hint="apt-get install gdb; or leave --script out")
    options = RunOptions.from_plan(directory.plan())
    if options.in_wall_clock or options.takes_turns:
        has = "the wall clock" if options.in_wall_clock else f"{options.vcpus} processors"
        raise InputError(
            f"a guest can be stopped in the virtual clock with one processor; {directory.name} has {has}",
            hint="run the test without --clock and --vcpus until a seed fails (docs/howto/tests.md)",
        )
    with ExitStack() as held:
        launcher, goals = held.enter_context(opened_cell(options, directory, number, store, progress))
        place = launcher.directory / PLACE
        place.mkdir(exist_ok=True)
        launcher = replace(launcher, directory=place)
        moment = Moment.of(at, CellBoots(launcher, goals))
        say = progress.stage
        printed: list[str] = []
        known = _symbols(launcher, store, say, with_symbols=with_symbols)
        commands = _write_commands(launcher, known, place)

        def look() -> None:
            if script:
                words = ["gdb", "-q", "-nx", "-batch", "-x", str(commands), "-x", str(script)]
                said = process.run(words, ok=range(256))
                printed.append(said.stdout + said.stderr)
                raise _Looked
            printed.append("")
            say(f"stopped: {shlex.join(['gdb', '-q', '-x', str(commands)])}; kill there ends it")

        def ended() -> None:
            if printed:
                raise _Looked

        nanoseconds = round(moment.seconds / launcher.spec.dilation * 1e9)
        stop = Stop(moment.text, nanoseconds, place / SOCKET)
        library = qemu.stop_library(store, launcher.guests.emulator, say)
        launcher = replace(launcher, debugger=Debugger(library, stop, moment.phase, look, ended))
        boots = CellBoots(launcher, replace(goals, keep_as=None))
        runner = BootRunner(boots, PassProgress(directory, number, launcher.spec), lambda step: say(step))
        held.callback(stop.socket.unlink, missing_ok=True)
        try:
            run_phases(runner, PhaseRunner.run)
        except _Looked:
            return printed[0]
    raise InputError(
        f"the cell ended without that moment: {at}", hint="agelab show names the steps; the console has the messages"
    )


def _symbols(launcher: GuestLauncher, store: Store, say: Callable[[str], None], *, with_symbols: bool) -> Path | None:
    """Return where vmlinux and modules with symbols are; None, which is told, where there are none."""
    kernel = launcher.guests.image.kernel
    if not with_symbols:
        say("gdb has no symbols of the kernel: --symbols fetches Debian's, some 900 MB")
        return None
    try:
        modules = [module.name for module in kernel.modules.closure(launcher.spec.modules)]
        return debian_kernel.obtain_symbols(kernel, modules, store, say)
    except (HostError, InputError) as error:
        say(f"gdb has no symbols of the kernel: {error}")
        return None


def _write_commands(launcher: GuestLauncher, known: Path | None, place: Path) -> Path:
    """Write gdb's commands that open the guest. Modules that the scenario brings have symbols of their own."""
    lines = ["set pagination off", "set confirm off", "set architecture i386:x86-64"]
    brought = {
        name.rpartition("/")[2]: content
        for name, content in launcher.spec.brought.files.items()
        if name.endswith(".ko")
    }
    for name, content in brought.items():
        atomic.write(place / name, content)
    if known:
        lines += [f"file {known / debian_kernel.VMLINUX}"]
    lines += [f"target remote {place / SOCKET}"]
    if known:
        lines += [f"python DIRECTORIES = {[str(known), str(place)]!r}", f"source {MODULES}"]
    commands = place / COMMANDS
    atomic.write(commands, "".join(f"{line}\n" for line in lines).encode())
    return commands
