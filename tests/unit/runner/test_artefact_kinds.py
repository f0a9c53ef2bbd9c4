"""What comes from a cache with right hashes, and is not what its kind must hold: it gets into no store."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agelab.runner.reuse.artefacts import CachedArtefacts
from agelab.runner.reuse.cache import DirectoryPlace
from agelab.store.artefacts import Store
from tests.build.kernel_builder import WHOLE, module

Files = Mapping[str, bytes]
EXT4: dict[str, Any] = {"name": "ext4", "path": "modules/ext4.ko"}
IMAGE_FILES = {"root.squashfs": b"root", "initramfs": b"cpio", "vmlinuz": b"bzImage"}
REPORTED = {"source": "history"}


def modules(*infos: Mapping[str, Any], **files: bytes) -> Files:
    named = {f"modules/{name}.ko": content for name, content in files.items()}
    return {**WHOLE, "modules.json": json.dumps(infos).encode(), **named}


def image(files: Files = IMAGE_FILES, kernel: str = "k", **said: Any) -> Files:
    """An image whose description is of ``files``, or of what is ``said``."""
    hashes = {name: sha256(content) for name, content in files.items()}
    of = {"release": "6.1", "version": "6.1-1", "key": kernel}
    description = {"kernel": of, "root": "r", "template": "t", "packages": [], "files": hashes, **said}
    return {**files, "image.json": json.dumps(description).encode()}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


ABOUT = b'{"files": 1, "content_bytes": 4, "description": "data"}'
CORPUS = {"corpus.iso": b"data", "about.json": ABOUT}


def offered(tmp_path: Path, kind: str, inputs: Mapping[str, Any], files: Files) -> tuple[bool, list[str]]:
    """Whether a machine takes an artefact that another has packed, and what it says."""

    def fill(directory: Path) -> None:
        for name, content in files.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(content)

    (tmp_path / "cache").mkdir()
    blobs = DirectoryPlace(tmp_path / "cache")
    Store(tmp_path / "one", shared=CachedArtefacts(print, blobs)).obtain(kind, inputs, fill, shared=True)
    said: list[str] = []
    made: list[Path] = []
    store = Store(tmp_path / "two", shared=CachedArtefacts(said.append, blobs))
    found = store.obtain(kind, inputs, made.append, shared=True)
    assert bool(made) != ("is taken from the cache" in said[0])
    assert not [line for line in said if "\n" in line] and not found.damage()
    return not made, said


@pytest.mark.parametrize(
    ("kind", "inputs", "files"),
    [
        ("kernel", {}, WHOLE),
        ("kernel", {}, modules(EXT4, ext4=module())),
        ("root", {}, {"root.squashfs": b"root"}),
        ("image", {"kernel": "k"}, image()),
        ("drive", {}, {"agedrive.ko": module()}),
        ("tools", {"sources": {"replay.c": "", "list.h": ""}}, {"replay": b"program"}),
        ("corpus", {}, CORPUS),
    ],
)
def test_what_its_kind_must_hold_is_taken(tmp_path: Path, kind: str, inputs: Mapping[str, Any], files: Files) -> None:
    assert offered(tmp_path, kind, inputs, files)[0]


def without(files: Files, name: str) -> Files:
    return {one: content for one, content in files.items() if one != name}


@pytest.mark.parametrize(
    ("kind", "inputs", "files", "why"),
    [
        *(("kernel", {}, without(WHOLE, name), f"it has no {name}") for name in WHOLE),
        ("kernel", {}, {**WHOLE, "modules.json": b"[{}]"}, "is damaged: "),
        ("kernel", {}, {**WHOLE, "modules.json": b"[" * 100_000}, "it is no kernel"),
        ("kernel", {}, modules(EXT4), "it has no modules/ext4.ko"),
        ("kernel", {}, modules({**EXT4, "path": "../../../etc/passwd"}), "it has no ../../../etc/passwd"),
        ("kernel", {}, modules({**EXT4, "path": "/etc/passwd"}), "it has no /etc/passwd"),
        ("kernel", {}, modules({**EXT4, "name": "../plan"}, ext4=module()), "is named '../plan'"),
        ("kernel", {}, modules({**EXT4, "depends": ["jbd2"]}, ext4=module()), "has no module jbd2"),
        ("kernel", {}, modules(EXT4, ext4=b"\0~Module signature appended~\n"), "it is no kernel"),
        ("root", {}, {"root": b""}, "it has no root.squashfs"),
        *(("image", {"kernel": "k"}, image(without(IMAGE_FILES, name)), "") for name in IMAGE_FILES),
        ("image", {"kernel": "k"}, {**image(), "vmlinuz": b"forged"}, "it is of other files"),
        ("image", {"kernel": "k"}, {**image(), "vmlinux": b"more"}, "it is of other files"),
        ("image", {"kernel": "k"}, image(kernel="another"), "it is of another kernel"),
        ("image", {"kernel": "k"}, image(proof="none"), "is damaged"),
        ("image", {"kernel": "k"}, without(image(), "image.json"), "is damaged"),
        ("drive", {}, {}, "it is no drive"),
        ("drive", {}, {"agedrive.ko": b"text"}, "is not a kernel module"),
        ("drive", {}, {"agedrive": module()}, "agedrive is no module"),
        ("drive", {}, {"a.ko": module(), "b.ko": module()}, "it is no drive"),
        ("tools", {"sources": {"replay.c": ""}}, {"another": b""}, "it has no replay"),
        ("tools", {}, {"replay": b""}, "it is no tools"),
        ("corpus", {}, without(CORPUS, "corpus.iso"), "it has no corpus.iso"),
        ("corpus", {}, without(CORPUS, "about.json"), "is damaged"),
        ("corpus", {}, {**CORPUS, "about.json": b"{}"}, "is damaged"),
        ("corpus", REPORTED, CORPUS, "is damaged"),
        ("qemu", {}, {"qemu": b"program"}, "a qemu is never taken from another machine"),
        ("guest", {}, {"state": b"stream"}, "a guest is never taken from another machine"),
    ],
)
def test_what_lacks_it_is_told_in_a_line_and_made_here(
    tmp_path: Path, kind: str, inputs: Mapping[str, Any], files: Files, why: str
) -> None:
    taken, [told, *_] = offered(tmp_path, kind, inputs, files)
    assert not taken and why in told and f"of a {kind}, is not used: " in told


def test_a_file_that_has_changed_since_it_was_stored_is_not_put_into_a_cache(tmp_path: Path) -> None:
    def fill(directory: Path) -> None:
        (directory / "root.squashfs").write_bytes(b"root")

    artefact = Store(tmp_path / "home").obtain("root", {}, fill)
    (artefact / "root.squashfs").write_bytes(b"rool")
    (tmp_path / "cache").mkdir()
    said: list[str] = []
    CachedArtefacts(said.append, DirectoryPlace(tmp_path / "cache")).offer(artefact)
    assert said[1:] == [f"root {artefact.key[:12]} is not put into the cache: its file root.squashfs has changed"]
    assert not [*(tmp_path / "cache").glob("ac/*/*")]
