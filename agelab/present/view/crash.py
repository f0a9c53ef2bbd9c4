"""What crash states have shown: a table and the shortest reproduction of each violation."""

from collections.abc import Iterator

from agelab.present.report.blocks import Block, Line
from agelab.runner.crash.crash import Answer


def answer_blocks(answer: Answer) -> Iterator[Block]:
    """Yield what was looked at, and each violation."""
    question = answer.question
    yield Line(f"{answer.name}: {question.workload} on {question.filesystem}, {question.kernel}")
    yield Line(
        f"{answer.workloads} workloads, {answer.states} states, {answer.disks} distinct disks, "
        f"{answer.looked} looked at; {len(answer.violations)} kinds of violation"
    )
    yield Line(
        f"recorded in {answer.record_seconds:.1f} s; looked at in {answer.look_seconds:.1f} s, "
        f"{answer.boots} boots: {answer.looked / max(answer.look_seconds, 0.001):.2f} disks a second"
    )
    for found in answer.violations:
        yield Line(f"  {found.state}  {found.kind} {found.path}: {found.why}  [{'; '.join(found.calls)}]")
