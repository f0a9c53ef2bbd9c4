"""The verdict on a test, and on each of its parts, as harness/output/run-test has it in the last line."""

from typing import Annotated, Literal

from pydantic import Field, ValidationError

from agelab.base.types import Frozen, Label
from agelab.evaluate.program_output.reading import Reading, UnreadableOutput
from agelab.scenario.workload import TEST_RESULT, GuestProgram

MARK = "agelab-test: "
MAX_PARTS = 1000
Verdict = Literal["passed", "failed", "not run"]
VALUES: dict[Verdict, int] = {"passed": 0, "failed": 1, "not run": 2}


class Part(Frozen):
    """A part of a test that has a result of its own."""

    name: Label
    verdict: Verdict
    why: Label = ""


class Judged(Frozen):
    """What the guest said of a test."""

    verdict: Verdict
    why: Label = ""
    parts: Annotated[tuple[Part, ...], Field(max_length=MAX_PARTS)] = ()


def read(program: GuestProgram, text: str) -> list[Reading]:
    """Return the verdicts, the whole test's first. Raises UnreadableOutput where there is none."""
    judged = verdict(text)
    parts = {f"{part.name.replace('/', ':')}": part for part in judged.parts}
    return [
        Reading(TEST_RESULT, VALUES[judged.verdict]),
        *(Reading(TEST_RESULT, VALUES[part.verdict], name) for name, part in parts.items() if name),
    ]


def verdict(text: str) -> Judged:
    """Return what the last line says. Raises UnreadableOutput where it is none of run-test's."""
    _, mark, last = text.rstrip("\n").rpartition(MARK)
    try:
        if not mark:
            raise ValueError
        return Judged.model_validate_json(last)
    except (ValidationError, ValueError):
        raise UnreadableOutput("the test was not judged: its output ends without a verdict") from None
