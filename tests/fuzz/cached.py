"""What a cache answers: a list of files, a cell's record, or one kind of error."""

import contextlib
from collections.abc import Iterator

from agelab.base.errors import InputError
from agelab.base.hashing import canonical_json
from agelab.results.digest import digest, inputs_key
from agelab.results.result import Sample, Status
from agelab.runner.reuse.cache import cell_of_record, files_of_entry
from agelab.runner.reuse.ended_cell import CellKey
from agelab.store import action_result
from agelab.store.action_result import CachedFile
from agelab.store.blobs import WrongEntry

INPUTS = {"making": {"kernel": "6.1"}}
KEY = CellKey(inputs_key(INPUTS), "sha256:e")
SAMPLE = Sample(step="aged/read", metric="elapsed", value=1.5, unit="s")
MAPS = {"aged/extents": "0" * 64}


def one(data: bytes) -> None:
    """Read it as each of them. A record that is taken is of the key and of its digest."""
    with contextlib.suppress(WrongEntry):
        files = files_of_entry(data)
        with contextlib.suppress(WrongEntry):
            assert files_of_entry(action_result.encode(files.values())) == files
    with contextlib.suppress(InputError):
        cell = cell_of_record(data)
        cell.require_intact(KEY)
        assert digest(cell.end.status, cell.samples, cell.end.maps) == cell.end.digest
        cell.as_reused(None)


def seeds() -> Iterator[bytes]:
    """A list of two files, one with a server's own field; a whole record."""
    files = [CachedFile("cell.json", "0" * 64, 12), CachedFile("maps/aged/extents.gz", "f" * 64, 3000)]
    yield action_result.encode(files)
    yield action_result.encode(files) + b"\x4a\x0b\x0a\x09127.0.0.1"
    end = {
        "status": "ok",
        "inputs_key": KEY.inputs_key,
        "evaluated_by": KEY.evaluated_by,
        "digest": digest(Status.OK, [SAMPLE], MAPS),
        "maps": MAPS,
        "host_seconds": 1.5,
    }
    origin = {"run": "r", "host": "h", "ended": "2026-01-01T00:00:00Z"}
    record = {"schema": 1, "inputs": INPUTS, "end": end, "origin": origin}
    yield canonical_json({**record, "samples": [SAMPLE.model_dump()]})
