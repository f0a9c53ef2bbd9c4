"""The parts of a guest's plan about one disk: its layout, and the commands that make and mount its filesystem."""

from collections.abc import Mapping, Sequence
from typing import Any

from agelab.runner.plan.block_change import is_served_by_ext4
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.phases import MAKING
from agelab.scenario.filesystem import Filesystem
from agelab.scenario.guest_places import BESIDE_MOUNT, MOUNT, UNDER_TEST, device
from agelab.scenario.layout import fill
from agelab.scenario.step import CONTROL, ForkName

MountedAs = tuple[str, str]
"""Type and options of a mount."""
FILESYSTEM_UUID = {
    "making": "6167656c-6162-4000-8000-000000000001",
    "control": "6167656c-6162-4000-8000-000000000003",
    "beside": "6167656c-6162-4000-8000-000000000004",
}
"""The UUID of every filesystem, and where it can be given, the hash seed. (The swap space has the second.)"""
ARRAY_UUID = {"making": "6167656c:61620000:00000000:00000001", "control": "6167656c:61620000:00000000:00000003"}
"""The UUID of every array."""


def mkfs(spec: CellSpec, made_by: str, name: str = UNDER_TEST) -> list[str]:
    """Return the command that makes a phase's filesystem on the disk of that name.

    The control has a UUID of its own: it is mounted beside the filesystem that it is copied from. So has each of
    several controls: mkfs.btrfs refuses a UUID that another disk has.
    """
    if spec.variant.script:
        return ["sh", "-c", '"$0"', spec.variant.script]
    uuid = FILESYSTEM_UUID["beside" if spec.is_companion else made_by if made_by == CONTROL else MAKING]
    point = ForkName.parse(name).number
    if point is not None:
        uuid = uuid.replace("-4000-", f"-4{point:03x}-")
    options = spec.variant.mkfs_options_for(spec.defaults)
    command = spec.filesystem.mkfs_command(spec.defaults, options, shrink=spec.shrink)
    return fill_in(command, name, {"{uuid}": uuid})


def mount_and_umount(spec: CellSpec, name: str, mount_point: str, *, read_only: bool = False) -> dict[str, list[str]]:
    """Return the commands that mount and unmount a filesystem of the cell's kind."""
    # A variant's options say how it is written; some of them are refused where nothing may be written (data=journal).
    options = () if read_only else spec.variant.mount_options
    return _mount_and_umount(spec.filesystem, spec, options, name, mount_point, read_only)


def mount_and_umount_under_test(spec: CellSpec, before: MountedAs | None) -> dict[str, list[str]]:
    """Return the commands for the disk under test; a script's disk is mounted as it was ``before``."""
    if not spec.variant.script:
        return mount_and_umount(spec, UNDER_TEST, MOUNT)
    disk, umount = device(UNDER_TEST), ["umount", MOUNT]
    if before:
        kind, options = before
        return {"mount": ["mount", "-t", kind, "-o", options, disk, MOUNT], "umount": umount}
    unless_mounted = 'mountpoint -q "$1" || mount "$0" "$1"'
    return {"mount": ["sh", "-c", unless_mounted, disk, MOUNT], "umount": umount}


def companion(spec: CellSpec) -> dict[str, Any] | None:
    """Return the filesystem beside the disk under test."""
    if spec.disk.companion is None or spec.companion is None:
        return None
    return {
        "name": "beside",
        "members": [list(spec.disk.companion)],
        "layers": None,
        **_mount_and_umount(spec.companion, spec, (), "beside", BESIDE_MOUNT, False),
    }


def _mount_and_umount(
    filesystem: Filesystem, spec: CellSpec, options: Sequence[str], name: str, mount_point: str, read_only: bool
) -> dict[str, list[str]]:
    if not read_only:
        options = (*options, *_commit(filesystem, spec), *_inode_read_ahead(filesystem, spec))
    mount = filesystem.mount_command(spec.defaults, options, read_only=read_only)
    return {
        "mount": fill_in(mount, name, mount_point=mount_point),
        "umount": fill_in(filesystem.tooling(spec.defaults).umount, name, mount_point=mount_point),
    }


def _commit(filesystem: Filesystem, spec: CellSpec) -> list[str]:
    """Return the mount option for commits as often as on the machine, where the kernel's default is something else."""
    seconds = filesystem.commit_seconds
    scaled = round(seconds / spec.dilation) if seconds else None
    if scaled == seconds or (filesystem is spec.filesystem and _is_without_journal(spec)):
        return []
    return [f"commit={scaled}"]


def _is_without_journal(spec: CellSpec) -> bool:
    """Return True where mkfs leaves ext4's journal out: its driver then takes no word of commits."""
    made = spec.filesystem.mkfs_command(spec.defaults, spec.variant.mkfs_options_for(spec.defaults))
    features = [word for at, word in enumerate(made) if made[at - 1] == "-O"]
    of_journal = [word for word in ",".join(features).split(",") if word.lstrip("^") in ("none", "has_journal")]
    return is_served_by_ext4(spec.filesystem) and of_journal[-1:] in (["none"], ["^has_journal"])


def _inode_read_ahead(filesystem: Filesystem, spec: CellSpec) -> list[str]:
    """Return the mount option that is asked for; the last one of its name holds."""
    if spec.inode_read_ahead is None or not is_served_by_ext4(filesystem):
        return []
    return [f"inode_readahead_blks={spec.inode_read_ahead}"]


def fork_on_memory(
    spec: CellSpec, drives: list[dict[str, Any]], first_disk: int, name: str, mount_point: str
) -> dict[str, Any]:
    """Return a fork on bare memory, mounted read-only: its members are the memory-backed disks from ``first_disk`` on.

    Its drives are added to ``drives``.
    """
    members = []
    for number, (drive, part) in enumerate(spec.disk.members):
        sectors = spec.disk.drives[drive].partitions[part].sectors
        partition = {"disk": first_disk + number, "first": 0, "sectors": sectors}
        members.append([len(drives), 0])
        drives.append({"name": f"{name}{number}", "settings": None, "real": None, "partitions": [partition]})
    return {
        "name": name,
        "members": members,
        "layers": layers(spec, name),
        **mount_and_umount(spec, name, mount_point, read_only=True),
    }


def layers(spec: CellSpec, name: str = MAKING) -> dict[str, Any] | None:
    """Return how a fork or a phase's disk is put together; None where it is the one partition itself.

    A control has an identity of its own: it is put together beside the aged disk.
    """
    disk, layout = spec.disk, spec.disk.layout
    if not layout.make:
        return None
    kind = ForkName.parse(name).kind
    identity = kind if kind in ARRAY_UUID else MAKING
    words = {**disk.parameters, "uuid": ARRAY_UUID[identity], "identity": identity, "key": spec.layout_key}
    for number, (drive, part) in enumerate(disk.members):
        words[f"sectors{number}"] = str(disk.drives[drive].partitions[part].sectors)
    return {
        "device": fill([(layout.device,)], words)[0][0],
        "make": fill(layout.make, words),
        "open": fill(layout.open, words),
        "close": fill(layout.close, words),
        "module_parameters": layout.module_parameters,
        "files": layout.files,
        "fills": layout.fills,
    }


def fill_in(
    command: Sequence[str], name: str = UNDER_TEST, words: Mapping[str, str] | None = None, mount_point: str = MOUNT
) -> list[str]:
    """Put the disk of that name, its mount point and other words into a command of a filesystem."""
    argv = list(command)
    for place, word in {**(words or {}), "{device}": device(name), "{mountpoint}": mount_point}.items():
        argv = [argument.replace(place, word) for argument in argv]
    return argv
