"""What steps have printed, from the output disk of a phase to samples."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agelab.model.metrics import METRICS, Metric
from agelab.model.result import MAX_MAGNITUDE, Sample
from agelab.model.step_id import StepId
from agelab.model.workload import GuestProgram
from agelab.program_output import Reading, UnreadableOutput, read_program, read_records
from agelab.runner.plan.kept_output import PLACE_BYTES, outputs
from agelab.runner.plan.phases import Phase
from agelab.runner.plan.step_plan import StepOutput, StepPlan
from agelab.scenario.workloads import Workload

NOT_READ = "the step printed more than the 1 MiB that is kept"
TOO_LARGE = "the number is larger than any that a sample holds"


def samples(
    disk: Path, phase: Phase, workload: Workload, dilation: float, ended: Sequence[Sample]
) -> Iterator[Sample]:
    """Yield what the steps of a phase printed as samples, of those that have ``ended``.

    The outputs themselves are left beside the disk, as ``[<phase>-]<step>-<repetition>.output``.
    """
    there = {(one.step, one.repetition) for one in ended if one.metric == "elapsed"}
    with disk.open("rb") as file:
        for place, step in outputs(phase):
            step_id = StepId.parse(step.name).inside(phase.in_samples)
            if (str(step_id), step.repetition) in there and step.output:
                file.seek(place * PLACE_BYTES)
                data = file.read(PLACE_BYTES).rstrip(b"\0")
                name = f"{str(step_id).replace('/', '-')}-{step.repetition}.output"
                (disk.parent / name).write_bytes(data)
                yield from _of_step(data, step, step.output, step_id, workload, dilation)


def _of_step(
    data: bytes, step: StepPlan, output: StepOutput, step_id: StepId, workload: Workload, dilation: float
) -> Iterator[Sample]:
    metrics: Mapping[str, Metric] = {**METRICS, **workload.metrics}
    program = workload.programs[output.program] if output.program else None

    def sample(metric: str, value: float | None, why: str | None, part: str = "") -> Sample:
        if value is not None and abs(value) > MAX_MAGNITUDE:
            value, why = None, TOO_LARGE
        return Sample(
            step=str(step_id.of_part(part)),
            metric=metric,
            value=value,
            unit=metrics[metric].unit,
            repetition=step.repetition,
            not_measured=why,
        )

    expected = tuple(one.metric for one in program.numbers) if program else output.records
    try:
        found = _readings(data, output, program)
    except UnreadableOutput as error:
        for metric in expected or tuple(workload.programs[output.program or ""].metrics)[:1]:
            yield sample(metric, None, str(error))
        return
    for one in found:
        yield sample(one.metric, one.in_machine_time(metrics[one.metric].unit, dilation), None, one.part)
    for metric in dict.fromkeys(expected):
        if metric not in {one.metric for one in found}:
            yield sample(metric, None, f"{output.program} printed no such number")


def _readings(data: bytes, output: StepOutput, program: GuestProgram | None) -> list[Reading]:
    """Return what an output holds. Raises UnreadableOutput."""
    if len(data) == PLACE_BYTES:
        raise UnreadableOutput(NOT_READ)
    said = data.decode(errors="replace")
    return read_program(program, said) if program else read_records(output.records, said)
