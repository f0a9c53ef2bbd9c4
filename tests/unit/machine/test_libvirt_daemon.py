"""A daemon that has other mounts than agelab is named before a guest is started."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agelab.base import process
from agelab.machine.vm import libvirt_daemon
from tests.capabilities import needs_root

pytestmark = needs_root

# In namespaces of its own: a daemon is a program of that name, and what it sees is tried from beside it.
SCRIPT = """
import signal, subprocess, sys, time
from pathlib import Path
from agelab.base import process
from agelab.base.errors import HostError
from agelab.machine.vm import libvirt_daemon

home, early, daemon = Path("store").absolute(), Path("early").absolute(), str(Path("libvirtd").absolute())
home.mkdir()
early.mkdir()
subprocess.run(["mount", "-t", "tmpfs", "none", str(early)], check=True)
apart = sys.argv[1:]
with subprocess.Popen([*apart, daemon, "60"]) as child:
    until = time.monotonic() + 60
    while Path(f"/proc/{child.pid}/comm").read_text() != "libvirtd\\n":
        assert time.monotonic() < until, "it was not started"
        time.sleep(0.01)
    libvirt_daemon.require_seen([home])
    subprocess.run(["mount", "-t", "tmpfs", "none", str(home)], check=True)
    try:
        libvirt_daemon.require_seen([home, home / "none"])
        print("seen")
    except HostError as error:
        print(str(error).replace(f"process {child.pid}", "process PID"), error.hint, sep="; ")
    subprocess.run(["umount", str(early)], check=True)
    print("held" if str(early) in Path(f"/proc/{child.pid}/mountinfo").read_text() else "free")
    child.send_signal(signal.SIGKILL)
"""
# Two hosts, by their directories, that share their processes, each with the real daemon; the first starts the second.
TWO = """
import subprocess, sys
from pathlib import Path
from agelab.base.errors import HostError
from agelab.machine.vm import libvirt_daemon

def state():
    listed = sorted(libvirt_daemon.daemons().items())
    return listed, libvirt_daemon.is_responding()

where, *second = sys.argv[1:]
try:
    with libvirt_daemon.keep_running([Path(where)]):
        first = state()
        assert len(first[0]) == 1 and first[1], first
        if second:
            subprocess.run(second, check=True)
            assert state() == first, (first, state())
            print("the first goes on")
        else:
            print("the second has its own")
    assert libvirt_daemon.daemons() == {}, "it has ended with its last user"
except HostError as error:
    print(error, error.hint)
"""
PLACES = """
places() {
    for place in /run /var/lib/libvirt /var/log/libvirt; do mount -t tmpfs none "$1$place"; done
    mkdir -p "$1/run/lock" "$1/run/store" "$1/var/lib/libvirt/qemu" "$1/var/log/libvirt/qemu"
}
"""
CHROOT = f'{PLACES}mkdir root; mount --rbind / root; places "$PWD/root"; exec chroot root'
OTHER_MOUNTS = f'{PLACES}places ""; exec'
PRIVATE = ("unshare", "--mount", "--")
ALONE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--")


def tried(tmp_path: Path, propagation: str, *apart: str) -> list[str]:
    """What is said of a daemon that runs with these words before it, on a host whose mounts are shared or not."""
    shutil.copy("/usr/bin/sleep", tmp_path / "libvirtd")
    (tmp_path / "script.py").write_text(SCRIPT)
    words = " ".join((sys.executable, "script.py", *apart))
    done = subprocess.run(
        [*ALONE, "sh", "-ec", f"mount --make-r{propagation} /; {words}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("propagation", "apart"),
    [("shared", process.MOUNTS_APART), ("private", ())],
    ids=["as agelab starts it", "beside agelab"],
)
def test_a_daemon_sees_later_mounts_and_lets_go_of_them(
    tmp_path: Path, propagation: str, apart: tuple[str, ...]
) -> None:
    assert tried(tmp_path, propagation, *apart) == ["seen", "free"]


@pytest.mark.parametrize(
    ("propagation", "apart"), [("private", process.MOUNTS_APART), ("shared", PRIVATE)], ids=["private", "sealed off"]
)
def test_a_daemon_that_sees_other_mounts_is_named_with_what_to_do(
    tmp_path: Path, propagation: str, apart: tuple[str, ...]
) -> None:
    said, held = tried(tmp_path, propagation, *apart)
    assert held == "held", "nothing can reach such a daemon"
    assert f"process PID) does not see {tmp_path}/store: " in said
    assert said.endswith("systemctl restart libvirtd")


@pytest.mark.parametrize("enter", [CHROOT, OTHER_MOUNTS], ids=["chroot", "mounts"])
def test_an_agelab_of_another_root_has_a_daemon_of_its_own_and_ends_no_other(tmp_path: Path, enter: str) -> None:
    (tmp_path / "two.py").write_text(TWO)
    python = f"{sys.executable} {tmp_path}/two.py"
    (tmp_path / "second.sh").write_text(f"cd {tmp_path}\n{enter} {python} /run/store\n")
    script = f'{PLACES}places ""; {python} /run/store unshare --mount sh -e {tmp_path}/second.sh'
    done = subprocess.run([*ALONE, "sh", "-ec", script], capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout.splitlines(), done.stderr) == (["the second has its own", "the first goes on"], "")
    assert done.returncode == 0


def test_a_daemon_that_may_not_start_a_stores_qemu_is_told_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = "Failed to start QEMU binary /root/.agelab/store/qemu/k/qemu-system-x86_64: Permission denied"
    enabled = tmp_path / "enabled"
    monkeypatch.setattr(libvirt_daemon, "APPARMOR", enabled)
    assert libvirt_daemon.refusal_hint("no such domain") == "run: agelab doctor"
    assert "AGELAB_HOME=/var/lib/agelab" in libvirt_daemon.refusal_hint(refused)
    enabled.write_text("Y\n")
    rule = "'/**/store/qemu/*/qemu-system-x86_64 PUx,' >>/etc/apparmor.d/local/usr.sbin.libvirtd"
    assert rule in libvirt_daemon.refusal_hint(refused)
