"""Read numbers in text: those that a program's file lists, or those of a step's records."""

import re
from collections.abc import Sequence

from agelab.evaluate.program_output.reading import Reading, UnreadableOutput, checked, quoted, rounded
from agelab.scenario.workload import GuestProgram

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
MAX_LINE = 4096
"""Characters of a line that are looked at."""
MAX_DIGITS = 40


def read(program: GuestProgram, text: str) -> list[Reading]:
    """Return each number of the program's file that is in the text, of the last line that has it."""
    lines = [line[:MAX_LINE] for line in text.splitlines()]
    readings: list[Reading] = []
    for number in program.numbers:
        expression = re.compile(number.pattern)
        matches = [match for line in lines if (match := expression.search(line))]
        if matches and matches[-1][1] is not None:
            readings.append(Reading(number.metric, rounded(_number(matches[-1][1]) * number.times)))
    if not readings:
        raise UnreadableOutput(f"{program.name} printed none of its numbers; it printed {quoted(text)}")
    return readings


def read_records(metrics: Sequence[str], text: str) -> list[Reading]:
    """Return one number for each metric, in their order."""
    words = text.split()
    if len(words) != len(metrics) or not all(_is_number(word) for word in words):
        wrong = "no number" if len(metrics) == 1 else f"not {len(metrics)} numbers"
        raise UnreadableOutput(f"the step printed {wrong}: {quoted(text)}")
    return [Reading(metric, _number(word)) for metric, word in zip(metrics, words, strict=True)]


def _is_number(word: str) -> bool:
    return len(word) <= MAX_DIGITS and NUMBER.fullmatch(word) is not None


def _number(word: str) -> float:
    """Return a decimal number, a whole one as such. Raises UnreadableOutput."""
    if not _is_number(word):
        raise UnreadableOutput(f"{word[:MAX_DIGITS]!r} is no number")
    try:
        return checked(int(word) if word.lstrip("+-").isdigit() else float(word))
    except ValueError as error:
        raise UnreadableOutput(str(error)) from None
