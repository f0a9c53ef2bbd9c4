"""A trace of block requests as a history: what a drive was sent, here or on a real machine, to be sent again.

The image has one file, ``1``, a line for each request: ``MICROSECONDS R|W|F FIRST BYTES [fua]``. ``FIRST`` counts from
the beginning of the disk under test. The guest's program is harness/output/replay-blocks.
"""

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from agelab.base import fileio, readers
from agelab.base.errors import InputError
from agelab.data.corpus import iso
from agelab.data.corpus.artefact import IMAGE_FILE, Corpus, CorpusDescription, obtain, require_space
from agelab.data.corpus.user import DATE
from agelab.data.history.report import REPORT, AskedShare, HistoryReport
from agelab.machine.drive import block_trace
from agelab.machine.drive.block_trace import BlockRequest
from agelab.scenario.history import Traced
from agelab.store.artefacts import Store, file_hash, require_unchanged

VOLUME = "TRACE"
RECIPE = 1
"""Raise this when a change of this module changes what is made of a trace."""
PROGRAM = "replay-blocks"
"""The guest's program that replays it."""
_LETTERS = {"read": "R", "write": "W", "flush": "F"}


def obtain_trace(history: Traced, disk: int, store: Store) -> Corpus:
    """Return a trace for a disk of so many bytes, from the store or made now.

    Raises InputError that names each line which is no request, or which the disk has no place for.
    """
    path = Path(history.trace).absolute()
    try:
        content = file_hash(path, fileio.OPERATIONS)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error

    def build(directory: Path) -> CorpusDescription:
        requests = _requests(path, history, disk)
        require_unchanged(path, content)
        tree = directory / "parts"
        tree.mkdir()
        (tree / "1").write_text("".join(_lines(requests, history.before)), encoding="ascii")
        size = (tree / "1").stat().st_size
        require_space(size + 1000 * iso.BLOCK, directory, "keeping the trace")
        iso.make(tree, directory / IMAGE_FILE, volume=VOLUME, date=DATE)
        shutil.rmtree(tree)
        (directory / REPORT).write_text(_report(requests, disk), encoding="utf-8")
        described = f"history: the user's trace; {len(requests)} requests"
        return CorpusDescription(files=1, content_bytes=size, description=described, parts=1)

    inputs = {
        "source": history.engine,
        "recipe": RECIPE,
        "trace": content,
        "before": history.before,
        "disk": disk,
        "maker": iso.MAKER,
    }
    return obtain(store, inputs, build, readers.of_files(path))


def _requests(path: Path, history: Traced, disk: int) -> Sequence[BlockRequest]:
    """Return the requests to send, without discards, which no modelled drive knows. Raises InputError."""
    with fileio.opened(path) as file:
        requests = block_trace.read((line.decode("utf-8", "replace") for line in file), str(path))
    sent = [request for request in requests if request.kind != "discard"]
    end = history.before + disk
    wrong = [
        f"{path}: {request.kind} of {request.size} bytes at {request.first}: the disk lies at {history.before} to {end}"
        for request in sent
        if request.kind != "flush" and not history.before <= request.first <= end - request.size
    ]
    if wrong:
        raise InputError(
            "\n".join(wrong[:20]),
            hint="take a larger disk, or say in `before` how many bytes of the traced device lie before it",
        )
    return sent


def _lines(requests: Sequence[BlockRequest], before: int) -> Iterator[str]:
    for request in requests:
        first = 0 if request.kind == "flush" else request.first - before
        forced = " fua" if request.forced else ""
        yield f"{request.microseconds} {_LETTERS[request.kind]} {first} {request.size}{forced}\n"


def _report(requests: Sequence[BlockRequest], disk: int) -> str:
    written = sum(request.size for request in requests if request.kind == "write")
    summary = HistoryReport(
        engine="iolog",
        disk=disk,
        seed=None,
        fullness=AskedShare(asked=None, produced=0),
        overwrites=AskedShare(asked=None, produced=round(written / disk, 6)),
        operations=len(requests),
        counts=dict(sorted(Counter(request.kind for request in requests).items())),
        bytes_written=written,
        files=0,
        directories=0,
        live_bytes=0,
        peak_bytes=0,
        points=(len(requests),),
    )
    return summary.model_dump_json(by_alias=True, indent=1) + "\n"
