"""One cell, from its inputs to its end record: making the disk, its tests, its maps."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial

from agelab.base.errors import AgelabError
from agelab.evaluate import maps, step_output
from agelab.evaluate.cell_status import CellStatus
from agelab.evaluate.derived_samples import derived
from agelab.results.key_and_digest import digest, inputs_key
from agelab.results.result import MOMENT, End, Sample, Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute import disk_maps
from agelab.runner.execute.answers import CellLost, CellReuse, Elsewhere
from agelab.runner.execute.cell_parts import CellParts, GuestSlots, Part
from agelab.runner.execute.disk_maps import PointsBoot
from agelab.runner.execute.guests import GuestLauncher
from agelab.runner.execute.host_timing import CellTimer
from agelab.runner.execute.passes import BlockPass, ProfilePass, Profiler
from agelab.runner.execute.phases import (
    BootRunner,
    CellBoots,
    CellGoals,
    CellProgress,
    PhaseAborted,
    PhaseRunner,
)
from agelab.runner.plan.cell_inputs import evaluated_by
from agelab.runner.plan.guest_plan import Boot, unsupported
from agelab.runner.plan.passes import outputs
from agelab.runner.plan.phases import Phase
from agelab.runner.reuse.ended_cells import CellKey, EndedCell
from agelab.scenario.step import AGED, CONTROL, CONTROL_COPY, ForkName, StepId
from agelab.store import stored_disk


@dataclass(frozen=True)
class CellRunner:
    """Runs one cell of a run; ``on_step`` hears of each step as it ends."""

    run: RunDirectory
    number: int
    launcher: GuestLauncher
    goals: CellGoals
    on_step: Callable[[str], None]
    timer: CellTimer | None = None
    """Takes the host's time, where it is asked for."""
    reuse: CellReuse | None = None
    """Finds ended cells that may stand for this one; None where it runs in any case."""
    profiler: Profiler | None = None
    """Takes a profile behind the cell, where it is asked for."""
    elsewhere: Elsewhere | None = None
    """Other hosts, where they run it."""
    slots: GuestSlots = field(default_factory=GuestSlots)
    """Room for more guests than one."""

    @cached_property
    def boots(self) -> CellBoots:
        return CellBoots(self.launcher, self.goals)

    def carry_out(self) -> End:
        """Run the cell to its end record, or take that of an ended cell with its key.

        Whatever goes wrong in the guest is its status, not an exception.
        """
        started = time.monotonic()
        progress = CellProgress(self.run, self.number, self.launcher.spec)
        key, earlier = None, None
        if why := unsupported(self.launcher.spec, self.launcher.guests.image):
            progress.judge(CellStatus(Status.UNSUPPORTED, why))
        else:
            inputs = self.boots.inputs()
            key = inputs_key(inputs)
            self.run.write_inputs(self.number, inputs)
            whole = CellKey(key, evaluated_by(self.launcher.spec))
            if self.reuse and (earlier := self.reuse.find(whole, self.launcher.directory)):
                if not self.reuse.is_checked(self.run, whole):
                    return self._take(earlier)
                disk_maps.remove(self.launcher.directory)
            if self.elsewhere:
                try:
                    directory, memory = self.launcher.directory, self.goals.host_bytes
                    there = self.elsewhere.run(self.launcher.spec.name, whole, directory, memory)
                    return self._take_from_elsewhere(there, earlier)
                except CellLost as error:
                    progress.judge(CellStatus(Status.INTERRUPTED, str(error)))
            else:
                _StartedCell(self, progress).run()
        seconds = round(time.monotonic() - started, 3)
        end = self._end(progress, key, seconds, earlier)
        if self.timer:
            self.run.write_timing(self.number, self.timer.timing(seconds))
        return self._finish(end, progress.samples)

    def _take(self, earlier: EndedCell) -> End:
        """Finish the cell with an ended one that was found."""
        start = self.goals.start_from
        return self._take_as(earlier, earlier.as_reused(start.key if start else None))

    def _take_from_elsewhere(self, there: EndedCell, earlier: EndedCell | None) -> End:
        """Finish the cell with what another host has measured or knew, which may dispute an earlier cell."""
        before = there.end.disputes or (earlier.end.digest if earlier else None)
        changes = {"host": there.origin.host, "disputes": before if before != there.end.digest else None}
        return self._take_as(there, there.end.model_copy(update=changes))

    def _take_as(self, earlier: EndedCell, end: End) -> End:
        """Finish the cell with the samples, maps and pictures of an ended one; what lacks is drawn anew."""
        directory, spec = self.launcher.directory, self.launcher.spec
        self.run.append_all(self.number, earlier.samples)
        if end.maps and not disk_maps.are_there(directory, end.pictures):
            drawn: dict[str, str] = {}
            with suppress(AgelabError):  # then the cell has failed for it, which its record says
                known = list(disk_maps.reader(spec).read(directory, self.boots.mapped_forks))
                drawn = disk_maps.draw(directory, spec, known, earlier.samples)
            end = end.model_copy(update={"pictures": drawn})
        return self._finish(end, earlier.samples)

    def _finish(self, end: End, samples: Sequence[Sample]) -> End:
        if self.goals.blocks and end.status is Status.OK and self.launcher.spec.disk.modelled:
            BlockPass(self.run, self.number, self.launcher, self.goals, self.on_step).run()
        if self.profiler and end.status is Status.OK and end.inputs_key:
            profiler = self.profiler
            beside = (self.run, self.number, self.launcher, self.goals, profiler.on_step)
            ProfilePass(*beside, profiler.program, self.timer).run(end.inputs_key)
        end = end.model_copy(update={"ended": datetime.now(UTC).strftime(MOMENT)})
        self.run.finish(self.number, end)
        if self.reuse:
            self.reuse.share(self.run, self.number, end, samples)
        return end

    def _end(self, progress: CellProgress, key: str | None, seconds: float, earlier: EndedCell | None) -> End:
        status = progress.status
        measured = digest(status.status, progress.samples, progress.maps)
        ended_by_guest = status.status is not Status.INTERRUPTED and status.repeatable
        repeatable = key and self.launcher.spec.clock == "virtual" and ended_by_guest
        before = earlier.end.digest if earlier and repeatable else None
        return End(
            status=status.status,
            reason=status.reason,
            stuck=status.stuck,
            inputs_key=key,
            digest=measured if repeatable else None,
            disk=progress.disk.key if progress.disk else None,
            maps=progress.maps,
            measured=measured,
            pictures=progress.pictures,
            host_seconds=seconds,
            evaluated_by=evaluated_by(self.launcher.spec),
            disputes=before if before != measured else None,
        )


