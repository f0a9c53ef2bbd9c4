"""One ended cell as bytes: what a cache would keep of it, to be sent from one host to another."""

import base64
import binascii
import json
from collections.abc import Sequence
from pathlib import Path

from agelab.base.errors import InputError
from agelab.base.hashing import canonical_json
from agelab.runner.reuse.cache import RECORD, CellCache, cell_of_record, files_of_entry
from agelab.runner.reuse.ended_cell import CellKey, EndedCell
from agelab.store.blobs import MAX_BLOB, Kind


class OfAnotherKey(InputError):
    """What was sent is an intact cell, perhaps, but not the one that was asked for."""


class _Bundle:
    """A cache that is nowhere but in memory."""

    name = "of a worker"

    def __init__(self, blobs: dict[str, bytes]) -> None:
        self.blobs = blobs

    def get(self, kind: Kind, sha256: str) -> bytes | None:
        return self.blobs.get(f"{kind}/{sha256}")

    def has(self, kind: Kind, sha256: str) -> bool:
        return f"{kind}/{sha256}" in self.blobs

    def put(self, kind: Kind, sha256: str, content: bytes) -> None:
        self.blobs[f"{kind}/{sha256}"] = content


def pack(key: CellKey, cell: EndedCell, directory: Path) -> bytes:
    """Return a cell whose maps lie in ``directory`` as bytes."""
    bundle, said = _Bundle({}), list[str]()
    CellCache(bundle, said.append).add(key, cell, directory)
    if said:
        raise InputError(said[0])
    return canonical_json({name: base64.b64encode(data).decode() for name, data in bundle.blobs.items()})


def unpack(sent: bytes, key: CellKey, directory: Path) -> EndedCell:
    """Return the cell that was sent, its maps put into ``directory``, verified as one from a cache is.

    Raises InputError for anything else than an intact cell of this key.
    """
    said: list[str] = []
    found = CellCache(_Bundle(_blobs(sent)), said.append).restore(key, directory)
    if found is None:
        if said:
            raise InputError(_reason(said))
        raise OfAnotherKey("what it sent is a cell of another key: it has other inputs or other code")
    return found


def sent_cell(sent: bytes) -> EndedCell:
    """Return the record of the cell that was sent, whatever its key. Raises InputError for no cell."""
    blobs = _blobs(sent)
    entries = [data for name, data in blobs.items() if name.startswith("ac/")]
    files = files_of_entry(entries[0]) if entries else {}
    record = blobs.get(f"cas/{files[RECORD].sha256}") if RECORD in files else None
    if record is None:
        raise InputError("what it sent is no cell")
    return cell_of_record(record)


def _blobs(sent: bytes) -> dict[str, bytes]:
    if len(sent) > 2 * MAX_BLOB:
        raise InputError(f"it sent more than {2 * MAX_BLOB >> 20} MiB")
    try:
        return {str(name): base64.b64decode(data, validate=True) for name, data in json.loads(sent).items()}
    except (ValueError, TypeError, AttributeError, RecursionError, binascii.Error) as error:
        raise InputError("what it sent is no cell") from error


def _reason(said: Sequence[str]) -> str:
    return said[0].rpartition("is not used: ")[2] if said else ""
