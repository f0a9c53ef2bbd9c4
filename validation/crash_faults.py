"""Ten faults planted in Linux, each a flush, a FUA or an order that is dropped: does ``agelab crash`` find them?

    .venv/bin/python -m validation.crash_faults DIRECTORY [--kernel source:6.12] [--only NAME] [--replays 20]

Writes the faults of crash_faults.toml as patches into DIRECTORY, builds the kernel without and with each (``--kernel``
is any that is built: tree:/src/linux, source:6.12), and looks at all states of one workload on each. Prints a table.
Exits with 1 where a fault is not found, a kernel without one loses something, or a replay shows another disk or
verdict. States in which a write is torn are left out: ext4 has known ones (docs/howto/crash.md).
"""

import argparse
import difflib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agelab.base.errors import AgelabError, InputError
from agelab.base.types import Frozen
from agelab.cli.options import open_store, say
from agelab.kernel import build_inputs, source_tree
from agelab.kernel.source_tree import SourceTree
from agelab.runner.crash import crash
from agelab.runner.crash.crash import Answer, Violation
from agelab.scenario import toml_files
from agelab.store.artefacts import Store
from docs.make import command
from docs.make.page import grid

WORKLOAD = (
    "write A/foo 0 4096; fdatasync A/foo; create A/new; append A/new 0 8192; fsync A/new; rename A/new A/bar; "
    "fsync A; append B/foo 0 4096; fsync B/foo; unlink A/foo; sync"
)
"""What a spool does: a record in place, a new file under another's name, one that grows, one that is done."""
HEAD = ("dropped", "filesystem", "states", "disks", "s", "wrong", "shortest", "what", "same again")


class Fault(Frozen):
    """A change of one file of Linux."""

    name: str
    filesystem: str
    what: str
    file: str
    changes: tuple[tuple[str, str], ...]

    def patch(self, text: str) -> str:
        """Return the patch of the file that has this text. Raises InputError where it has not what is to change."""
        changed = text
        for before, after in self.changes:
            if changed.count(before) != 1:
                raise InputError(
                    f"{self.name}: {self.file} has {changed.count(before)} places like {before.strip()!r}",
                    "the faults are of Linux 6.12",
                )
            changed = changed.replace(before, after)
        old, new = (words.splitlines(keepends=True) for words in (text, changed))
        return "".join(difflib.unified_diff(old, new, f"a/{self.file}", f"b/{self.file}"))


class Faults(Frozen):
    """The file of faults."""

    faults: tuple[Fault, ...]
    mends: tuple[Fault, ...]
    """What every kernel gets for a filesystem that loses something without a fault of ours."""


@dataclass(frozen=True)
class Row:
    """What was seen of a filesystem on one kernel."""

    fault: Fault | None
    answer: Answer
    shortest: Violation | None
    again: int
    """Replays that showed the same disk and the same verdict."""


def kernel_with(faults: Sequence[Fault], kernel: str, source: SourceTree, directory: Path) -> str:
    """Write the faults as patches and return the spec of the kernel that has them."""
    files = []
    for fault in faults:
        text = source_tree.git_output(source.cache_dir, ["cat-file", "blob", f"{source.tree}:{fault.file}"])
        files.append(directory / f"{fault.name}.patch")
        files[-1].write_text(fault.patch(f"{text}\n"))
    return ",".join([kernel, *(f"patches={file}" for file in files)])


def look(fault: Fault | None, filesystem: str, kernel: str, replays: int, store: Store) -> Row:
    """Look at all states on one kernel, and replay the shortest violation."""
    say(f"{filesystem} on {kernel}")
    question = crash.ask(WORKLOAD, filesystem, kernel, "today", (), None, 1, 4, None)
    answer = crash.run(question, store, say)
    shortest = next((found for found in answer.violations if not found.is_torn), None)
    again = sum(_is_same(answer, shortest, store) for _ in range(replays)) if shortest else 0
    return Row(fault, answer, shortest, again)


def _is_same(answer: Answer, shortest: Violation, store: Store) -> bool:
    seen = crash.replay(answer.name, shortest.state, store)
    verdicts = [(str(found.kind), found.path, found.why) for found in seen.found]
    return seen.disk == shortest.disk and (shortest.kind, shortest.path, shortest.why) in verdicts


def rows(options: argparse.Namespace, store: Store) -> Iterator[Row]:
    """Look at each filesystem without a fault, and with each."""
    known = toml_files.read(Path(__file__).with_suffix(".toml"), Faults)
    wanted = [fault for fault in known.faults if options.only in ("", fault.name)]
    if not wanted:
        raise InputError(f"no fault {options.only!r}: {', '.join(fault.name for fault in known.faults)}")
    source = build_inputs.plan_build(options.kernel, store, say).source
    for filesystem in dict.fromkeys(fault.filesystem for fault in wanted):
        mends = [mend for mend in known.mends if mend.filesystem == filesystem]
        for fault in (None, *(fault for fault in wanted if fault.filesystem == filesystem)):
            planted = [*mends, *([fault] if fault else ())]
            kernel = kernel_with(planted, options.kernel, source, options.directory)
            yield look(fault, filesystem, kernel, options.replays, store)


def cells(row: Row, replays: int) -> list[str]:
    """Write a row of the table."""
    answer, found = row.answer, row.shortest
    return [
        f"`{row.fault.name}`: {row.fault.what}" if row.fault else "nothing",
        answer.question.filesystem,
        *map(str, (answer.states, answer.looked)),
        f"{answer.record_seconds + answer.look_seconds:.0f}",
        str(sum(not violation.is_torn for violation in answer.violations)),
        *(
            (found.state, f"{found.kind}: {found.path}", f"{row.again} of {replays}")
            if found
            else ("", "", "")
        ),
    ]


def main() -> int:
    """Return the exit code."""
    parser = command.parser(__doc__)
    parser.add_argument(
        "directory", type=Path, help="where the patches go; agelab crash replay takes them again"
    )
    parser.add_argument("--kernel", default="source:6.12", help="a kernel that is built")
    parser.add_argument("--only", default="", metavar="NAME", help="one fault alone")
    parser.add_argument("--replays", default=20, type=command.at_least(0))
    options = parser.parse_args()
    options.directory = options.directory.absolute()
    options.directory.mkdir(parents=True, exist_ok=True)
    try:
        seen = list(rows(options, open_store()))
    except AgelabError as error:
        print("\n  ".join(filter(None, (str(error), error.hint))), file=sys.stderr)
        return error.exit_code
    print("\n".join(grid(HEAD, [cells(row, options.replays) for row in seen])))
    found = all(bool(row.fault) == bool(row.shortest) for row in seen)
    same = all(row.again == options.replays for row in seen if row.shortest)
    return 0 if found and same else 1


if __name__ == "__main__":
    sys.exit(main())
