"""What ``agelab show`` prints of the cells of runs, for a page: all of it, or the lines that the table names."""

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout

from agelab.present.view.run_tables import run_blocks
from agelab.present.view.terminal import print_blocks
from agelab.results.run_directory import RunDirectory
from docs.make.catalogue import Made, Table

OF_THIS_STORE = ("  picture ", "  blocks ", "  the digest of the docs: ", "  reused ", "the whole result:")
"""How lines begin that say where something lies, or came from."""
GAP = " ..."


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Show the cells, and below them the kernel and QEMU."""
    shown = [line for run in runs for line in _cells(run)]
    lines = list(_named(shown, table.lines)) if table.lines else shown
    return shown_block(lines, runs)


def shown_block(lines: Iterable[str], runs: Sequence[RunDirectory]) -> Made:
    """Put what a command prints of runs into a page, with their kernels and QEMU below it."""
    return Made("\n".join(["```", *lines, "```", "", environment(runs)]))


def environment(runs: Sequence[RunDirectory]) -> str:
    """Name the kernels and the QEMU of runs."""
    plans = [run.plan().provenance for run in runs]
    kernels = dict.fromkeys(str(provenance["kernel"]) for provenance in plans)
    return f"Kernel {', '.join(kernels)}; {', '.join(dict.fromkeys(str(provenance['qemu']) for provenance in plans))}."


def _cells(run: RunDirectory) -> list[str]:
    """Return the lines about cells: not the run's own head, nor what the study leaves open."""
    with redirect_stdout(io.StringIO()) as out:
        print_blocks(run_blocks(run))
    _, _, cells = out.getvalue().lstrip("\n").partition("\n\n")
    cells, _, _ = cells.partition("\n\nwhat the study leaves open")
    lines = (line.rstrip() for line in cells.split("\n"))
    return "\n".join(line for line in lines if not line.startswith(OF_THIS_STORE)).strip("\n").split("\n")


def _named(lines: Sequence[str], starts: Sequence[str]) -> Iterator[str]:
    """Yield the lines that begin as the table says, with dots where some between them are left out."""
    begins = [words.split() for words in starts]
    at = [
        number
        for number, line in enumerate(lines)
        if any(line.split()[: len(words)] == words for words in begins)
    ]
    for before, number in zip([None, *at], at, strict=False):
        if before is not None and number > before + 1:
            yield GAP
        yield lines[number]
