"""virtme-ng 1.42 as a yardstick: installed, given a root that suits it, and timed.

It normally boots the host's own root. What that holds decides how long it takes (and whether it works at
all: without udev, or without modprobe on the host, it fails), so it gets a small Debian root here, the same
on every machine: the essential packages, mount, kmod, mkfs.ext4 and udev. ``bare`` leaves udev out. The command's
output then comes over the console and its exit status is lost, but nothing that we found starts it sooner.
"""

import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agelab.base import process
from agelab.base.hashing import key_of
from agelab.debian import Archive, host_suite, local_repository
from agelab.kernel import Kernel
from agelab.machine.qemu import emulator
from agelab.store.artefacts import Store, file_hash
from bench.common import time_until

REQUIREMENTS = Path(__file__).with_name("requirements-virtme.txt")
PACKAGES = ("e2fsprogs", "kmod", "mount", "usr-is-merged")
TOOLS = ("depmod", "modprobe", "modinfo")
ECHO, MARK = "echo the guest says $((40 + 2))", b"the guest says 42"
RECIPE = 1
PATIENCE = 180.0
"""Host seconds for one guest."""


@dataclass(frozen=True)
class Virtme:
    """virtme-ng with one root."""

    directory: Path
    release: str
    bare: bool
    memory_mib: int
    qemu: Path
    """The program of the store's QEMU, which starts our guests, too."""

    def argv(self, command: str, disks: Sequence[Path] = ()) -> list[str]:
        """The words that run a shell command in a guest with these disks, /dev/vda and so on."""
        root = self.directory / "root"
        argv = [str(self.directory / "venv/bin/vng"), "--run", str(root / "boot" / f"vmlinuz-{self.release}")]
        argv += ["--qemu", str(self.qemu), "--root", str(root), "--busybox", str(root / "usr/bin/busybox")]
        # Without --force-9p it waits for a virtiofsd; Debian 12's QEMU has no fitting one.
        argv += ["--force-9p", "--disable-kvm", "--cpus", "1", "--memory", f"{self.memory_mib}M"]
        argv += [word for disk in disks for word in ("--disk", str(disk))]
        return [*argv, *(["--verbose"] if self.bare else []), "--", command]

    def time(self, argv: Sequence[str], is_complete: Callable[[bytes], bool]) -> tuple[float, bytes]:
        """Return host seconds from the start of virtme-ng until its output is complete, and the output.

        Raises HostError where that does not come.
        """
        env = process.environment({"HOME": str(self.directory)})
        env["PATH"] = f"{self.directory / 'venv/bin'}:{self.directory / 'tools'}:{env['PATH']}"
        return time_until(argv, env, self.directory / "output", is_complete, PATIENCE)

    def start(self) -> float:
        """Host seconds from the start of the command until the guest's command was heard. Raises HostError."""
        return self.time(self.argv(ECHO), lambda output: MARK in output)[0]


def prepare(store: Store, kernel: Kernel, *, bare: bool, memory_mib: int) -> Virtme:
    """Install virtme-ng and make its root, below the store's cache, unless that has been done.

    Raises HostError when a download or mmdebstrap fails.
    """
    archive = Archive(store, host_suite())
    packages = archive.resolve([*PACKAGES, *([] if bare else ["udev"])], essential=True)
    image = archive.package(f"linux-image-{kernel.release}", kernel.version)
    busybox = archive.package("busybox-static")
    hashes = [package.sha256 for package in (*packages, image, busybox)]
    key = key_of({"packages": hashes, "requirements": file_hash(REQUIREMENTS), "recipe": RECIPE})
    directory = store.cache("virtme") / key[:16]
    made = Virtme(directory, kernel.release, bare, memory_mib, emulator.obtain(store).program)
    if (directory / "done").exists():
        return made
    process.run(["rm", "-rf", str(directory)])
    directory.mkdir()
    _root(archive.download(packages), [package.name for package in packages], directory)
    _add(archive.download([image, busybox]), kernel.release, directory)
    _tools(directory)
    process.run([str(directory / "tools/depmod"), "-b", str(directory / "root"), kernel.release])
    process.run(["python3", "-m", "venv", str(directory / "venv")])
    pip = [
        str(directory / "venv/bin/pip"),
        "install",
        "--quiet",
        "--require-hashes",
        "--only-binary",
        ":all:",
    ]
    process.run([*pip, "-r", str(REQUIREMENTS)], log=directory / "pip.log")
    (directory / "done").touch()
    return made


def version(virtme: Virtme) -> str:
    """Return the version that vng prints."""
    return process.run([str(virtme.directory / "venv/bin/vng"), "--version"]).stdout.strip()


def _root(debs: Sequence[Path], names: Sequence[str], directory: Path) -> None:
    source = local_repository(directory / "repository", debs)
    argv = ["mmdebstrap", "--variant=essential", "--skip=cleanup"]
    argv += ["--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", '--aptopt=APT::Sandbox::User "root"']
    argv += ["--include=" + ",".join(names), "", str(directory / "root"), source]
    process.run(argv, log=directory / "mmdebstrap.log")


def _add(debs: Sequence[Path], release: str, directory: Path) -> None:
    """Unpack the kernel, its modules and a static busybox, without running maintainer scripts."""
    root, unpacked = directory / "root", directory / "unpacked"
    for deb in debs:
        process.run(["dpkg-deb", "-x", str(deb), str(unpacked)])
    (root / "boot").mkdir(exist_ok=True)
    (root / "usr/lib/modules").mkdir(exist_ok=True)
    (unpacked / f"boot/vmlinuz-{release}").rename(root / f"boot/vmlinuz-{release}")
    (unpacked / f"lib/modules/{release}").rename(root / f"usr/lib/modules/{release}")
    (unpacked / "bin/busybox").rename(root / "usr/bin/busybox")
    shutil.rmtree(unpacked)


def _tools(directory: Path) -> None:
    """Provide the kmod programs that virtme-ng needs from the root, as not every host has them."""
    root = directory / "root"
    [library] = root.glob("usr/lib/*/libkmod.so.2")
    [loader] = library.parent.glob("ld-linux*")
    (directory / "tools").mkdir()
    for name in TOOLS:
        script = directory / "tools" / name
        command = [
            str(loader),
            "--library-path",
            str(library.parent),
            "--argv0",
            name,
            str(root / "usr/bin/kmod"),
        ]
        script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        script.chmod(0o755)
