"""Compute samples that follow from other samples."""

from collections.abc import Iterable, Iterator, Sequence

from agelab.results.result import MAX_MAGNITUDE, Sample
from agelab.scenario.metrics import METRICS
from agelab.scenario.scenario import Scenario
from agelab.scenario.step import AGED, CONTROL, RECOVERING, Ratio, StepId

WAITING = ("wait4", "waitid", "waitpid")
"""System calls in which a process waits for another one's end (wait(2))."""

NO_NUMBER = "the ratio is larger than any number that a sample holds"


def derived(scenario: Scenario, samples: Sequence[Sample], *, tested: bool, no_control: str | None) -> Iterator[Sample]:
    """Yield the samples of a cell that follow from others; slowdowns, with the reason where there is no control."""
    yield from repetition_ratios(scenario.ratios, samples)
    yield from syscall_shares(samples)
    yield from recovery_times(samples)
    if scenario.control and tested:
        drives = scenario.curve.tested_on if scenario.curve else ()
        tests = [StepId(test.name).inside(drive) for drive in drives or [""] for test in scenario.tests]
        yield from slowdowns(tests, samples, no_control)


def repetition_ratios(ratios: Iterable[Ratio], samples: Sequence[Sample]) -> list[Sample]:
    """Return a sample for each ratio: the metric's last repetition over its first, or why there is none."""
    ratio_samples = []
    for ratio in ratios:
        series = sorted(
            (sample for sample in samples if (sample.step, sample.metric) == (ratio.step, ratio.metric)),
            key=lambda sample: sample.repetition,
        )
        value, why = None, None
        if len(series) < 2:
            why = f"{ratio.step} has {len(series)} repetitions with {ratio.metric}; two are needed"
        elif not series[0].value or series[-1].value is None:
            why = f"{ratio.metric} of the first or last {ratio.step} is not measured"
        elif (value := _over(series[-1].value, series[0].value)) is None:
            why = NO_NUMBER
        ratio_samples.append(_derived(ratio.step, ratio.name, value, why))
    return ratio_samples


def syscall_shares(samples: Sequence[Sample]) -> list[Sample]:
    """Return each system call's share of its step's time, without the waiting calls (as the study of 2005 did)."""
    times = [sample for sample in samples if sample.metric == "syscall_seconds"]
    sums: dict[str, float] = {}
    for sample in times:
        step, call = sample.step_id.group, sample.step_id.name
        sums[step] = sums.get(step, 0) + (0 if call in WAITING else sample.value or 0)
    shares = []
    for sample in times:
        step, call = sample.step_id.group, sample.step_id.name
        why = None if sums[step] else "no call took any time"
        if call in WAITING:
            why = "it waits for another process"
        value = None if why else _over(sample.value or 0, sums[step])
        why = NO_NUMBER if value is None and why is None else why
        shares.append(_derived(sample.step, "syscall_share", value, why, sample.repetition))
    return shares


def recovery_times(samples: Sequence[Sample]) -> list[Sample]:
    """Return, for each mount after a power cut, how long the filesystem took to be usable again, repair included."""
    times = {(sample.step, sample.repetition): sample.value or 0 for sample in samples if sample.metric == "elapsed"}
    recoveries = []
    for mount in samples:
        if mount.metric == "mount_status" and mount.value == 0:
            steps = [str(mount.step_id.beside(name)) for name in RECOVERING]
            value = round(sum(times.get((step, mount.repetition), 0) for step in steps), 6)
            sample = mount.model_copy(update={"metric": "recovery_time", "value": value, "unit": "s"})
            recoveries.append(sample)
    return recoveries


def slowdowns(tests: Iterable[StepId], samples: Sequence[Sample], no_control: str | None = None) -> list[Sample]:
    """Divide each test's time on the aged disk by that on the control; ``no_control`` says why there is none."""
    times = {(sample.step, sample.repetition): sample.value for sample in samples if sample.metric == "elapsed"}
    slowdown_samples = []
    for test in tests:
        old, new = (str(test.on(disk)) for disk in (AGED, CONTROL))
        repetitions = sorted(number for step, number in times if step == old)
        for number in repetitions or [1]:
            ours, theirs = times.get((old, number)), times.get((new, number))
            value = _over(ours, theirs) if ours and theirs else None
            why = None if value is not None else no_control or "the test did not end on both disks"
            slowdown_samples.append(_derived(str(test), "slowdown", value, why, number))
    return slowdown_samples


def _derived(step: str, metric: str, value: float | None, why: str | None, repetition: int = 1) -> Sample:
    unit = METRICS[metric].unit
    return Sample(step=step, metric=metric, value=value, unit=unit, repetition=repetition, not_measured=why)


def _over(value: float, other: float) -> float | None:
    """Return the ratio of two values of a guest, or None where no sample could hold it."""
    ratio = round(value / other, 6)
    return ratio if abs(ratio) <= MAX_MAGNITUDE else None
