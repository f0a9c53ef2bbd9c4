"""What crash states have shown: a table, and the shortest reproduction of each violation."""

from collections.abc import Iterator

from agelab.present.report.blocks import Block, Line, Table, Text, headings
from agelab.runner.crash.crash import Answer, Violation


def answer_blocks(answer: Answer) -> Iterator[Block]:
    """Yield what was looked at, and each violation."""
    question = answer.question
    mount = f", {','.join(question.options)}" if question.options else ""
    ignoring = f", on a drive that ignores {' and '.join(question.ignored)}" if question.ignored else ""
    yield Line(
        f"{answer.name}: {question.workload} on {question.filesystem} ({question.defaults}{mount}), "
        f"{question.mib} MiB, kernel {question.kernel}{ignoring}"
    )
    columns = ("workloads", "states", "distinct disks", "looked at", "violations")
    numbers = (answer.workloads, answer.states, answer.disks, answer.looked, len(answer.violations))
    yield Table(headings(*columns, numbers=columns), [[str(number) for number in numbers]])
    rate = answer.looked / answer.look_seconds if answer.look_seconds else 0
    yield Line(
        f"recorded in {answer.record_seconds:.0f} s, looked at in {answer.look_seconds:.0f} s "
        f"({rate:.2f} disks a second), {answer.boots} guests"
    )
    if answer.looked < answer.disks:
        yield Line(
            f"the budget ended before {answer.disks - answer.looked} of {answer.disks} disks were looked at"
        )
    kept, lost = answer.names
    if kept or lost:
        yield Text(
            "fsync of a file with a new name, which promises no name: the name was there in "
            f"{kept} of {kept + lost} states"
        )
    if not answer.promises:
        yield Text(
            "no call of the workload makes anything persist: only what was there before is promised, and that the "
            "filesystem is well"
        )
    if answer.violations:
        columns = ("state", "what is wrong", "where", "why", "calls")
        rows = [_row(violation) for violation in answer.violations]
        yield Table(headings(*columns, wrapped=columns[1:]), rows, caption="The shortest of each violation")
        yield Line(f"again: agelab crash replay {answer.name} {answer.violations[0].state}")


def _row(violation: Violation) -> list[str]:
    calls = "; ".join(violation.calls)
    return [violation.state, violation.kind, violation.path, violation.why, calls]
