"""Import disks that were made elsewhere: images that their superblocks call whole, of the filesystem that is named."""

import json
import re
import shlex
import shutil
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agelab.base import atomic, confine, fileio, process, readers
from agelab.base.errors import HostError, InputError
from agelab.base.sanitize import require_utf_8
from agelab.base.types import Defaults, LayoutName
from agelab.store.artefacts import Store, content_hash
from agelab.store.stored_disk import DISK_ALIGNMENT, MEMBER_FILE, DiskRecipe, StoredDisk, align, save

HEAD = 1 << 20
"""Bytes at the beginning of an image that hold what is read here."""
_ZFS_FRONT, _ZFS_END = 4 << 20, 512 << 10
"""Bytes of a pool's labels before and behind what its label calls asize."""
_ZFS_ASIZE = re.compile(rb"\0\0\0\x05asize\0\0\0\0\0\0\x08\0\0\0\x01(.{8})", re.DOTALL)
"""A name and a number of a label's list, as XDR has them."""


def stated_bytes(image: Path, signature: str) -> int | None:
    """Return the bytes that a filesystem, or a member of an array, needs by its superblock.

    ``signature`` is what wipefs calls it. None where it is not one of these, or says nothing that makes sense.
    """
    read = _READERS.get(signature)
    if read is None:
        return None
    with fileio.opened(image) as file:
        head = file.read(HEAD)
    try:
        return read(head) or None
    except (struct.error, OverflowError):
        return None


def _fields(head: bytes, layout: str, at: int) -> tuple[Any, ...]:
    return struct.unpack_from(layout, head, at)


def _field(head: bytes, layout: str, at: int) -> int:
    return int(_fields(head, layout, at)[0])


def _ext(head: bytes) -> int:
    low, _, _, _, _, shift = _fields(head, "<6I", 1024 + 4)
    high = _field(head, "<I", 1024 + 0x150)
    has_high = _field(head, "<I", 1024 + 96) & 0x80
    return int((low | (high << 32 if has_high else 0)) << 10 + _small(shift))


def _jfs(head: bytes) -> int:
    blocks, block, _, _, physical = _fields(head, "<qIHHI", 32768 + 8)
    ends = [blocks * physical]
    for place in (72, 80):  # its log, and room for its check
        first, second = _fields(head, "<II", 32768 + place)
        ends.append(((first & 0xFFFFFF) + ((first >> 24) << 32 | second)) * block)
    return int(max(ends))


def _reiserfs(head: bytes) -> int:
    at = 65536 if head[65536 + 52 :].startswith(b"ReIsEr") else 8192
    return _field(head, "<I", at) * _field(head, "<H", at + 44)


def _reiser4(head: bytes) -> int:
    block = _field(head, "<H", 65536 + 18)
    return _field(head, "<Q", 65536 + block) * block


def _zfs(head: bytes) -> int:
    match = _ZFS_ASIZE.search(head)
    return int.from_bytes(match[1], "big") + _ZFS_FRONT + _ZFS_END if match else 0


def _array(head: bytes) -> int:
    if head[4096:4100] != b"\xfc\x4e\x2b\xa9":  # formats 0.90 and 1.0 lie at the end, and go with it
        return 0
    first, sectors = _fields(head, "<QQ", 4096 + 128)
    return int((first + sectors) * 512)


def _small(shift: int) -> int:
    """Return the logarithm of a block's size. Raises OverflowError for one that no filesystem has."""
    if shift > 25:
        raise OverflowError
    return shift


_READERS: dict[str, Callable[[bytes], int]] = {
    **dict.fromkeys(("ext2", "ext3", "ext4"), _ext),
    "xfs": lambda head: _field(head, ">I", 4) * _field(head, ">Q", 8),
    "btrfs": lambda head: _field(head, "<Q", 65536 + 0xC9 + 8),  # of this device alone
    "jfs": _jfs,
    "reiserfs": _reiserfs,
    "reiser4": _reiser4,
    "nilfs2": lambda head: _field(head, "<Q", 1024 + 32),
    "ntfs": lambda head: _field(head, "<H", 11) * _field(head, "<Q", 40),
    "vfat": lambda head: _field(head, "<H", 11) * (_field(head, "<H", 19) or _field(head, "<I", 32)),
    "exfat": lambda head: _field(head, "<Q", 72) << _small(_field(head, "<B", 108)),
    "f2fs": lambda head: _field(head, "<Q", 1024 + 36) << _small(_field(head, "<I", 1024 + 16)),
    "ufs": lambda head: _field(head, "<i", 65536 + 52) * _field(head, "<q", 65536 + 1080),
    **{"zfs_member": _zfs, "linux_raid_member": _array},
}


