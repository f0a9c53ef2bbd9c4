"""Capsules: whatever the bytes, one is sound or refused; with a seal that fits, too."""

import hashlib
import json
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from agelab.capsule import archive, schema
from agelab.capsule.pack import pack
from agelab.capsule.read import open_capsule
from agelab.capsule.unpack import unpack
from agelab.errors import AgelabError
from agelab.model.sanitize import escape_controls
from agelab.store import Store
from agelab.view import capsule as shown
from tests.unit.capsule_builder import contents, made_run
from tests.unit.run_readers import OBEYED


@cache
def _made() -> dict[str, bytes]:
    """The members of a valid capsule."""
    with tempfile.TemporaryDirectory() as name:
        store = Store(Path(name, "home"))
        return contents(pack(made_run(store), store, Path(name, "sound.capsule")).path)


MEMORY = Path("/dev/shm")
_directory = tempfile.TemporaryDirectory(prefix="agelab-fuzz-", dir=MEMORY if MEMORY.is_dir() else None)


def _file() -> Path:
    """Where capsules are written to be read."""
    return Path(_directory.name, "one.capsule")


def seeds() -> Iterator[bytes]:
    """A whole capsule, and each of its members behind the number of its name."""
    members = _made()
    archive.write(_file(), members)
    yield _file().read_bytes()
    for number, data in enumerate(members.values()):
        yield bytes([number]) + data


def one(data: bytes) -> None:
    """Read it as a capsule; and as a member, its number before it, of a capsule that is sealed anew."""
    _read(data)
    members = dict(_made())
    names = list(members)
    members[names[(data or b"\0")[0] % len(names)]] = data[1:]
    _sealed(members)
    archive.write(_file(), members)
    _read(_file().read_bytes())


def _sealed(members: dict[str, bytes]) -> None:
    """Let manifest and seal fit what the members are, unless they are what was made up."""
    try:
        manifest = json.loads(members[schema.MANIFEST])
        for name, packed in manifest["members"].items():
            packed |= {"sha256": hashlib.sha256(members[name]).hexdigest(), "size": len(members[name])}
        members[schema.MANIFEST] = json.dumps(manifest).encode()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return  # what was made up is the manifest itself
    members[schema.SEAL] = hashlib.sha256(members[schema.MANIFEST]).hexdigest().encode() + b"\n"


def _read(data: bytes) -> None:
    path = _file()
    path.write_bytes(data)
    try:
        found = open_capsule(path)
        said = [*shown.capsule_lines(found), str(shown.capsule_json(found))]
        assert not any(OBEYED.search(escape_controls(line, kept="")) for line in said)
        with tempfile.TemporaryDirectory(dir=path.parent) as place:
            unpack(found, Path(place, "parts"))
    except AgelabError as error:
        assert "\n" not in str(error), "more than one line"
