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
from agelab.data.history.operations import read_lines
from agelab.data.history.report import REPORT, AskedShare, HistoryReport
from agelab.machine.block_trace import reader as trace_reader
from agelab.machine.block_trace.reader import Trace
from agelab.machine.block_trace.requests import BlockRequest
from agelab.scenario.history import Traced
from agelab.store.artefacts import Store, file_hash, require_unchanged

VOLUME = "TRACE"
RECIPE = 1
"""Raise this when a change of this module changes what is made of a trace."""
PROGRAM = "replay-blocks"
"""The guest's program that replays it."""
MIB = 1 << 20
_LETTERS = {"read": "R", "write": "W", "flush": "F"}


def obtain_trace(history: Traced, disk: int, store: Store) -> Corpus:
    """Return a trace for a disk of so many bytes, from the store or made now.

    Raises InputError for a trace that cannot be read, and for requests that the disk has no place for.
    """
    path = Path(history.trace).absolute()
    try:
        content = file_hash(path, fileio.OPERATIONS)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error

    def build(directory: Path) -> CorpusDescription:
        trace = _read(path, history, disk)
        require_unchanged(path, content)
        tree = directory / "parts"
        tree.mkdir()
        (tree / "1").write_text("".join(_lines(trace.requests, history.before)), encoding="ascii")
        size = (tree / "1").stat().st_size
        require_space(size + 1000 * iso.BLOCK, directory, "keeping the trace")
        iso.make(tree, directory / IMAGE_FILE, volume=VOLUME, date=DATE)
        shutil.rmtree(tree)
        (directory / REPORT).write_text(_report(trace, disk), encoding="utf-8")
        described = f"history: the user's trace; {len(trace.requests)} requests"
        return CorpusDescription(files=1, content_bytes=size, description=described, parts=1)

    inputs = {
        "source": history.engine,
        "recipe": RECIPE,
        "trace": content,
        "device": history.device,
        "before": history.before,
        "disk": disk,
        "maker": iso.MAKER,
    }
    return obtain(store, inputs, build, readers.of_files(path))


def _read(path: Path, history: Traced, disk: int) -> Trace:
    """Return the requests to send, without discards, which the player does not send. Raises InputError."""
    lines = (line.decode("utf-8", "backslashreplace") for line in read_lines(path))
    trace = trace_reader.read(lines, str(path), history.device)
    sent = [request for request in trace.requests if request.kind != "discard"]
    if not sent:
        raise InputError(f"{path}: all of its requests are discards, which a replay leaves out")
    _require_room(path, [request for request in sent if request.kind != "flush"], history.before, disk)
    skipped = trace.skipped
    if discards := len(trace.requests) - len(sent):
        skipped = {**skipped, "discard": discards}
    return Trace(sent, skipped)


def _require_room(path: Path, requests: Sequence[BlockRequest], before: int, disk: int) -> None:
    """Raise InputError where a request lies outside of the disk; the hint has a place for all of them."""
    end = before + disk
    outside = [request for request in requests if not before <= request.first <= end - request.size]
    if not outside:
        return
    first, lowest = outside[0], min(request.first for request in requests)
    highest = max(request.first + request.size for request in requests)
    begin = lowest // MIB * MIB
    need = -(-(highest - begin) // MIB)
    larger = f", and take a disk of {need} MiB or more (`mib`)" if need * MIB > disk else ""
    raise InputError(
        f"{path}: {len(outside)} of {len(requests)} requests lie outside of the disk, which is bytes {before} to {end} "
        f"of the traced device; the first is a {first.kind} of {first.size} bytes at {first.first}",
        hint=f"they are at {lowest} to {highest}: say `before = {begin}` in the history, how many bytes of the "
        f"traced device lie before the disk{larger}",
    )


def _lines(requests: Sequence[BlockRequest], before: int) -> Iterator[str]:
    for request in requests:
        first = 0 if request.kind == "flush" else request.first - before
        forced = " fua" if request.forced else ""
        yield f"{request.microseconds} {_LETTERS[request.kind]} {first} {request.size}{forced}\n"


def _report(trace: Trace, disk: int) -> str:
    requests = trace.requests
    written = sum(request.size for request in requests if request.kind == "write")
    report = HistoryReport(
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
        skipped=trace.skipped,
    )
    return report.model_dump_json(by_alias=True, indent=1) + "\n"