IMPORTABLE_FORMATS = ("raw", "qcow2", "vdi", "vhdx", "vpc")
"""Image formats that can be imported: each image is one file."""
EXT = ("ext2", "ext3", "ext4")
SIGNATURES = {**dict.fromkeys(EXT, EXT), **dict.fromkeys(("zfs", "openzfs"), ("zfs_member",)), "ntfs3": ("ntfs",)}
"""The types by which wipefs knows a filesystem, where they are not its own name alone."""
RAID_MEMBER = "linux_raid_member"
_MAKE_WHOLE = "make it whole first: qemu-img convert -O qcow2"
_MAKE_RAW = "make it a raw image first: qemu-img convert -O raw"
_COPY_AGAIN = "copy it again, and compare sizes or checksums"
_MEASURE_SECONDS = 60.0
_NO_CHECK, _LEAKS = 63, 3
"""Exit codes of qemu-img check: of a format that has none, and of an image that has unused clusters."""
_MAPPED = re.compile(r'"length": (\d+).*"offset": (\d+)')
"""A line of qemu-img map for data that lie in the image as they are."""


def import_images(
    store: Store, images: Sequence[Path], filesystem: str, layout: LayoutName, defaults: Defaults, command: str
) -> StoredDisk:
    """Store a user's own images (raw, qcow2, ...), one for each member of the disk.

    Raises InputError for a file that is not a whole image of that filesystem, or that refers to another file.
    """
    require_utf_8(command)
    for image in images:
        if not image.is_file():
            raise InputError(f"{image} is not a file")
    work = store.cache("import")
    with atomic.temp_dir(work) as directory:
        members = [directory / MEMBER_FILE.format(number) for number, _ in enumerate(images)]
        sizes = []
        for image, member in zip(images, members, strict=True):
            try:
                sizes.append(_convert(image.resolve(), member))
            except process.ProcessFailed as error:
                why = error.stderr.strip().partition("\n")[0]
                cut = "truncated" in why
                raise InputError(
                    f"{image} {'is cut short' if cut else 'cannot be read as a disk image'}: {why}",
                    hint=_COPY_AGAIN if cut else _MAKE_WHOLE,
                ) from error
            size = member.stat().st_size
            if not size:
                raise InputError(f"{image} is empty")
            if len(images) > 1 and size % DISK_ALIGNMENT:
                raise InputError(
                    f"{image}: {size} bytes are not a multiple of {DISK_ALIGNMENT}; a member of an array cannot grow"
                )
        signatures = [_signatures(member) for member in members]
        _require_filesystem(images, signatures, filesystem)
        _require_size(images, members, sizes, signatures, filesystem)
        for member in members:
            align(member)
        if len({member.stat().st_size for member in members}) > 1:
            raise InputError("the members of an array must have the same size")
        recipe = DiskRecipe(
            makes="aged",
            filesystem=filesystem,
            layout=layout,
            defaults=defaults,
            sizes=tuple(member.stat().st_size for member in members),
            command=command,
        )
        inputs = {
            "imported": [content_hash(member) for member in members],
            "filesystem": filesystem,
            "layout": layout,
            "defaults": defaults,
        }
        return save(store, inputs, recipe, members, [], readable_by=readers.of_files(*images))


def signatures_of(filesystem: str) -> tuple[str, ...]:
    """Return the types by which wipefs knows a filesystem."""
    return SIGNATURES.get(filesystem, (filesystem,))


def _signatures(member: Path) -> set[str]:
    """Return the types that wipefs finds in an image."""
    inside = member.resolve()
    output = confine.run(["wipefs", "--no-act", "--json", str(inside)], read=[inside]).stdout
    return {entry["type"] for entry in json.loads(output)["signatures"]} if output.strip() else set()


def _require_filesystem(images: Sequence[Path], signatures: Sequence[set[str]], filesystem: str) -> None:
    """Raise InputError where the images have no signature of the filesystem: any file passes for a raw image."""
    types = set().union(*signatures)
    if types.isdisjoint((*signatures_of(filesystem), *([RAID_MEMBER] if len(images) > 1 else []))):
        held = f"there is {', '.join(sorted(types))}" if types else "nothing there is known"
        raise InputError(
            f"{' and '.join(map(str, images))}: no {filesystem}; {held}",
            hint="name the filesystem that is on it; of a disk with partitions take one partition",
        )


