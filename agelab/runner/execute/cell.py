"""One cell: its phases, one guest after the other until their steps are done, and a verdict."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from agelab import stored_disk
from agelab.analysis.derived_samples import derived, recovery_times, slowdowns, syscall_shares
from agelab.errors import AgelabError
from agelab.kernel import MissingModule
from agelab.model.event import CellEnded, PowerIsCut, StepFailed
from agelab.model.result import End, Sample, Status
from agelab.model.step import CONTROL_COPY
from agelab.model.step_id import AGED, CONTROL, MAP, ForkName, StepId
from agelab.results.digest import digest, inputs_key
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute import disk_maps, history_points, map_images
from agelab.runner.execute.boot import Boot, BootEvents, GuestLauncher
from agelab.runner.execute.cell_status import CellStatus, judge_boot
from agelab.runner.execute.forks import Forks, empty
from agelab.runner.plan import cell_inputs
from agelab.runner.plan.cell_spec import MIB
from agelab.runner.plan.guest_plan import DATA_DISK, guest_plan
from agelab.runner.plan.phases import Phase, phases
from agelab.store import Store
from agelab.stored_disk import StoredDisk
from agelab.vm.guest import MemoryDisk
from agelab.vm.hypervisor import Ending

MEMORY_TOLERANCE = 256 * 1024
"""Bytes by which the memory that the first step finds may always miss the plan's."""
LARGE_TOLERANCE = 2048
"""And by such a part of it: a large guest keeps a MiB of free pages aside, and counts them seconds after the ballast is
taken (Linux mm/vmstat.c, refresh_cpu_vm_stats)."""


PROOF = "the image's proof"
"""How the reason of a cell begins whose filesystem the image could not prove; then comes the proof's own status."""


@dataclass(frozen=True)
class CellGoals:
    """What is to be done with a cell's disk, beside the scenario."""

    disk: StoredDisk | None = None
    """Start from a fork of this, instead of making one."""
    beside: StoredDisk | None = None
    """What lies beside the disk under test."""
    keep: stored_disk.DiskRecipe | None = None
    """Keep what the making leaves, with this recipe."""
    measure: bool = True
    """Whether there is anything after the making."""
    curve: bool = False


OK = CellStatus(Status.OK)
ENDED = CellEnded(event="end", status="ok", reason=None)
"""What a boot has said that came to the end of its steps, whatever became of them."""


