"""What steps print, read as measurements: numbers of a user's metrics or a program, fio's JSON, verdicts on tests.

Readers work on the host, on text that a guest wrote: nothing in it is trusted.
"""

from agelab.evaluate.program_output import fio, numbers, test
from agelab.evaluate.program_output.reading import Reading, UnreadableOutput
from agelab.scenario.workload import GuestProgram

__all__ = ["Reading", "UnreadableOutput", "read_program", "read_records"]

READERS = {"fio": fio.read, "numbers": numbers.read, "test": test.read}
"""Reader by its name in a program's file."""


def read_program(program: GuestProgram, text: str) -> list[Reading]:
    """Return what a program's output holds. Raises UnreadableOutput where it holds none of its metrics."""
    return READERS[program.reader](program, text)


def read_records(metrics: tuple[str, ...], text: str) -> list[Reading]:
    """Return the numbers that a step printed for its records. Raises UnreadableOutput for anything else."""
    return numbers.read_records(metrics, text)