def _require_size(
    images: Sequence[Path],
    members: Sequence[Path],
    sizes: Sequence[int],
    signatures: Sequence[set[str]],
    filesystem: str,
) -> None:
    """Raise InputError for an image that has fewer bytes than what is on it says: it is cut short."""
    for image, member, size, types in zip(images, members, sizes, signatures, strict=True):
        # A filesystem may begin in one member of an array and end in another.
        for kind, there in ((RAID_MEMBER, size), *((kind, sum(sizes)) for kind in signatures_of(filesystem))):
            stated = stated_bytes(member, kind) if kind in types else None
            if stated and stated > there:
                raise InputError(
                    f"{image} is cut short: its {kind} takes {stated:,} bytes, and there are {there:,}",
                    hint=_COPY_AGAIN,
                )


def _convert(image: Path, member: Path) -> int:
    """Write an image as a raw file; return its bytes, without those by which qemu-img fills the last sector.

    Raises InputError, ProcessFailed, HostError where there is no room for it.
    """
    file_format = _format(image)
    if file_format != "raw":
        _require_room(image, file_format, member.parent)
        _require_data(image, file_format, member.with_suffix(".map"))
    member.touch()
    argv = ["qemu-img", "convert", "-f", file_format, "-O", "raw", str(image), str(member)]
    confine.run(argv, read=[image], write=[member])
    return min(member.stat().st_size, image.stat().st_size) if file_format == "raw" else member.stat().st_size


def _require_data(image: Path, file_format: str, listing: Path) -> None:
    """Raise InputError for an image whose data lie beyond its end, where qemu-img would read zeros.

    ``listing`` is a file to be written meanwhile: an image of many pieces has a long list of them.
    """
    size = image.stat().st_size
    _ask("map", image, file_format, listing)
    with listing.open(encoding="utf-8") as lines:
        mapped = (match for line in lines if (match := _MAPPED.search(line)))
        end = max((int(match[1]) + int(match[2]) for match in mapped), default=0)
    listing.unlink()
    if end > size:
        raise InputError(
            f"{image} is cut short: its data reach to byte {end:,}, and it has {size:,} bytes", hint=_COPY_AGAIN
        )
    try:
        _ask("check", image, file_format)
    except process.ProcessFailed as error:
        if error.returncode not in (_NO_CHECK, _LEAKS):
            raise InputError(
                f"{image} is cut short or damaged: qemu-img check finds errors in it",
                hint=f"{_COPY_AGAIN}; to see them: qemu-img check {shlex.quote(str(image))}",
            ) from error


def _require_room(image: Path, file_format: str, directory: Path) -> None:
    """Raise for an image that unpacks to more than there is room for: it may name one packed cluster over and over."""
    needed = json.loads(_ask("measure", image, file_format, options=("-O", "qcow2")))["required"]
    free = shutil.disk_usage(directory).free
    if needed > free:
        raise HostError(
            f"{image} unpacks to {needed >> 20} MiB, and {directory.parent} has {free >> 20} MiB free",
            hint="free some space; AGELAB_HOME=<directory> moves the store",
        )


def _ask(verb: str, image: Path, file_format: str, output: Path | None = None, options: Sequence[str] = ()) -> str:
    """Return what a verb of qemu-img prints about an image, or write it to a file.

    Raises ProcessFailed, and InputError where it takes too long.
    """
    argv = ["qemu-img", verb, "--output=json", "-f", file_format, *options, str(image)]
    try:
        return confine.run(argv, read=[image], stdout=output, timeout=_MEASURE_SECONDS).stdout
    except process.TimedOut as error:
        raise InputError(f"{image}: qemu-img {verb} does not end within {_MEASURE_SECONDS:g} s", _MAKE_RAW) from error


def _format(image: Path) -> str:
    """Return the format of an image that refers to no other file: qemu-img would read whatever file it names.

    Raises InputError, ProcessFailed.
    """
    argv = ["qemu-img", "info", "--output=json", str(image)]
    info = json.loads(confine.run(argv, read=[image], timeout=_MEASURE_SECONDS).stdout)
    specific = info.get("format-specific", {}).get("data", {})
    if other := info.get("backing-filename") or specific.get("data-file"):
        raise InputError(f"{image} is not whole: the rest is in {str(other)[:200]!r}", hint=_MAKE_WHOLE)
    if info["format"] not in IMPORTABLE_FORMATS:
        raise InputError(f"{image} has the format {info['format']}; known are {', '.join(IMPORTABLE_FORMATS)}")
    return str(info["format"])
