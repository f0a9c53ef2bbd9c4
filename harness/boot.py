"""One boot of one cell: what its plan says, from the disks it sets up to the last unmount."""

import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from harness import counters, drives, machine, maps, plan, recovery, syscalls
from harness.block_layer import Refused
from harness.drives import Attached
from harness.events import Events
from harness.kernel import Trouble
from harness.plan import Disk, Plan, Step
from harness.step import Hung, Outcome, Place, command, measure

PATIENCE = 600.0
"""Guest seconds for what is not a step of the scenario: mkfs, mount, unmount."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SOURCE = Path("/run/source")
AGED = Path("/run/aged")
BESIDE = Path("/run/beside")
TOOLS = "/run/agelab/tools"
SAFE = "safe"
"""The scratch file ($SAFE) that a power cut leaves as it is: so much of it, in characters, goes from boot to boot."""
SAFE_SIZE = 1024


class CellFailed(Exception):
    """The boot cannot go on: what failed, in words for the result."""


class PowerCut(Exception):
    """The power was to be cut, on a machine that stays."""


@contextmanager
def named(what: str) -> Iterator[None]:
    """Whatever goes wrong meanwhile is told of with these words before it. Raises Hung and Trouble."""
    try:
        yield
    except Hung as hung:
        raise Hung(f"{what}: {hung}", hung.stuck) from None
    except Trouble as trouble:
        raise Trouble(f"{what}: {trouble}") from None


def read_only(mount: tuple[str, ...]) -> bool:
    """Whether that command mounts a filesystem so that nothing of it is written."""
    return any("ro" in word.split(",") for word in mount)


class Boot:
    """The state of a boot: its plan, where its steps run and where its events go."""

    def __init__(self, todo: Plan, events: Events, place: Place, held: Path, reset: Callable[[], None]) -> None:
        self.plan = todo
        self.events = events
        self.place = place
        self.held = held
        """A directory in RAM for files of any size."""
        self.reset = reset
        """Cuts the power."""
        self.attached: Attached
        self.on = 0
        """Which of the plan's disks is the one under test."""
        self.environment = {
            "PATH": f"{PATH}:{TOOLS}",
            "LC_ALL": "C",
            "HOME": "/",
            "SOURCE": str(SOURCE),
            "AGED": str(AGED),
            "BESIDE": str(BESIDE),
            "REFUSES": "|".join(todo.refuses),
            "SAFE": str(held / SAFE),
            **todo.environment,
        }

    @property
    def disk(self) -> Disk | None:
        """The disk under test."""
        return self.plan.disks[self.on] if self.plan.disks else None

    @property
    def after_a_cut(self) -> bool:
        """Whether it begins with what a power cut has left: trouble is a result then."""
        return self.plan.recovery is not None and self.plan.recovery.survived is not None

    def run(self) -> None:
        """Do everything up to the end of the steps, or up to the next reboot, and say how it ended."""
        try:
            following = self._maps() if self.plan.maps else self._work()
        except Hung as hung:
            self.events.emit("end", status="hung", reason=str(hung), stuck=hung.stuck)
        except (CellFailed, Trouble, Refused) as failed:
            self.events.emit("end", status="failed", reason=str(failed))
        except PowerCut:
            pass  # the event that told of it was the last word
        except Exception as error:  # whatever it was, the host must hear of it before the guest is gone
            frames = traceback.extract_tb(error.__traceback__)
            last = [frame for frame in frames if Path(frame.filename).parent.name == "harness"][-1]
            where = f"{Path(last.filename).name}:{last.lineno}"
            self.events.emit("end", status="failed", reason=f"harness: {error!r} at {where}")
        else:
            if following is None:
                self.events.emit("end", status="ok", reason=None)
            else:
                self.events.emit("reboot", next=following)

    def _maps(self) -> int | None:
        """Look at forks of disks, and bring back what was found: there is no boot after it."""
        bare, boot, dilation = self.plan.drives, self.plan.boot, self.plan.dilation
        attached = drives.set_up(bare, None, boot, self._do, dilation, self.plan.block, blank=False)
        assert self.plan.results is not None, "maps need a disk to be written to"
        results = Path("/dev") / machine.disks()[self.plan.results]
        self._do(["mount", "-o", "remount,size=100%", "/run"], "making room in /run")
        maps.take(self.plan.maps, attached, results, self.held, self._do, self.environment)
        os.sync()
        return None

    def _work(self) -> int | None:
        self._prepare()
        following = self._steps()
        if self.plan.failing and following is None:
            self._rebuild(self.plan.failing)
        self._leave()
        if self.plan.beside:
            self._do(list(self.plan.beside.umount), "unmounting the filesystem beside")
        return following

    def _prepare(self) -> None:
        machine.sysctl(self.plan.memory.sysctl)
        machine.limit_dirty(self.plan.memory)
        if self.plan.copy_prices:
            try:
                machine.price_copies(self.plan.copy_prices)
            except OSError as refused:
                raise CellFailed(
                    "this kernel cannot charge the machine's byte_price: it takes no probe on its functions that copy "
                    f"the page cache ({refused.strerror}; docs/machines.md, the price of a byte)"
                ) from None
        first, late = 0, False
        if self.plan.disks:
            new = self.plan.boot == 0 and any(disk.mkfs for disk in self.plan.disks)
            what = (self.plan.drives, self.plan.swap, self.plan.boot)
            self.attached = drives.set_up(*what, self._do, self.plan.dilation, self.plan.block, blank=new)
            following = self.plan.steps[self.plan.first_step :]
            first = following[0].disk if following else 0  # none is left where the last one's power was cut
            late = self._is_made_late(first)
            if not late:
                self._take_up(first)
            if self.plan.beside:
                BESIDE.mkdir(exist_ok=True)
                self.attached.put_together(self.plan.beside, fresh=False)
                self._do(list(self.plan.beside.mount), "mounting the filesystem beside")
                self.environment["SOURCE"] = str(BESIDE)
        if self.plan.disks or self.plan.corpus:
            # A tmpfs takes half of the memory at most unless it is told otherwise: corpus and ballast are files in it.
            self._do(["mount", "-o", "remount,size=100%", "/run"], "making room in /run")
        if self.plan.corpus:
            self._mount_corpus(self.plan.corpus)
        for path, target in self.plan.links.items():
            self._lead(Path(path), Path(target))
        if self.plan.start_at is not None:
            machine.wait_until(self.plan.start_at)
        if late:
            self._take_up(first)
        self._mount()
        ballast = self.held / "ballast"
        if self.plan.swap:
            ballast.mkdir()
            self._do(["mount", "-t", "ramfs", "ballast", str(ballast)], "making a place for the ballast")
            ballast /= "file"
        machine.take_memory(self.plan.memory, ballast)
        machine.sysctl(self.plan.memory.sysctl)
        self._note_memory(ballast)

    def _is_new(self, disk: Disk) -> bool:
        """Whether the disk gets its filesystem in this boot."""
        return self.plan.boot == 0 and disk.mkfs is not None

    def _is_made_late(self, number: int) -> bool:
        """Whether putting that disk together takes longer than there is before the first step."""
        disk = self.plan.disks[number]
        return self._is_new(disk) and disk.layers is not None and disk.layers.fills

    def _take_up(self, number: int) -> None:
        """Make that disk the one under test, and mount what its tree is copied from."""
        self.on, disk = number, self.plan.disks[number]
        under_test = self.attached.put_together(disk, fresh=self._is_new(disk))
        self.place = replace(self.place, disk=under_test)
        if disk.source:
            AGED.mkdir(exist_ok=True)
            self.attached.put_together(disk.source, fresh=False)
            self._do(list(disk.source.mount), "mounting what is copied from")

    def _mount(self) -> None:
        """Mount the disk under test, with a filesystem made now where it is to have a new one."""
        disk = self.disk
        if disk is None:
            return
        self.place.mountpoint.mkdir(parents=True, exist_ok=True)
        if self.plan.boot == 0 and disk.mkfs:
            self._must(self._implicit("mkfs", disk.mkfs), "mkfs")
            self.events.emit("step", step="mkfs", repetition=1 + self.on)
        if self.plan.recovery and self.plan.recovery.survived is not None:
            (self.held / SAFE).write_text(self.plan.recovery.survived)
            todo, calls = self.plan.recovery, (self._implicit, self._do, self._must)
            recovery.recover(disk, todo, self.plan.boot + 1, *calls, self.place.scratch, self.events)
        else:
            self._must(self._implicit("mount", disk.mount), "mount")
            with named("mount"):
                self._writable()
        machine.drop_caches()

    def _writable(self) -> None:
        """See that the disk under test is not mounted read-only where the plan does not say so. Raises Trouble."""
        disk, where = self.disk, self.place.mountpoint
        if disk is None or read_only(disk.mount) or self.after_a_cut or not os.path.ismount(where):
            return
        if os.statvfs(where).f_flag & os.ST_RDONLY:
            raise Trouble("the disk under test is mounted read-only; the plan mounts it to be written")

    def _leave(self) -> None:
        """Unmount the disk under test."""
        disk = self.disk
        if disk is None:
            return
        if self.plan.tell_mount:
            kind, options = machine.mounted(self.place.mountpoint)
            self.events.emit("mounted", type=kind, options=options)
        self._do(list(disk.umount), "unmounting at the end")
        self.attached.take_apart(disk)
        if disk.source:
            self._do(list(disk.source.umount), "unmounting what was copied from")
            self.attached.take_apart(disk.source)

    def _lead(self, path: Path, target: Path) -> None:
        """Make a path lead elsewhere. To a directory it is no symbolic link, which `cp -r` would copy as one."""
        if os.path.lexists(path):
            raise CellFailed(f"{path} is there already: nothing else can be found there")
        path.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir():
            path.mkdir()
            self._do(["mount", "--bind", str(target), str(path)], f"making {path} lead to {target}")
        else:
            path.symlink_to(target)

    def _mount_corpus(self, corpus: plan.Corpus) -> None:
        """Mount the source image; held in RAM, the memory it takes away is part of the study's protocol."""
        image = Path("/dev") / machine.disks()[corpus.disk]
        if corpus.held:
            held = self.held / "source.iso"
            self._do(["head", "-c", str(corpus.size), str(image)], "copying the corpus into RAM", held)
            image = held
        self.environment["IMAGE"] = str(image)
        SOURCE.mkdir(exist_ok=True)
        self._do(["mount", "-o", "ro,loop", "-t", "iso9660", str(image), str(SOURCE)], "mounting the corpus")
        machine.drop_caches()

    def _do(self, argv: list[str], what: str, output: Path | None = None) -> None:
        """Run a command that belongs to no step; its failure ends the cell."""
        if output:
            argv = ["sh", "-c", 'exec "$@" > "$0"', str(output), *argv]
        with named(what):
            outcome = command(argv, self.place, self.environment, PATIENCE, Path("/"))
        self._must(outcome, what)

    def _must(self, outcome: Outcome, what: str) -> None:
        if outcome.status:
            raise CellFailed(f"{what} failed (exit {outcome.status}): {outcome.said}")

    def _implicit(self, name: str, argv: tuple[str, ...], expect: tuple[int, ...] = (0,)) -> Outcome:
        """mkfs and mount are measured like steps, though no scenario lists them."""
        repetition = self.plan.boot + 1 + self.on
        step = Step(name, repetition, "", "keep", False, 0, expect, (), PATIENCE, None, None, (), self.on)
        self.events.emit("begin", step=name, repetition=repetition)
        with named(name):
            return measure(step, list(argv), self.place, self.environment, self.events, Path("/"))

    def _note_memory(self, ballast: Path) -> None:
        """What the first step finds: the memory it may use and what the guest's own files in RAM take."""
        held = counters.meminfo("Shmem")
        if self.plan.swap and ballast.exists():
            held += ballast.stat().st_size  # the kernel does not count a ramfs as shared memory
        for metric, value in (("memory_available", counters.memory_available()), ("memory_held", held)):
            self.events.sample("boot", self.plan.boot + 1, metric, value, "B")

    def _steps(self) -> int | None:
        """Run the steps of this boot; the index of the step that wants a reboot first, or None at the end."""
        for index, step in enumerate(self.plan.steps):
            if index < self.plan.first_step:
                continue
            if step.caches == "reboot" and index > self.plan.first_step:
                return index
            if self.plan.disks and step.disk != self.on:
                self._leave()
                self._take_up(step.disk)
                self._mount()
            self._step(step, index + 1)
        return None

    def _step(self, step: Step, following: int) -> None:
        """Carry out a step; ``following`` is the index of the one after it."""
        if step.caches == "drop":
            machine.drop_caches()
        elif step.caches == "remount" and self.disk:
            self._do(list(self.disk.umount), "unmounting between steps")
            self._do(list(self.disk.mount), "mounting between steps")
        time.sleep(self.place.dilation.guest_seconds(step.pause))
        environment = {**self.environment, "REPETITION": str(step.repetition)}
        argv = ["sh", "-ec", step.run]
        counts = self.place.scratch / "strace"
        if step.trace:
            argv = ["strace", "-f", *step.trace, "-o", str(counts), *argv]
        self.events.emit("begin", step=step.name, repetition=step.repetition)
        with named(f"step {step.name}, repetition {step.repetition}"):
            where = self.place.mountpoint
            cut, fail = partial(self._cut, step, following), partial(self._fail, step)
            measure(step, argv, self.place, environment, self.events, where, self.plan.refuses, cut, fail)
            if step.trace:
                syscalls.report(counts.read_text(errors="replace"), step, self.events, self.place.dilation)
            self._writable()
        self.events.emit("step", step=step.name, repetition=step.repetition)
        if step.cut_after is not None:
            raise CellFailed(
                f"step {step.name}, repetition {step.repetition}, ended before its power was to be cut, "
                f"{step.cut_after:g} s after it began"
            )

    def _fail(self, step: Step, began: int) -> None:
        """Make the drive stop answering, and tell when."""
        assert self.plan.failing is not None, "a step in which a drive fails has one that does"
        drives.fail(self.plan.failing.drive)
        after = self.place.dilation.machine_seconds(time.monotonic_ns() - began)
        self.events.sample(step.name, step.repetition, "failed_after", after, "s")

    def _rebuild(self, todo: plan.Failing) -> None:
        """Put a new drive in the place of the failed one, measured until all is on it, and have the disk checked."""
        disk = self.disk
        assert disk is not None, "a drive fails under a disk"
        drives.renew(todo.drive)
        argv = self.attached.replacing(disk, todo.member, todo.commands)
        self._must(self._implicit("rebuild", argv), "putting a new drive in the place of the failed one")
        self.events.emit("step", step="rebuild", repetition=1)
        self._do(list(disk.umount), "unmounting what was rebuilt")
        calls = (self._implicit, self.place.scratch, self.events)
        recovery.check("fsck", todo.fsck, self.plan.boot + 1, *calls)
        self._do(list(disk.mount), "mounting what was rebuilt")

    def _cut(self, step: Step, following: int, began: int, group: int) -> None:
        """Tell of the power cut, and of what survives it; then cut it. The step does nothing more from here on."""
        os.killpg(group, signal.SIGSTOP)
        safe = self.held / SAFE
        survived = ""
        if safe.is_file():
            with safe.open(errors="replace") as file:
                survived = file.read(SAFE_SIZE)
        at = time.monotonic_ns()
        after = self.place.dilation.machine_seconds(at - began)
        self.events.sample(step.name, step.repetition, "cut_after", after, "s")
        uptime = time.clock_gettime(time.CLOCK_BOOTTIME)
        self.events.emit(
            "cut",
            step=step.name,
            repetition=step.repetition,
            uptime=uptime,
            at=round(self.place.dilation.machine_seconds(at) * 1e9),
            next=following,
            survived=survived,
        )
        try:
            self.reset()
        finally:
            os.killpg(group, signal.SIGKILL)  # where the machine stays
