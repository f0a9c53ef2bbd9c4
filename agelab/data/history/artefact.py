"""A history as an artefact of the store: an ISO image with one file for each part of its log."""

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError

from agelab.base import fileio
from agelab.data.corpus import iso
from agelab.data.corpus.artefact import IMAGE_FILE, Corpus, CorpusDescription, obtain, require_space
from agelab.data.corpus.user import DATE
from agelab.data.history import engines, pulls, traced
from agelab.data.history.operations import HEADER, LogChecker, LogSummary
from agelab.data.history.report import REPORT, HistoryReport
from agelab.data.history.report import report as reported
from agelab.scenario.history import History, Pulled, Traced
from agelab.store.artefacts import Store, damaged

VOLUME = "HISTORY"


def obtain_history(history: History, disk: int, seed: int, store: Store) -> Corpus:
    """Return the parts of a history for a disk of so many bytes, ``1``, ``2`` ... ``n``, from the store or made now.

    Each part is a complete log, header first, and ends with its point; operations after the last point are one more
    part. Raises InputError for a request that the engine cannot fulfil and for errors in a user's log, HostError
    where the host lacks a program or room. Engines ``pulls`` and ``iolog`` have parts of their own kinds.
    """
    if isinstance(history, Pulled):
        return pulls.obtain_pulls(history, disk, seed, store)
    if isinstance(history, Traced):
        return traced.obtain_trace(history, disk, store)
    log = engines.log_source(history, disk, seed)

    def build(directory: Path) -> CorpusDescription:
        tree = directory / "parts"
        tree.mkdir()
        summary, parts = write_parts(log, tree)
        size = sum(path.stat().st_size for path in tree.iterdir())
        require_space(size + (parts + 1000) * 2 * iso.BLOCK, directory, "keeping the history")
        iso.make(tree, directory / IMAGE_FILE, volume=VOLUME, date=DATE)
        shutil.rmtree(tree)
        made = reported(log.engine, disk, log.seed, log.record, summary)
        (directory / REPORT).write_text(made.model_dump_json(by_alias=True, indent=1) + "\n", encoding="utf-8")
        described = f"history: {log.title}; {summary.operations} operations"
        return CorpusDescription(files=parts, content_bytes=size, description=described, parts=parts)

    inputs = {"source": "history", **log.inputs, "disk": disk, "maker": iso.MAKER}
    return obtain(store, inputs, build, log.readable_by, shared=not log.user_log)


def read_report(corpus: Corpus) -> HistoryReport:
    """Read the report on a history. Raises HostError for a damaged artefact or one that is no history."""
    path = corpus.image.with_name(REPORT)
    try:
        return HistoryReport.model_validate_json(fileio.read_bytes(path))
    except (OSError, ValidationError) as error:
        raise damaged(f"the history in {path.parent}", path.parent) from error


def write_parts(log: engines.LogSource, directory: Path) -> tuple[LogSummary, int]:
    """Check the log and write its parts into an empty directory; return its summary and the number of parts."""
    check = LogChecker(log.user_log or log.engine)
    number = 0
    part: BinaryIO | None = None
    more = False
    with ExitStack() as opened:
        for line, what in engines.checked_lines(log, check):
            if part is None:
                number += 1
                part = opened.enter_context((directory / str(number)).open("wb"))
                if number > 1:
                    part.write(HEADER + b"\n")
            part.write(line)
            more = more or bool(what)
            if what == b"point":
                opened.close()
                part, more = None, False
    if part is not None and not more and number > 1:  # comments after the last point
        (directory / str(number)).unlink()
        number -= 1
    return check.summary(), number
