"""Ten faults planted in Linux, each a flush, a FUA or an order that is dropped: does ``agelab crash`` find them?

    .venv/bin/python -m validation.crash_faults [DIRECTORY] [--kernel source:6.12] [--only NAME] [--times 20] [--write]

Builds one kernel (``--kernel`` is any that is built: tree:/src/linux, source:6.12) with the faults of
crash_faults.toml behind a parameter, which the workload (crash_faults.c) sets: 0 is Linux as it is. DIRECTORY gets the
patch and the workloads. Looks at all states, and in many guests at the shortest one in which something is wrong.
Prints the table of docs/validation.md. Exits with 1 where a fault is not found, Linux as it is loses something, or
guests differ at one state. States in which a write is torn are left out: ext4 has known ones (docs/howto/crash.md).
"""

import argparse
import difflib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from agelab.base.errors import InputError
from agelab.base.types import Frozen
from agelab.cli.options import open_store, say
from agelab.kernel import build_inputs, source_tree
from agelab.runner.crash import crash
from agelab.runner.crash.crash import Answer, Violation
from agelab.scenario import toml_files
from agelab.store.artefacts import Store
from docs.make import command
from docs.make.command import Answer as Measured
from docs.make.page import PROJECT, grid, line

HERE = Path(__file__)
TABLE = "crash-faults"
DECLARED = "extern int planted;\n"
SWITCH_FILE = "block/blk-flush.c"
SWITCH = "\nint planted;\nEXPORT_SYMBOL_GPL(planted);\nmodule_param(planted, int, 0600);\n"
"""The parameter, and the file that gets it."""
HEAD = ("dropped", "filesystem", "states", "disks", "s", "wrong", "shortest", "what", "same again")
RULES = ["---", "---", *["---:"] * 4, *["---"] * 3]


class Fault(Frozen):
    """A change of one file of Linux."""

    name: str
    filesystem: str
    what: str
    file: str
    changes: tuple[tuple[str, str], ...]

    def planted_in(self, text: str) -> str:
        """Return the text of the file with the fault. Raises InputError where it has not what is to change."""
        for before, after in self.changes:
            if text.count(before) != 1:
                raise InputError(
                    f"{self.name}: {self.file} has {text.count(before)} places like {before.strip()!r}",
                    "the faults are of Linux 6.12",
                )
            text = text.replace(before, after)
        return text


class Faults(Frozen):
    """The file of faults."""

    faults: tuple[Fault, ...]
    mend: Fault
    """What Linux loses without a fault of ours."""

    def patch(self, read: Callable[[str], str]) -> str:
        """Return the patch of all, of files that ``read`` reads. Raises InputError for another Linux."""
        whole = ""
        for file in sorted({fault.file for fault in (*self.faults, self.mend)}):
            old = new = read(file)
            for fault in (*self.faults, self.mend):
                new = fault.planted_in(new) if fault.file == file else new
            new = f"{DECLARED}{new}{SWITCH if file == SWITCH_FILE else ''}"
            before, after = (text.splitlines(keepends=True) for text in (old, new))
            whole += "".join(difflib.unified_diff(before, after, f"a/{file}", f"b/{file}"))
        return whole


@dataclass(frozen=True)
class Row:
    """What was seen of a filesystem with a fault, or without."""

    fault: Fault | None
    answer: Answer
    shortest: Violation | None = None
    same: int = 0
    """Guests that found the same disk and the same verdict at the shortest."""

    def is_good(self, times: int) -> bool:
        """Return whether what had to be found was found, and nothing else."""
        return bool(self.fault) == bool(self.shortest) and self.same == times * bool(self.shortest)


