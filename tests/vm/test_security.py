"""No one can reach a guest, and its image holds no key and no password."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agelab.base import process
from agelab.cli.options import open_store
from agelab.machine.image.assemble import INITRAMFS, ROOT
from agelab.store.artefacts import Artefact
from tests.vm.cells import PROGRAM, agelab, newest, run, runs, scenario, step

pytestmark = pytest.mark.vm


@pytest.fixture(scope="module")
def image() -> Artefact:
    """An image that a cell has booted."""
    done = agelab("image", "build")
    assert done.returncode == 0, done.stderr
    return open_store().all("image")[-1]


def test_the_sealed_image_has_no_key_and_no_password(image: Artefact) -> None:
    root = str(image / ROOT)
    shadow = process.run(["unsquashfs", "-cat", root, "etc/shadow"]).stdout
    passwords = {line.split(":")[1] for line in shadow.splitlines()}
    assert "root" in shadow and passwords <= {"*", "!", "!*"}
    users = process.run(["unsquashfs", "-cat", root, "etc/passwd"]).stdout.splitlines()
    assert {line.split(":")[1] for line in users} == {"x"}
    listed = process.run(["unsquashfs", "-l", root]).stdout
    assert "/etc/shadow" in listed
    assert not re.search(r"ssh_host|authorized_keys|/\.ssh|id_(rsa|ed25519)|dropbear_.*_key|shadow-", listed)
    for path in (image / INITRAMFS, image / "image.json"):
        content = path.read_bytes()
        assert b"PRIVATE KEY" not in content and b"ssh-ed25519" not in content and b"authorized_keys" not in content


def test_the_store_has_no_key_of_any_build_and_nothing_that_others_may_write_to(image: Artefact) -> None:
    store = open_store()
    assert image.directory.is_dir()
    for path in store.root.rglob("*"):
        if ".partial" in str(path) or path.is_symlink():
            continue  # somebody else's build goes on
        assert path.name not in ("key", "key.pub", "authorized_keys"), path
        assert not path.lstat().st_mode & 0o022, path


def sockets(pid: int) -> set[str]:
    """The internet sockets that a process has open: its protocol, its own address and port, each in hexadecimal."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(str(descriptor.readlink()))
        except FileNotFoundError:
            continue
    found = set()
    for name in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6"):
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
            words = line.split()
            if f"socket:[{words[9]}]" in inodes:
                found.add(f"{name} {words[1]}")
    return found


def emulators(place: str) -> Iterator[int]:
    """The QEMUs whose command line names that directory."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes()
        except OSError:
            continue
        if command.split(b"\0")[0].endswith(b"qemu-system-x86_64") and place.encode() in command:
            yield int(path.parent.name)


def test_nothing_listens_while_a_cell_runs_and_others_cannot_write_to_what_it_leaves(tmp_path: Path) -> None:
    long = step("long", "i=0; while [ $i -lt 1000 ]; do i=$((i + 1)); cat /dev/null; done")
    path = scenario(tmp_path, long, mib=8)
    before = runs(path)
    child = subprocess.Popen(["sh", "-c", 'umask 0; exec "$0" run "$1"', PROGRAM, str(path)], stdout=subprocess.DEVNULL)
    seen, looked, command = set[str](), 0, b""
    while child.poll() is None:
        for directory in runs(path) - before:
            for pid in emulators(str(directory)):
                try:
                    seen |= sockets(pid)
                    command = Path(f"/proc/{pid}/cmdline").read_bytes()
                    looked += 1
                except OSError:
                    continue
        time.sleep(0.2)
    assert child.returncode == 0
    assert looked > 3 and seen == set()
    words = command.split(b"\0")
    assert not [word for word in words if word.startswith((b"-net", b"-nic", b"-vnc", b"-spice", b"-redir"))]
    for left in newest(path).rglob("*"):
        assert not left.lstat().st_mode & 0o022, left


def test_of_files_that_are_closed_to_others_nothing_is_made_that_is_open(tmp_path: Path) -> None:
    store, closed = open_store(), tmp_path / "closed"
    (closed / "deep").mkdir(parents=True)
    (closed / "deep/secret").write_bytes(tmp_path.name.encode() * (1 << 20))
    (closed / "deep/secret").chmod(0o600)
    path = scenario(tmp_path, step("copy", 'cp -r "$SOURCE/." .'))
    [cell] = run(str(path), "--corpus", str(closed), "--keep-disk")
    corpora = [one.directory for one in store.all("corpus") if "user's directory" in (one / "about.json").read_text()]
    capsule = tmp_path / "made.capsule"
    assert agelab("capsule", "pack", newest(path).name, "-o", str(capsule)).returncode == 0
    for made in (newest(path), corpora[-1], store.root / "disk" / cell["disk"], capsule):
        assert not made.stat().st_mode & 0o007, made
    assert agelab("disk", "rm", cell["disk"]).returncode == 0


@pytest.mark.full
def test_while_packer_builds_only_this_host_reaches_the_guest(tmp_path: Path) -> None:
    """An image is built anew from the parts of the store, for a proof of one filesystem."""
    store, home = open_store(), tmp_path / "home"
    (home / "store").mkdir(parents=True)
    for kind in ("kernel", "root", "buildroot", "tools"):
        process.run(["cp", "-a", "--reflink=auto", str(store.root / kind), str(home / "store")])
    (home / "cache").symlink_to(store.home / "cache")
    path = scenario(tmp_path, step("none", "true"))
    environment = {**os.environ, "AGELAB_HOME": str(home)}
    child = subprocess.Popen([PROGRAM, "run", str(path)], env=environment, stdout=subprocess.DEVNULL)
    seen, networks = set[str](), set[str]()
    while child.poll() is None:
        for pid in emulators(str(home / "store" / "image")):
            try:
                if found := sockets(pid):  # Packer's guest, and not the cell's
                    seen |= found
                    networks.add(str(Path(f"/proc/{pid}/ns/net").readlink()))
            except OSError:
                continue
        time.sleep(0.1)
    assert child.returncode == 0
    assert networks and str(Path("/proc/self/ns/net").readlink()) not in networks
    assert seen and {address.split()[1].partition(":")[0] for address in seen} <= {"0100007F"}, seen
    assert not [path for path in (home / "store").rglob("*") if path.name in ("key", "key.pub")]
