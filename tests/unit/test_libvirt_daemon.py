"""A daemon that has other mounts than agelab is named before a guest is started."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agelab import process
from agelab.vm import libvirt_daemon
from tests.capabilities import needs_root

pytestmark = needs_root

# In namespaces of its own: a daemon is a program of that name, and what it sees is tried from beside it.
SCRIPT = """
import signal, subprocess, sys, time
from pathlib import Path
from agelab import process
from agelab.vm import libvirt_daemon
from agelab.errors import HostError
from agelab.vm import libvirt_daemon

home, early, daemon = Path("store").absolute(), Path("early").absolute(), str(Path("libvirtd").absolute())
home.mkdir()
early.mkdir()
subprocess.run(["mount", "-t", "tmpfs", "none", str(early)], check=True)
apart = sys.argv[1:]
with subprocess.Popen([*apart, daemon, "60"]) as child:
    while Path(f"/proc/{child.pid}/comm").read_text() != "libvirtd\\n":
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


def test_a_daemon_as_agelab_starts_it_sees_later_mounts_and_lets_go_of_them(tmp_path: Path) -> None:
    assert tried(tmp_path, "shared", *process.MOUNTS_APART) == ["seen", "free"]


@pytest.mark.parametrize(
    ("propagation", "apart"),
    [("private", process.MOUNTS_APART), ("shared", PRIVATE)],
    ids=["private", "sealed off"],
)
def test_a_daemon_that_sees_other_mounts_is_named_with_what_to_do(
    tmp_path: Path, propagation: str, apart: tuple[str, ...]
) -> None:
    said, held = tried(tmp_path, propagation, *apart)
    assert held == "held", "nothing can reach such a daemon"
    assert said == (
        f"libvirt's daemon (process PID) does not see {tmp_path}/store: that was mounted after the daemon had started; "
        "restart it (its guests go on): systemctl restart libvirtd"
    )


def test_a_daemon_beside_agelab_sees_what_it_sees(tmp_path: Path) -> None:
    assert tried(tmp_path, "private") == ["seen", "free"]


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
