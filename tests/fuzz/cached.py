"""What a cache answers: a list with a cell's record, or one kind of error."""

import contextlib
import hashlib
from collections.abc import Iterator

from agelab.results.key_and_digest import digest, inputs_key
from agelab.results.result import Sample, Status
from agelab.runner.reuse.ended_cells import CellKey, EndedCell
from agelab.store import parcel
from agelab.store.parcel import PackedFile, Parcel, Refused

INPUTS = {"making": {"kernel": "6.1"}}
KEY = CellKey(inputs_key(INPUTS), "sha256:e")
SAMPLE = Sample(step="aged/read", metric="elapsed", value=1.5, unit="s")
MAPS = {"aged/extents": "0" * 64}


def one(data: bytes) -> None:
    """Read it as each of them. A record that is taken is of the key and of its digest."""
    with contextlib.suppress(Refused):
        found = parcel.parse(data, Parcel[EndedCell])
        assert parcel.parse(found.listed(), Parcel[EndedCell]) == found
    with contextlib.suppress(Refused):
        cell = parcel.parse(_sealed(data), Parcel[EndedCell]).manifest
        cell.require_intact(KEY)
        assert digest(cell.end.status, cell.samples, cell.end.maps) == cell.end.digest
        cell.as_reused(None)


def _sealed(data: bytes) -> bytes:
    """Give a list a seal that fits what it is."""
    content = data.rpartition(b',"seal":"')[0] or data[:-1]
    seal = hashlib.sha256(content + b"}").hexdigest()
    return content + b',"seal":"%s"}\n' % seal.encode()


def seeds() -> Iterator[bytes]:
    """A whole list."""
    end = {
        "status": "ok", "inputs_key": KEY.inputs_key, "evaluated_by": KEY.evaluated_by,
        "digest": digest(Status.OK, [SAMPLE], MAPS), "maps": MAPS, "host_seconds": 1.5,
    }  # fmt: skip
    origin = {"run": "r", "host": "h", "ended": "2026-01-01T00:00:00Z"}
    record = {"inputs": INPUTS, "end": end, "origin": origin, "samples": [SAMPLE.model_dump()]}
    files = {"maps/aged/extents.gz": PackedFile(sha256="f" * 64, size=3000)}
    yield Parcel[EndedCell](manifest=EndedCell.model_validate(record), files=files).listed()
