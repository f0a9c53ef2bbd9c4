"""How the tests of a run ended, by test and seed, and how often each failed."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from agelab.base import fileio
from agelab.base.gathered import gathered
from agelab.evaluate.program_output import UnreadableOutput
from agelab.evaluate.program_output.test import VALUES, Verdict, verdict
from agelab.results.result import End, Sample, Status
from agelab.results.run_directory import RunDirectory
from agelab.scenario.step import IMPLICIT, StepId
from agelab.scenario.suite import Expected
from agelab.scenario.workload import TEST_RESULT

BY_VALUE = {value: name for name, value in VALUES.items()}
OF_PARTS = re.compile(r"\d+ of \d+ parts failed: [^;]*")
"""The whole reason of a test that failed for nothing but its parts."""
BEFORE_REASON = re.compile(r"^step .*?, exited 1: ")
NEVER_RUN = (Status.UNSUPPORTED, Status.INTERRUPTED)


@dataclass(frozen=True)
class CaseOf:
    """The test that the cells of a variant do, and the filesystem with its options that they do it on."""

    test: str
    on: str


@dataclass(frozen=True)
class CaseResult:
    """A test, or a part of one, with one seed."""

    test: str
    part: str
    """Empty for the whole test."""
    on: str
    seed: int
    verdict: Verdict
    why: str = ""
    cell: Path | None = None
    """The directory of its cell: console, and what the test printed."""
    by_itself: bool = True
    """Whether the test itself says that it was not run; else its guest never came so far."""
    known: str | None = None
    """Why it was to be expected."""

    @property
    def name(self) -> str:
        """The name in tables and in a file of known failures."""
        return f"{self.test}: {self.part}" if self.part else self.test

    @property
    def is_trouble(self) -> bool:
        """True for a failure that is not known, and for a guest that could not run the test."""
        return (self.verdict == "failed" and self.known is None) or self.could_not

    @property
    def could_not(self) -> bool:
        return self.verdict == "not run" and not self.by_itself


@dataclass(frozen=True)
class Tally:
    """One test on one filesystem, over all seeds."""

    name: str
    on: str
    results: Sequence[CaseResult]

    def of(self, wanted: Verdict) -> list[CaseResult]:
        """Return the results with a verdict."""
        return [result for result in self.results if result.verdict == wanted]


def results(run: RunDirectory, cases: Mapping[str, CaseOf], expected: Expected | None = None) -> list[CaseResult]:
    """Return how each test of a run ended with each seed, and each of its parts; ``cases`` by the name of a variant."""
    plan, ends, samples = run.read_all()
    known = expected or Expected()
    found: list[CaseResult] = []
    for number, (cell, end) in enumerate(zip(plan.cells, ends, strict=True)):
        case, directory = cases[cell.variant], run.cell_directory(number)
        measured = samples.get(number, ())
        said, why = judged(end, measured), _why(end, directory)
        by_itself = end is not None and end.status is Status.OK
        whole = CaseResult(case.test, "", case.on, cell.seed, said, why, directory, by_itself)
        whole = replace(whole, known=known.why(whole.name) if said == "failed" else None)
        parts = [
            CaseResult(case.test, part, case.on, cell.seed, of_part, "", directory)
            for part, of_part in _parts(measured).items()
        ]
        parts = [
            replace(part, known=known.why(part.name) or whole.known) if part.verdict == "failed" else part
            for part in parts
        ]
        failed = [part for part in parts if part.verdict == "failed"]
        if failed and OF_PARTS.fullmatch(why) and all(part.known for part in failed):
            whole = replace(whole, known=whole.known or failed[0].known)
        found += [whole, *parts]
    return found


def judged(end: End | None, samples: Iterable[Sample]) -> Verdict:
    """Return the verdict on a cell's whole test."""
    if end is None or end.status in NEVER_RUN:
        return "not run"
    if end.status is not Status.OK:
        before = (end.reason or "").startswith(IMPLICIT)
        return "not run" if before and end.status is Status.FAILED else "failed"
    whole = [sample for sample in samples if sample.metric == TEST_RESULT and not _part_of(sample)]
    return BY_VALUE.get(int(whole[0].value or 0), "failed") if whole else "failed"


def _part_of(sample: Sample) -> str:
    return StepId.parse(sample.step).name.partition(".")[2]


def _parts(samples: Iterable[Sample]) -> dict[str, Verdict]:
    return {
        part: BY_VALUE.get(int(sample.value), "failed")
        for sample in samples
        if sample.metric == TEST_RESULT and sample.value is not None and (part := _part_of(sample))
    }


def _why(end: End | None, directory: Path) -> str:
    """Return why a test did not pass: as the guest judged it, or how its cell ended."""
    if end is None:
        return "its cell has no end"
    for file in directory.glob("*-1.output"):
        with suppress(UnreadableOutput):
            return verdict(fileio.tail(file)).why or end.why
    return BEFORE_REASON.sub("", end.why)


def tallies(found: Iterable[CaseResult]) -> list[Tally]:
    """Return a tally for each test and filesystem, those that failed most often first."""
    by_test = gathered(((result.name, result.on), result) for result in found)
    made = [Tally(name, on, of) for (name, on), of in by_test.items()]
    return sorted(made, key=lambda tally: (-len(tally.of("failed")), tally.name, tally.on))
