"""Outputs of programs: numbers that a sample can hold, or the reason why there are none."""

from collections.abc import Iterator
from contextlib import suppress

from agelab.evaluate.program_output import UnreadableOutput, read_program, read_records
from agelab.results.result import Sample
from agelab.scenario import workloads
from tests.fuzz._files import PROJECT

PROGRAMS = workloads.programs()


def one(data: bytes) -> None:
    """Read it as the output of the program that its first byte chooses, and as numbers of a user's own."""
    text = data[1:].decode(errors="replace")
    program = PROGRAMS[data[0] % len(PROGRAMS) if data else 0]
    with suppress(UnreadableOutput):
        for reading in read_program(program, text):
            unit = program.metrics[reading.metric].unit
            value = reading.in_machine_time(unit, 1)
            Sample(step=f"s.{reading.part}", metric=reading.metric, value=value, unit=unit)
    with suppress(UnreadableOutput):
        read_records(("one", "two"), text)


def seeds() -> Iterator[bytes]:
    """What each program printed."""
    for path in sorted((PROJECT / "tests/unit/evaluate/program-output").iterdir()):
        for number, program in enumerate(PROGRAMS):
            if path.name.startswith(program.name):
                yield bytes([number]) + path.read_bytes()
