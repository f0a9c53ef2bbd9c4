"""Capsules: whatever the bytes, one is shown and replayed, up to a guest, or refused; with a seal that fits, too."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from unittest.mock import patch

from agelab.base.errors import AgelabError
from agelab.base.sanitize import escape_controls
from agelab.capsule.pack import pack
from agelab.capsule.verify import CapsuleManifest
from agelab.results.key_and_digest import inputs_key
from agelab.runner.request.options import RunOptions
from agelab.store import parcel
from agelab.store.artefacts import Store
from agelab.store.parcel import Parcel, Refused
from tests.build import capsule_verbs
from tests.build.capsule_builder import contents, made_run, write_capsule
from tests.build.run_readers import OBEYED


@cache
def _made(carry: bool) -> dict[str, bytes]:
    """The members of a valid capsule, which carries its image or not; a corpus of a few bytes, not of whole MiB."""
    with tempfile.TemporaryDirectory() as name, patch("agelab.data.corpus.artefact.align"):
        store = Store(Path(name, "home"))
        words = RunOptions(name="any", directory="/").to_plan()["options"]
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
        members = dict(_made(carry))
        for number, data in enumerate(members.values()):
            yield bytes([2 * number + carry]) + data
        write_capsule(_file(), _manifest(members), members)
        yield _file().read_bytes()


def one(data: bytes) -> None:
    """Use it as a capsule; and as a member, its number before it, of a capsule that is sealed anew."""
    _file().write_bytes(data)
    _use()
    number, carry = divmod((data or b"\0")[0], 2)
    members = dict(_made(bool(carry)))
    names = list(members)
    members[names[number % len(names)]] = data[1:]
    _keyed(members)
    with suppress(Refused):  # what was made up is the list itself
        write_capsule(_file(), _manifest(members), members)
        _use()


def _manifest(members: dict[str, bytes]) -> CapsuleManifest:
    """Take the list out of the members, and return its manifest. Raises Refused."""
    return parcel.parse(members.pop(parcel.LIST), Parcel[CapsuleManifest]).manifest


def _keyed(members: dict[str, bytes]) -> None:
    """Let the keys of cells fit what their inputs are, unless these or their ends are made up badly."""
    for name in [name for name in members if name.endswith("/inputs.json")]:
        with suppress(ValueError, TypeError, RecursionError, AttributeError):
            end = name.replace("inputs", "end")
            key = inputs_key(json.loads(members[name]))
            members[end] = json.dumps(json.loads(members[end]) | {"inputs_key": key}).encode()


def _use() -> None:
    try:
        said = capsule_verbs.use(_file())
        assert not any(OBEYED.search(escape_controls(line, kept="")) for line in said)
    except AgelabError as error:
        assert "\n" not in str(error), "more than one line"