def look(fault: Fault | None, filesystem: str, kernel: str, workload: Path, times: int, store: Store) -> Row:
    """Look at all states, and in so many guests at the shortest in which something is wrong."""
    say(f"{filesystem}: {fault.name if fault else 'without a fault'}")
    question = crash.ask(str(workload), filesystem, kernel, "today", (), None, 1, 4, None)
    answer = crash.run(question, store, say)
    shortest = next((found for found in answer.violations if not found.is_torn), None)
    if shortest is None:
        return Row(fault, answer)
    seen = crash.replay(answer.name, shortest.state, store, say, times=times)
    verdicts = [(str(found.kind), found.path, found.why) for found in seen.found]
    is_same = seen.disk == shortest.disk and (shortest.kind, shortest.path, shortest.why) in verdicts
    return Row(fault, answer, shortest, seen.same if is_same else 0)


def rows(options: argparse.Namespace, store: Store) -> Iterator[Row]:
    """Look at each filesystem without a fault, and with each."""
    known = toml_files.read(HERE.with_suffix(".toml"), Faults)
    numbered = dict(enumerate(known.faults, 1))
    wanted = {number: fault for number, fault in numbered.items() if options.only in ("", fault.name)}
    if not wanted:
        raise InputError(f"no fault {options.only!r}: {', '.join(fault.name for fault in known.faults)}")
    source = build_inputs.plan_build(options.kernel, store, say).source
    read = partial(_read, source)
    patch = options.directory / "faults.patch"
    patch.write_text(known.patch(read))
    for filesystem in dict.fromkeys(fault.filesystem for fault in wanted.values()):
        of_it = {number: fault for number, fault in wanted.items() if fault.filesystem == filesystem}
        for number, fault in {0: None, **of_it}.items():
            workload = options.directory / f"{number}.c"
            workload.write_text(f"#define PLANTED {number}\n{HERE.with_suffix('.c').read_text()}")
            kernel = f"{options.kernel},patches={patch}"
            yield look(fault, filesystem, kernel, workload, options.times, store)


def _read(source: source_tree.SourceTree, file: str) -> str:
    return source_tree.git_output(source.cache_dir, ["cat-file", "blob", f"{source.tree}:{file}"]) + "\n"


def cells(row: Row, times: int) -> list[str]:
    """Write a row of the table."""
    answer, found = row.answer, row.shortest
    return [
        f"`{row.fault.name}`: {row.fault.what}" if row.fault else "nothing",
        answer.question.filesystem,
        *map(str, (answer.states, answer.looked)),
        f"{answer.record_seconds + answer.look_seconds:.0f}",
        str(sum(not violation.is_torn for violation in answer.violations)),
        *((found.state, ": ".join(filter(None, (found.kind, found.path)))) if found else ("", "")),
        f"{row.same} of {times}" if found else "",
    ]


def measured(options: argparse.Namespace) -> Measured:
    """Look at all, and write the table."""
    if options.only and options.write:
        raise InputError("--only makes one row: leave --write out, which puts the whole table into its page")
    options.directory = options.directory.absolute()
    options.directory.mkdir(parents=True, exist_ok=True)
    store, texts, good = open_store(), [], True
    for row in rows(options, store):
        texts.append(cells(row, options.times))
        say(line(texts[-1]))
        good &= row.is_good(options.times)
    text = "\n".join(grid(HEAD, texts, RULES))
    return Measured(
        {TABLE: f"{text}\n\nKernel {options.kernel}, seconds of the host with the recording."}, "", not good
    )


def main() -> int:
    """Return the exit code."""
    parser = command.parser(__doc__)
    place = PROJECT / "build" / TABLE
    words = "of the patch and the workloads, which a replay needs"
    parser.add_argument("directory", type=Path, nargs="?", default=place, help=words)
    parser.add_argument("--kernel", default="source:6.12", help="a kernel that is built")
    parser.add_argument("--only", default="", metavar="NAME", help="one fault alone")
    parser.add_argument("--times", default=20, type=command.at_least(1), help="guests that look at one state")
    return command.run(parser, measured)


if __name__ == "__main__":
    sys.exit(main())
