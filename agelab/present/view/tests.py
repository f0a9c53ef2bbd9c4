"""The tests of a run: which failed how often, and how each failure is seen again."""

from collections.abc import Callable, Iterator, Sequence

from agelab.analysis.test_results import CaseResult, Tally
from agelab.present.report.blocks import Block, Line, Table, Text, headings

MOST_SEEDS = 5
"""Failing seeds of a test that are shown with their reason."""


def suite_blocks(made: Sequence[Tally], again: Callable[[CaseResult], str]) -> Iterator[Block]:
    """Yield the table, the failing seeds of each test with the command that replays one, and the counts."""
    columns = ("test", "on", "passed", "failed", "known", "not run")
    yield Table(
        headings(*columns, numbers=columns[2:]),
        [_row(tally) for tally in made if not _is_quiet_part(tally)],
        note=_left_out(made),
    )
    for tally in made:
        yield from _failures(tally, again)
    whole = [result for tally in made for result in tally.results if not result.part]
    count = {word: sum(result.verdict == word for result in whole) for word in ("passed", "failed", "not run")}
    yield Line(", ".join(f"{number} {word}" for word, number in count.items()))


def _is_quiet_part(tally: Tally) -> bool:
    """Return True for a part of a test that always passed."""
    return bool(tally.results[0].part) and len(tally.of("passed")) == len(tally.results)


def _left_out(made: Sequence[Tally]) -> str:
    count = sum(map(_is_quiet_part, made))
    return f"{count} part{'s' if count > 1 else ''} of tests passed with every seed" if count else ""


def _row(tally: Tally) -> list[str]:
    failed = tally.of("failed")
    known = sum(result.known is not None for result in failed)
    numbers = (len(tally.of("passed")), len(failed) - known, known, len(tally.of("not run")))
    return [tally.name, tally.on, *map(str, numbers)]


def _failures(tally: Tally, again: Callable[[CaseResult], str]) -> Iterator[Block]:
    failed = [result for result in tally.of("failed") if not result.part]
    for result in failed[:MOST_SEEDS]:
        known = f" (known: {result.known})" if result.known else ""
        yield Text(f"{result.name} on {result.on}, seed {result.seed}{known}: {result.why}", hang=2)
        yield Line(f"  again: {again(result)}")
        yield Line(f"  its console and output: {result.cell}")
    if more := failed[MOST_SEEDS:]:
        yield Text(f"{tally.name} on {tally.on} also fails with {_seeds(more)}", hang=2)
    for result in tally.of("passed")[:1]:
        if result.why:
            yield Text(f"{result.name} on {result.on}: {result.why}", hang=2)
    for result in tally.of("not run")[:1]:
        if not result.part:
            yield Text(f"{result.name} on {result.on} was not run: {result.why or 'it says so itself'}", hang=2)


def _seeds(results: Sequence[CaseResult]) -> str:
    return f"seed{'s' if len(results) > 1 else ''} {','.join(str(result.seed) for result in results)}"
