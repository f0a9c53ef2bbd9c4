"""``python -m docs.make``: what ``make tables`` and ``make check`` run.

    make tables                        all tables, those first that take least
    make tables NAME=aging,space       some
    make tables PLAN=1                 what that would take; nothing runs
    make tables STALE=1                prove blocks by the samples that this store has, and have the others say that
                                       they are of an earlier code; nothing runs
    make tables JOBS=2 ON=dask://HOST:PORT

Interrupted, it goes on where it stopped: cells that have ended are not run again. A table that cannot be made keeps its
block, which then says that it is of an earlier code. Exit: 0; 1 where a table failed or, with --check, a block is of
another code; 2 wrong input; 130 interrupted.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from agelab.base.errors import AgelabError, InputError
from agelab.cli.click_options import execute
from agelab.cli.options import open_store
from agelab.cli.run import execute_kernels, execute_on
from agelab.present.view.progress import format_time_left
from agelab.results.run_directory import RunDirectory
from agelab.runner.cell_times import TimeRange
from agelab.runner.request.options import RunOptions
from agelab.stats.phrasing import several
from docs.make import block, catalogue, generated, make
from docs.make.catalogue import Catalogue, Table
from docs.make.forecast import HEAD, Forecast, forecast
from docs.make.page import PROJECT, columns


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m docs.make",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--name", default="", help="tables, with commas between; without it all")
    parser.add_argument("--jobs", type=int, default=1, help="cells at a time")
    parser.add_argument("--fresh", action="store_true", help="run cells that are known, too")
    parser.add_argument("--on", default="", metavar="dask://HOST:PORT", help="run the cells there")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--plan", action="store_true", help="say what it would take")
    what.add_argument("--stale", action="store_true", help="mark blocks of an earlier code")
    what.add_argument("--check", action="store_true", help="fail where a block is of another code and does not say so")
    what.add_argument("--generated", action="store_true", help="write into pages what the code says: verbs, keys")
    options = parser.parse_args()
    os.chdir(PROJECT)  # scenarios of the pages are named from there
    os.environ["NO_COLOR"] = "1"  # what is printed goes into pages
    os.environ.pop("FORCE_COLOR", None)
    try:
        if options.generated:
            generated.write()
            return 0
        known = catalogue.read()
        tables = known.named(options.name)
        runs = open_store().runs
        if options.check:
            return _check(known, runs)
        if options.stale:
            return _mark(tables, runs)
        forecasts = sorted(
            (forecast(table, runs, options.jobs) for table in tables), key=lambda estimate: estimate.order
        )
        _print_plan(forecasts, options.jobs)
        if options.plan:
            return 0
        making = make.Making(partial(_run, options.jobs, options.on, options.fresh), bool(options.name))
        return _make(making, [estimate.table for estimate in forecasts])
    except AgelabError as error:
        print("\n  ".join(filter(None, (f"docs.make: {error}", error.hint))), file=sys.stderr)
        return error.exit_code


def _check(known: Catalogue, runs: Path) -> int:
    other = [str(page) for page, _ in generated.stale()]
    for page in other:
        print(f"{page} does not say what the code says; write it: make format")
    wrong = list(make.errors(known, make.pages(), runs))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    if wrong:
        print("agelab: all that are of an earlier code say so to the reader after: make tables STALE=1")
        return 1
    if old := sum(block.find(table).stale for table in known.tables):
        print(f"agelab: {old} of {len(known.tables)} tables of the pages are of an earlier code, and say so")
    return 1 if other else 0


def _mark(tables: Sequence[Table], runs: Path) -> int:
    marks = {table.name: (table, make.mark(table, runs)) for table in tables}
    for table, stale in marks.values():
        if stale:
            print(f"{table.page}: table {table.name} says now that it is of an earlier code; again: {table.command}")
        elif stale is False:
            print(f"{table.page}: table {table.name} is proved: this code makes the same of its samples")
    print(f"agelab: {sum(stale is not None for _, stale in marks.values())} of {len(marks)} marks changed")
    return 0


def _print_plan(forecasts: Sequence[Forecast], jobs: int) -> None:
    print(columns(HEAD, [estimate.row for estimate in forecasts]))
    low = high = 0.0
    seen: set[str] = set()
    untimed = 0
    for estimate in forecasts:  # a cell of several tables runs once
        own = len(estimate.unknown - seen)
        seen |= estimate.unknown
        if estimate.time and own:
            low += estimate.time.low * own / len(estimate.unknown)
            high += estimate.time.high * own / len(estimate.unknown)
        else:
            untimed += own
    time = format_time_left(TimeRange(low, high)) if high >= 1 else "not known" if seen else "seconds"
    at_once = f", {jobs} cells at a time" if jobs > 1 else ""
    more = f", and {several(untimed, 'cell')} of whose time nothing is known" if high >= 1 and untimed else ""
    disk = max((estimate.disk for estimate in forecasts), default=0)
    cells = f"{several(len(seen), 'cell')}, " if seen else ""
    print(f"in all: {cells}{time}{at_once}{more}; up to {disk / 1e9:.1f} GB of disk for cells\n", flush=True)


def _run(jobs: int, on: str, fresh: bool, options: RunOptions, kernels: Sequence[str]) -> Sequence[RunDirectory]:
    """Run options with progress shown; a kernel that no run fits is told and left out."""
    options = options.changed(jobs=jobs, fresh=fresh)
    if not kernels:
        return [execute_on(on, options) if on else execute(options)]
    if on:
        return [execute_on(on, options.changed(kernel=kernel)) for kernel in kernels]
    done = execute_kernels(options, kernels)
    if left_out := [f"{kernel}: {why}" for kernel, why in done.items() if isinstance(why, AgelabError)]:
        raise InputError("\n".join(left_out))
    return [run for run in done.values() if isinstance(run, RunDirectory)]


def _make(making: make.Making, tables: Sequence[Table]) -> int:
    outcomes: list[make.Outcome] = []
    interrupted = False
    try:
        for number, table in enumerate(tables, start=1):
            print(f"{number}/{len(tables)} {table.name}", flush=True)
            outcomes.append(making.make(table))
            print(make.described(outcomes[-1]), flush=True)
    except KeyboardInterrupt:
        interrupted = True
    if len(tables) > 1:
        print("\nwhat became of the tables:")
        print(*map(make.described, outcomes), sep="\n")
    if rest := [table.name for table in tables[len(outcomes) :]]:
        print(f"not made: {', '.join(rest)}")
    if interrupted:
        print("interrupted: the same command goes on; cells that have ended are not run again")
        return 130
    return 1 if any(outcome.word == "failed" for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