@dataclass
class CellProgress:
    """How far a cell has come."""

    samples: list[Sample] = field(default_factory=list)
    verdict: CellStatus = OK
    disk: StoredDisk | None = None
    maps: dict[str, str] = field(default_factory=dict)
    mounted: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Of a fork the type and options of its last mount, where a script decided on them."""

    def judge(self, found: CellStatus) -> None:
        """The first thing that went wrong is what the cell says."""
        if self.verdict.status is Status.OK:
            self.verdict = found


def memory_is_off(available: float, wanted: int) -> bool:
    """Whether the memory that a first step found is other memory than the plan's (bytes)."""
    return abs(available - wanted) > max(MEMORY_TOLERANCE, wanted // LARGE_TOLERANCE)


class PhaseAborted(Exception):
    """A phase has not come to its end: nothing can follow it."""


@dataclass(frozen=True)
class CellRunner:
    """Runs one cell of a run; ``progress`` hears of each step as it ends."""

    run: RunDirectory
    number: int
    machine: GuestLauncher
    wanted: CellGoals
    store: Store
    progress: Callable[[str], None]

    @property
    def directory(self) -> Path:
        return self.machine.directory

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        spec = self.machine.spec
        how = {"curve": self.wanted.curve, "real": spec.disk.real}
        every = phases(spec.scenario, self.machine.corpus, **how, crash=spec.crash)
        return every if self.wanted.measure else every[:1]

    @property
    def mapped(self) -> tuple[str, ...]:
        """The forks that the map boot looks at."""
        if not (self.wanted.measure and self.machine.spec.scenario.measures):
            return ()
        if self.machine.spec.disk.real:
            return (AGED,)
        if self.machine.spec.scenario.tests_at_points:
            return tuple(history_points.forks(self.points))
        made = () if self.wanted.disk else tuple((self.phases[0].forks or {}).values())[:-1]
        control = any(phase.name == CONTROL for phase in self.phases)
        return (*made, AGED, *([CONTROL] if control else []))

    @property
    def points(self) -> tuple[int, ...]:
        """Those of the history at which the disk is measured on the way."""
        if not (self.machine.spec.scenario.tests_at_points and self.wanted.measure):
            return ()
        taken = (self.phases[0].forks or {}).values()
        return tuple(number for name in taken if (number := ForkName.parse(name).number) is not None)

    @cached_property
    def forks(self) -> Forks:
        return Forks(self.directory, self.machine.spec, self.wanted.disk)

    def _there(self) -> tuple[str, ...]:
        """Those of the forks to map that were taken."""
        real = self.machine.spec.disk.real
        return tuple(name for name in self.mapped if real or self.forks.there(name))

    def carry_out(self) -> End:
        """Run the cell to its end record. Whatever goes wrong in the guest is its status, not an exception."""
        started = time.monotonic()
        done = CellProgress()
        key = None
        if unsupported := self.unsupported():
            done.judge(CellStatus(Status.UNSUPPORTED, unsupported))
        else:
            making, found = self._inputs()
            key = inputs_key(found)
            self.run.write_inputs(self.number, found)
            with suppress(PhaseAborted):
                self._phases(done, making)
            self._derive(done)
        status = done.verdict.status
        decided = status is not Status.INTERRUPTED and done.verdict.repeatable
        repeatable = self.machine.spec.clock == "virtual" and decided
        measured = digest(status, done.samples, done.maps)
        record = End(
            status=status,
            reason=done.verdict.reason,
            stuck=done.verdict.stuck,
            inputs_key=key,
            digest=measured if key and repeatable else None,
            disk=done.disk.key if done.disk else None,
            maps=done.maps,
            measured=measured,
            host_seconds=round(time.monotonic() - started, 3),
        )
        self.run.finish(self.number, record)
        return record

    def unsupported(self) -> str | None:
        """Why this kernel or image cannot serve the cell, or None."""
        spec, image = self.machine.spec, self.machine.image
        try:
            image.kernel.modules.closure(spec.modules)
        except MissingModule as missing:
            return ": ".join(filter(None, (str(missing), spec.filesystem.modules_why)))
        smallest = (spec.variant.minimum_mib or spec.filesystem.minimum_mib) * MIB
        if spec.disk_bytes < smallest:
            return f"{spec.filesystem.name} needs {smallest} bytes of disk, the cell has {spec.disk_bytes}"
        proof = image.proof.get((spec.filesystem.name, spec.defaults))
        if proof is None:
            return f"the image has no proof of {spec.filesystem.name} with the {spec.defaults} defaults"
        if proof.status == "unsupported":
            return proof.reason
        return None if proof.status == "ok" else f"{PROOF} {proof.status}: {proof.reason}"

    def making_key(self) -> str:
        """Of the disk that the cell makes."""
        return stored_disk.key(self._inputs()[0])

    def _inputs(self) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """What makes the disk, and all that shapes the cell."""
        spec = self.machine.spec
        module = self.machine.module if spec.modelled else None
        machine, beside = self.machine, self.wanted.beside
        around = cell_inputs.collect(spec, machine.image, machine.corpus, module, machine.tools, beside)
        first, *measured = self.phases
        shaped: dict[str, Any] = {phase.name: self._shape(self._boot(phase, 0)) for phase in measured}
        stands = self.wanted.disk
        making = stands.inputs if stands else {**around, **self._shape(self._boot(first, 0))}
        if self.points:
            names, of = history_points.forks(self.points), (spec, machine.corpus, self.forks)
            boots = [history_points.controls(*of, self.points), *history_points.tests(*of, names)]
            shaped |= {boot.phase: self._shape(boot) for boot in boots}
        if self.mapped:
            shaped[MAP] = self._shape(self._map_boot(self.mapped))
        measuring = {**around, "phases": shaped} if shaped else None
        ratios = [ratio.model_dump() for ratio in spec.scenario.ratios]
        return making, {"making": making, "measuring": measuring, "ratios": ratios}

    def _shape(self, boot: Boot) -> dict[str, Any]:
        places = {f"fork-{name}": self.forks.place(name) for name in self._forks()}
        if self.wanted.beside:
            places["beside"] = self.wanted.beside.artefact.directory
        return self.machine.inputs(boot, places)

    def _phases(self, done: CellProgress, making: Mapping[str, Any]) -> None:
        """Raises Over where one does not come to its end."""
        with ExitStack() as stack:
            if self.wanted.disk:
                done.disk = self.wanted.disk
                for sample in self.wanted.disk.samples():
                    self._keep(sample, done)
            else:
                scenario = self.machine.spec.scenario
                several = bool(scenario.experiments or scenario.tests_at_points)
                with suppress(PhaseAborted) if several else nullcontext():
                    self._carry_out(self.phases[0], done, stack)
                if self.wanted.keep and done.verdict.status is Status.OK:
                    last = self._last()
                    files = self.forks.files(last)
                    done.disk = stored_disk.save(self.store, making, self.wanted.keep, files, done.samples)
            if self.machine.spec.disk.real:  # its maps come first: its tests write to it
                self._maps(done, stack)
            for phase in self.phases[1:]:
                with suppress(PhaseAborted):  # what the tests of one disk ended in says nothing of the other
                    self._carry_out(phase, done, stack)
            self._curve(done, stack)
            if not self.machine.spec.disk.real:
                self._maps(done, stack)

    def _carry_out(self, phase: Phase, done: CellProgress, stack: ExitStack) -> None:
        """Boot until the harness has said the phase's last word, the disks persisting from one boot to the next."""
        if phase.fork_of and phase.fork_of != AGED and not self.forks.there(phase.fork_of):
            done.judge(CellStatus(Status.FAILED, f"{phase.name}: what it starts from was not prepared"))
            raise PhaseAborted
        failures: list[StepFailed] = []
        number, first_step, cut = 0, 0, None
        mounted = done.mounted.get(phase.fork_of or "")
        content = [self._disks(phase)[place] for place in self.machine.spec.disk.content]
        with ExitStack() as disks:
            for disk in self._disks(phase):
                if not disk.written:
                    continue
                disks.callback(disk.path.unlink, missing_ok=True)
                if disk in content and phase.fork_of:
                    stored_disk.sparse_copy(self.forks.files(phase.fork_of)[content.index(disk)], disk.path)
                else:
                    empty(disk)
            while True:
                if gone := self._vanished():
                    done.judge(gone)
                    raise PhaseAborted
                boot = self._boot(phase, number, first_step, mounted, cut)
                heard = BootEvents(failures=failures)
                ending = self.machine.run(boot, heard, lambda sample: self._keep(sample, done), self.progress)
                cut, goes_on = heard.cut, heard.reboot or heard.cut
                following = goes_on.next if goes_on and not heard.ended else None
                if following is not None and (ending is not Ending.STOPPED or following <= first_step):
                    following = None  # it did not get that far, or a step forged an event
                ended = ENDED if following is not None else heard.ended
                # Of what could not be prepared nothing is measured, and nothing else starts from it. Other steps that
                # failed are told of in the end; after a kernel or filesystem in trouble there is no next boot.
                unprepared = bool(failures) and bool(self.machine.spec.scenario.experiments)
                told = failures if following is None or unprepared else []
                said = self._verdict(boot, ending, heard, ended, told)
                if following is None or said.status is not Status.OK:
                    done.judge(self._vanished() or self._checked(said, phase.within, done.samples))
                    if following is not None or unprepared or not (ended and ended.status == "ok"):
                        raise PhaseAborted
                mounted = (heard.mounted.type, heard.mounted.options) if heard.mounted else mounted
                ahead = len(phase.steps) if following is None else following
                if not cut and (name := phase.fork_before(ahead)):  # what a cut leaves is no fork
                    if mounted:
                        done.mounted[name] = mounted
                    if name in self._forks():
                        files = [disk.path for disk in content]
                        self.forks.take(name, files, stack, last=following is None)
                if following is None:
                    return
                number, first_step = number + 1, following

    def _curve(self, done: CellProgress, stack: ExitStack) -> None:
        """Make the controls of the points that the history has reached, then test both."""
        spec, corpus = self.machine.spec, self.machine.corpus
        reached = [point for point in self.points if self.forks.there(str(ForkName(AGED, point)))]
        if not reached:
            return
        for point in reached:
            self.forks.make(str(ForkName(CONTROL, point)), stack)
        self._judged(history_points.controls(spec, corpus, self.forks, reached), done)
        copy = (str(StepId(CONTROL_COPY, (CONTROL,))), "elapsed")
        copied = {one.repetition for one in done.samples if (one.step, one.metric) == copy}
        for point in set(reached) - copied:
            self.forks.drop(str(ForkName(CONTROL, point)))
        names = [name for name in history_points.forks(reached) if self.forks.there(name)]
        for boot in history_points.tests(spec, corpus, self.forks, names):
            if done.verdict.status is not Status.INTERRUPTED:
                self._judged(boot, done)

    def _judged(self, boot: Boot, done: CellProgress) -> None:
        """A boot that no other follows, and whose memory is the plan's."""
        done.judge(self._checked(self._one_boot(boot, done), boot.phase, done.samples))

    def _one_boot(self, boot: Boot, done: CellProgress) -> CellStatus:
        """A boot that no other follows."""
        heard = BootEvents()
        ending = self.machine.run(boot, heard, lambda sample: self._keep(sample, done), self.progress)
        return self._verdict(boot, ending, heard, heard.ended, heard.failures)

    def _verdict(
        self,
        boot: Boot,
        ending: Ending,
        heard: BootEvents,
        ended: CellEnded | None,
        failures: Sequence[StepFailed],
    ) -> CellStatus:
        console, gone = self.machine.console(boot), boot.plan["gone"]
        return judge_boot(ending, ended, failures, console, gone=gone, during=heard.during)

    def _maps(self, done: CellProgress, stack: ExitStack) -> None:
        """Look at the forks, and make samples of what is found."""
        there = self._there()
        if not there:
            return
        if gone := self._vanished():
            done.judge(gone)
            raise PhaseAborted
        spec = self.machine.spec
        boot = self._map_boot(there)
        results = boot.disks[-1]
        stack.callback(results.path.unlink)
        empty(results)
        said = self._one_boot(boot, done)
        if said.status is not Status.OK:
            done.judge(self._vanished() or CellStatus(said.status, f"maps: {said.reason}"))
            return
        try:
            done.maps = disk_maps.collect(results.path, self.directory)
            read = list(disk_maps.read(self.directory, spec, self.mapped))
            for found in read:
                for sample in disk_maps.samples(found, spec.scenario.measures):
                    self._keep(sample, done)
            map_images.draw(self.directory, spec, read, done.samples)
        except AgelabError as error:
            done.judge(CellStatus(Status.FAILED, f"maps: {error}"))

    def _derive(self, done: CellProgress) -> None:
        """Add the samples that follow from others."""
        scenario = self.machine.spec.scenario
        ratios, shares = derived(scenario.ratios, done.samples), syscall_shares(done.samples)
        for sample in [*ratios, *shares, *recovery_times(done.samples)]:
            self._keep(sample, done)
        if scenario.control and self.wanted.measure:
            why = "a real disk cannot be forked: there is no control" if self.machine.spec.disk.real else None
            drives = scenario.curve.tested_on if scenario.curve else ()
            tests = [StepId(test.name).inside(drive) for drive in drives or [""] for test in scenario.tests]
            for sample in slowdowns(tests, done.samples, why):
                self._keep(sample, done)

    def _keep(self, sample: Sample, done: CellProgress) -> None:
        self.run.append(self.number, sample)
        done.samples.append(sample)

    def _checked(self, end: CellStatus, phase: str, samples: Sequence[Sample]) -> CellStatus:
        """The verdict, unless a boot's first step found other memory than the plan says: then its ratios are off."""
        boots = [
            one
            for one in samples
            if (one.step, one.metric) == (str(StepId("boot").inside(phase)), "memory_available")
        ]
        wanted = self.machine.spec.available
        for sample in boots:
            if memory_is_off(sample.value or 0, wanted):
                why = f"{sample.step} {sample.repetition}: {sample.value} bytes were available, not {wanted}"
                return CellStatus(Status.FAILED, why) if end.status is Status.OK else end
        return end

    def _vanished(self) -> CellStatus | None:
        """That a real drive is not what it was when the run claimed it: whatever else went wrong followed from it."""
        for drive in self.machine.spec.disk.drives:
            if drive.claim and (why := drive.claim.problem()):
                return CellStatus(Status.FAILED, f"the drive changed while the cell ran: {why}")
        return None

    def _boot(
        self,
        phase: Phase,
        number: int,
        first_step: int = 0,
        mounted: tuple[str, str] | None = None,
        cut: PowerIsCut | None = None,
    ) -> Boot:
        spec, corpus = self.machine.spec, self.machine.corpus
        source = self.forks.attached(AGED) if phase.source and number == 0 else ()
        return Boot(
            name=phase.files,
            number=number,
            day=phase.day,
            plan=guest_plan(spec, corpus, phase, number, first_step, mounted, cut.survived if cut else None),
            memory_mib=spec.memory_mib(corpus),
            disks=(*self._disks(phase), *source),
            phase=phase.within,
        )

    def _map_boot(self, names: Sequence[str]) -> Boot:
        return disk_maps.boot(self.machine.spec, self.forks, names, self.directory / "results")

    def _disks(self, phase: Phase) -> tuple[MemoryDisk, ...]:
        """What holds the data of a phase's partitions, in the order in which the plan numbers them."""
        name, spec = phase.files, self.machine.spec
        disks = [
            MemoryDisk(self.directory / f"{name}disk-{number}", size, written=True)
            for number, size in enumerate(spec.disk.backing, start=DATA_DISK)
        ]
        if (place := spec.disk.beside_place) is not None and self.wanted.beside:
            disks[place] = MemoryDisk(self.wanted.beside.members[0], spec.beside_bytes, written=False)
        return tuple(disks)

    def _last(self) -> str:
        """The name of the fork that the making leaves in the end."""
        forks = self.phases[0].forks or {}
        return forks[max(forks)]

    def _forks(self) -> tuple[str, ...]:
        """The forks that something comes of."""
        if self.machine.spec.disk.real:
            return ()
        started_from = [phase.fork_of for phase in self.phases if phase.fork_of]
        source = [AGED] if self.wanted.keep or any(phase.source for phase in self.phases) else []
        if self.machine.spec.scenario.tests_at_points:
            source = [*history_points.forks(self.points), *([self._last()] if self.wanted.keep else [])]
        return tuple(dict.fromkeys([*self.mapped, *source, *started_from]))
