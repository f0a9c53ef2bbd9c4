"""Capsules: whatever the bytes, one is shown and replayed, up to a guest, or refused; with a seal that fits, too."""

import hashlib
import json
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from agelab.base.errors import AgelabError
from agelab.base.sanitize import escape_controls
from agelab.capsule import archive, schema
from agelab.capsule.pack import pack
from agelab.results.digest import inputs_key
from agelab.runner.request.options import RunOptions
from agelab.store.artefacts import Store
from tests.unit import capsule_verbs
from tests.unit.capsule_builder import contents, made_run
from tests.unit.run_readers import OBEYED


@cache
def _made(carry: bool) -> dict[str, bytes]:
    """The members of a valid capsule, which carries its image or not."""
    with tempfile.TemporaryDirectory() as name:
        store = Store(Path(name, "home"))
        words = RunOptions(name="any", directory="/").to_plan()["words"]
        packed = pack(made_run(store, words=words), store, Path(name, "sound.capsule"), carry=carry)
        return contents(packed.path)


MEMORY = Path("/dev/shm")
_directory = tempfile.TemporaryDirectory(prefix="agelab-fuzz-", dir=MEMORY if MEMORY.is_dir() else None)


def _file() -> Path:
    """Where capsules are written to be read."""
    return Path(_directory.name, "one.capsule")


def seeds() -> Iterator[bytes]:
    """Whole capsules, and each of their members behind the number of its name."""
    for carry in (False, True):
        members = _made(carry)
        archive.write(_file(), members)
        yield _file().read_bytes()
        for number, data in enumerate(members.values()):
            yield bytes([2 * number + carry]) + data


def one(data: bytes) -> None:
    """Use it as a capsule; and as a member, its number before it, of a capsule that is sealed anew."""
    _file().write_bytes(data)
    _use()
    number, carry = divmod((data or b"\0")[0], 2)
    members = dict(_made(bool(carry)))
    names = list(members)
    members[names[number % len(names)]] = data[1:]
    _keyed(members)
    _sealed(members)
    archive.write(_file(), members)
    _use()


def _keyed(members: dict[str, bytes]) -> None:
    """Let the keys of cells fit what their inputs are, unless these or their ends are made up badly."""
    for name in [name for name in members if name.endswith("/inputs.json")]:
        with suppress(ValueError, TypeError, RecursionError, AttributeError):
            end = name.replace("inputs", "end")
            key = inputs_key(json.loads(members[name]))
            members[end] = json.dumps(json.loads(members[end]) | {"inputs_key": key}).encode()


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


def _use() -> None:
    try:
        said = capsule_verbs.use(_file())
        assert not any(OBEYED.search(escape_controls(line, kept="")) for line in said)
    except AgelabError as error:
        assert "\n" not in str(error), "more than one line"
