"""What steps have printed, from their output disk to samples."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agelab.base.sanitize import escape_controls
from agelab.evaluate.program_output import Reading, UnreadableOutput, read_program, read_records
from agelab.results.result import MAX_MAGNITUDE, Sample
from agelab.scenario.metrics import METRICS, Metric
from agelab.scenario.step import StepId
from agelab.scenario.workload import GuestProgram

NOT_READ = "the step printed more than the 1 MiB that is kept"
TOO_LARGE = "the number is larger than any that a sample holds"
LAST_LINE = 200
"""Characters of an output's last line that a reason has."""
OF_DISK = ("requests", "bytes_read", "bytes_written")
LEFT_OVER = 10
"""Where a disk moves less than one in so many of a program's bytes, it moves what earlier steps left, and not those."""
NOT_OF_THIS_DISK = (
    "not of this disk: the program moved data, and the disk under test saw no request for them meanwhile "
    "(they lay in memory, or elsewhere)"
)

PLACE_BYTES = 1 << 20
"""Bytes of an output at most; what is beyond is left out."""


@dataclass(frozen=True)
class KeptOutput:
    """An output that the guest has kept on the disk."""

    place: int
    """Its number on the disk."""
    step: StepId
    repetition: int
    program: GuestProgram | None
    """The program that printed it; None for the numbers of ``records``, and for what is only kept."""
    records: tuple[str, ...] = ()

    @property
    def file_name(self) -> str:
        return f"{str(self.step).replace('/', '-')}-{self.repetition}.output"


def samples(
    disk: Path,
    kept: Iterable[KeptOutput],
    own: Mapping[str, Metric],
    dilation: float,
    ended: Sequence[Sample],
) -> Iterator[Sample]:
    """Yield what steps printed as samples, of those that have ``ended``; ``own`` are the scenario's own metrics.

    The outputs themselves are left beside the disk, as ``[<phase>-]<step>-<repetition>.output``.
    """
    there = {(sample.step, sample.repetition) for sample in ended if sample.metric == "elapsed"}
    of_disk: dict[tuple[str, int], dict[str, float]] = {}
    for sample in ended:
        if sample.metric in OF_DISK and sample.value is not None:
            of_disk.setdefault((sample.step, sample.repetition), {})[sample.metric] = sample.value
    for output in kept:
        step = str(output.step), output.repetition
        data = _printed(disk, output)
        if data or step in there:  # a test's is there, too, where the guest has ended in it
            (disk.parent / output.file_name).write_bytes(data)
        if step in there:
            printed = list(_of_step(data, output, {**METRICS, **own}, dilation))
            if _is_elsewhere(output.program, printed, of_disk.get(step, {})):
                printed = [_not_of_this_disk(sample) for sample in printed]
            yield from printed


def last_words(disk: Path, kept: Iterable[KeptOutput], step: str, repetition: int, complaint: str) -> str:
    """Return why a failed step failed: for its program's reader a part, such as a job of fio, that has no numbers.

    Else it is ``complaint``, from its error output, or what the reader cannot read, or the last line printed.
    """
    for output in kept:
        if (str(output.step), output.repetition) == (step, repetition):
            data = _printed(disk, output)
            unread, readings = "", []
            try:
                readings = _readings(data, output)
            except UnreadableOutput as error:
                unread = str(error) if output.program else ""
            measured = {reading.part for reading in readings if reading.value is not None}
            reasons = [reading.not_measured or "" for reading in readings if reading.part not in measured]
            lines = escape_controls(data.decode(errors="replace")).split("\n")
            last = next((line.strip() for line in reversed(lines) if line.strip()), "")
            return next(filter(None, reasons), "") or complaint or unread or last[-LAST_LINE:]
    return complaint


def _printed(disk: Path, output: KeptOutput) -> bytes:
    with disk.open("rb") as file:
        file.seek(output.place * PLACE_BYTES)
        return file.read(PLACE_BYTES).rstrip(b"\0")


def _is_elsewhere(program: GuestProgram | None, printed: Iterable[Sample], of_disk: Mapping[str, float]) -> bool:
    """Return True if a program moved data, and what the disk moved meanwhile was not that."""
    moves = program.moves if program else ()
    moved = [sample for sample in printed if sample.metric in moves and sample.value]
    if not moved or not of_disk:
        return False
    most = max((sample.value or 0 for sample in moved if sample.unit == "B"), default=0)
    disk_bytes = of_disk.get("bytes_read", 0) + of_disk.get("bytes_written", 0)
    return of_disk.get("requests") == 0 or LEFT_OVER * disk_bytes < most


def _not_of_this_disk(sample: Sample) -> Sample:
    """Return it with the caveat, if it has a value."""
    return sample if sample.value is None else sample.model_copy(update={"caveat": NOT_OF_THIS_DISK})


def _of_step(data: bytes, output: KeptOutput, metrics: Mapping[str, Metric], dilation: float) -> Iterator[Sample]:
    program = output.program

    def sample(metric: str, value: float | None, why: str | None, part: str = "") -> Sample:
        if value is not None and abs(value) > MAX_MAGNITUDE:
            value, why = None, TOO_LARGE
        return Sample(
            step=str(output.step.of_part(part)),
            metric=metric,
            value=value,
            unit=metrics[metric].unit,
            repetition=output.repetition,
            not_measured=why,
        )

    expected = tuple(number.metric for number in program.numbers) if program else output.records
    try:
        readings = _readings(data, output)
    except UnreadableOutput as error:
        for metric in expected or tuple(program.metrics if program else ())[:1]:
            yield sample(metric, None, str(error))
        return
    for reading in readings:
        value = reading.in_machine_time(metrics[reading.metric].unit, dilation)
        yield sample(reading.metric, value, reading.not_measured, reading.part)
    for metric in dict.fromkeys(expected):
        if metric not in {reading.metric for reading in readings}:
            yield sample(metric, None, f"{program.name if program else None} printed no such number")


def _readings(data: bytes, output: KeptOutput) -> list[Reading]:
    """Return what an output holds. Raises UnreadableOutput."""
    if not output.program and not output.records:
        return []
    if len(data) == PLACE_BYTES:
        raise UnreadableOutput(NOT_READ)
    text = data.decode(errors="replace")
    return read_program(output.program, text) if output.program else read_records(output.records, text)