@dataclass(frozen=True)
class _StartedCell:
    """A cell whose guests run."""

    cell: CellRunner
    progress: CellProgress

    @property
    def boots(self) -> CellBoots:
        return self.cell.boots

    def _runner(self, progress: CellProgress) -> BootRunner:
        return BootRunner(self.boots, progress, self.cell.on_step, self.cell.timer)

    def run(self) -> None:
        """Run all phases, and add the samples that follow from theirs."""
        with suppress(PhaseAborted), ExitStack() as cleanup:
            self._make_disk(cleanup)
            CellParts(self.progress, self._parts(cleanup), self.cell.slots, self._abandon).run()
        self._derive_samples()

    def _abandon(self) -> None:
        self.cell.launcher.guests.hypervisor.abandon()

    def _parts(self, cleanup: ExitStack) -> list[Part]:
        """Return what follows when the disk is made, in the order of its results."""
        boots = self.boots
        parts = [self._part_of_phase(phase, cleanup) for phase in boots.phases[1:]]
        mapping = Part(partial(self._map_forks, cleanup), needs=frozenset(boots.mapped_forks))
        if boots.points:
            controls = frozenset(str(ForkName(CONTROL, point)) for point in boots.points)
            parts.append(Part(partial(self._test_points, cleanup), makes=controls))
        # The tests of a real disk write to it.
        return [mapping, *parts] if boots.spec.disk.real else [*parts, mapping]

    def _part_of_phase(self, phase: Phase, cleanup: ExitStack) -> Part:
        needs = {*([phase.fork_of] if phase.fork_of else []), *([AGED] if phase.source else [])}

        def run(progress: CellProgress) -> None:
            PhaseRunner(self._runner(progress), phase, cleanup).run()

        return Part(run, frozenset(needs), frozenset(phase.forks.values()))

    def _make_disk(self, cleanup: ExitStack) -> None:
        """Make the disk and keep it if asked to, or take the samples of the stored disk."""
        goals, spec, progress = self.cell.goals, self.boots.spec, self.progress
        if goals.start_from:
            progress.disk = goals.start_from
            for sample in goals.start_from.samples():
                progress.record(sample)
            return
        goes_on = bool(spec.scenario.experiments or spec.scenario.tests_at_points)
        with suppress(PhaseAborted) if goes_on else nullcontext():
            PhaseRunner(self._runner(progress), self.boots.phases[0], cleanup).run()
        if goals.keep_as and progress.status.ok:
            files = self.boots.forks.files(self.boots.final_fork)
            progress.disk = stored_disk.save(
                self.cell.launcher.guests.store,
                self.boots.disk_inputs,
                goals.keep_as,
                files,
                progress.samples,
                readable_by=goals.readable_by,
            )

    def _test_points(self, cleanup: ExitStack, progress: CellProgress) -> None:
        """Copy the control of each point that the history has reached, then test both."""
        boots, forks = self.boots, self.boots.forks
        reached = [point for point in boots.points if forks.exists(str(ForkName(AGED, point)))]
        if not reached:
            return
        for point in reached:
            forks.create(str(ForkName(CONTROL, point)), cleanup, boots.contents)
        self._run_judged(boots.copying_controls(reached), progress)
        copy = str(StepId(CONTROL_COPY, (CONTROL,)))
        copied = {sample.repetition for sample in progress.samples if (sample.step, sample.metric) == (copy, "elapsed")}
        for point in reached:
            name = str(ForkName(CONTROL, point))
            if point not in copied:
                forks.remove(name)
            progress.forked(name)
        names = [name for name in disk_maps.fork_names(reached) if forks.exists(name)]
        for boot in boots.testing(names):
            if progress.status.status is not Status.INTERRUPTED:
                self._test_at_points(boot, progress)

    def _test_at_points(self, boot: PointsBoot, progress: CellProgress) -> None:
        """Run a boot, and add the samples that its steps have printed."""
        disk, files, spec = boot.output, self.boots.disk_files, self.boots.spec
        if disk is None or boot.steps is None:
            self._run_judged(boot, progress)
            return
        files.create(disk)
        try:
            self._run_judged(boot, progress)
            kept = outputs(boot.steps, spec.workload.programs)
            for sample in step_output.samples(disk.path, kept, spec.workload.metrics, spec.dilation, progress.samples):
                progress.record(sample)
        finally:
            files.remove(disk.path)

    def _run_judged(self, boot: Boot, progress: CellProgress) -> None:
        progress.judge_last_boot(self._runner(progress).run_alone(boot), boot.phase)

    def _map_forks(self, cleanup: ExitStack, progress: CellProgress) -> None:
        """Map the forks that were taken, and make samples and pictures of the maps."""
        boots = self.boots
        real = boots.spec.disk.real
        names = [name for name in boots.mapped_forks if real or boots.forks.exists(name)]
        if not names:
            return
        progress.require_drives()
        boot = boots.mapping(names)
        results = boot.disks[-1]
        cleanup.callback(boots.disk_files.remove, results.path)
        boots.disk_files.create(results)
        status = self._runner(progress).run_alone(boot)
        if not status.ok:
            progress.judge(progress.changed_drive() or CellStatus(status.status, f"maps: {status.reason}"))
            return
        try:
            self.progress.maps = maps.unpack(results.path, boots.directory)
            known = list(disk_maps.reader(boots.spec).read(boots.directory, boots.mapped_forks))
            for disk_map in known:
                for sample in maps.samples(disk_map, boots.spec.scenario.measures):
                    progress.record(sample)
            self.progress.pictures = disk_maps.draw(boots.directory, boots.spec, known, progress.samples)
        except AgelabError as error:
            progress.judge(CellStatus(Status.FAILED, f"maps: {error}"))

    def _derive_samples(self) -> None:
        """Add the samples that follow from others."""
        spec, samples = self.boots.spec, self.progress.samples
        why = "a real disk cannot be forked: there is no control" if spec.disk.real else None
        measure = self.cell.goals.measure
        for sample in [*derived(spec.scenario, tuple(samples), tested=measure, no_control=why)]:
            self.progress.record(sample)
