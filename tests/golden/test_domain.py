"""The domain of a virtual cell: as it was looked at last, valid for libvirt, and nothing asynchronous in it.

``AGELAB_REGENERATE=1 pytest tests/golden`` writes the golden file anew; read the difference before you commit it.
"""

import os
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest

from agelab import process
from agelab.scenario import selection
from agelab.vm import daemon, domain
from agelab.vm.domain import GuestSpec, MemoryDisk
from agelab.vm.hypervisor import Hypervisor, connected

GOLDEN = Path(__file__).with_name("virtual.xml")
NEEDED = ("virt-install", "libvirtd", "virsh", "virt-xml-validate", "qemu-system-x86_64")
MISSING = [program for program in NEEDED if process.find(program) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
SPEC = GuestSpec(
    name="agelab-golden",
    uuid="6167656c-6162-4000-8000-00000000601d",
    seed=1,
    machine=selection.machine("pentium4-2800"),
    memory_mib=256,
    kernel=Path("/agelab/image/vmlinux"),
    initramfs=Path("/agelab/cell/initramfs"),
    boot=1,
    disks=(
        MemoryDisk(Path("/agelab/image/root.squashfs"), 100 << 20, written=False),
        MemoryDisk(Path("/agelab/corpus/corpus.iso"), 42 << 20, written=False),
        MemoryDisk(Path("/agelab/cell/disk"), 640 << 20, written=True),
    ),
    console=Path("/agelab/cell/console-1.log"),
    events=Path("/agelab/cell/events-1.jsonl"),
    preload=Path("/agelab/clock/clock.so"),
)
ASYNCHRONOUS = re.compile(
    r"virtio|-netdev|-nic|rng|balloon|vhost|e1000|rtl8139|usb-|ide-|scsi|-drive|-blockdev"
)


@pytest.fixture(scope="module")
def hypervisor() -> Iterator[Hypervisor]:
    with connected() as found:
        yield found


@pytest.fixture(scope="module")
def written(hypervisor: Hypervisor) -> str:
    return domain.xml(SPEC, daemon.uri(), ["dac"])


def _comparable(text: str) -> str:
    """Without what libvirt makes up (its own UUID) and what is this user's (the label)."""
    text = re.sub(r"\n *<uuid>.*?</uuid>", "", text)
    return re.sub(r"<label>.*?</label>", "<label>+0:+0</label>", text)


def test_it_is_what_it_was(written: str) -> None:
    if os.environ.get("AGELAB_REGENERATE"):
        GOLDEN.write_text(_comparable(written))
    assert _comparable(written) == GOLDEN.read_text()


def test_libvirts_schema_accepts_it(written: str, tmp_path: Path) -> None:
    path = tmp_path / "domain.xml"
    path.write_text(written)
    process.run(["virt-xml-validate", str(path), "domain"])


def test_libvirts_test_driver_defines_and_starts_it(written: str, tmp_path: Path) -> None:
    root = ElementTree.fromstring(written)
    # The test driver knows one domain type and no extra QEMU arguments; all else is as it is.
    root.set("type", "test")
    for element in list(root):
        if element.tag.endswith("}commandline") or element.tag in ("seclabel", "cpu"):
            root.remove(element)
    path = tmp_path / "domain.xml"
    path.write_text(ElementTree.tostring(root, encoding="unicode"))
    process.run(["virsh", "--connect", "test:///default", "create", str(path)])


def test_nothing_asynchronous_or_fed_by_the_host_is_in_it(written: str, hypervisor: Hypervisor) -> None:
    devices = ElementTree.fromstring(written).find("devices")
    assert devices is not None
    assert sorted({(d.tag, d.get("model")) for d in devices if d.tag != "emulator"}) == [
        ("controller", "none"),
        ("memballoon", "none"),
        ("watchdog", "i6300esb"),
    ]
    command = hypervisor.command_line(written)
    assert [word for word in command if ASYNCHRONOUS.search(word)] == []
    words = " ".join(command)
    assert "-serial file:/agelab/cell/console-1.log -serial file:/agelab/cell/events-1.jsonl" in words
    assert "-icount shift=1,sleep=off,align=off,rr=record,rrfile=/dev/null" in words
    assert words.count("-rtc") == 2 and "base=2020-01-02,clock=vm" in words and "driftfix" not in words


def test_the_check_would_see_an_asynchronous_device(hypervisor: Hypervisor, written: str) -> None:
    balloon = written.replace('<memballoon model="none"/>', '<memballoon model="virtio"/>')
    assert balloon != written
    assert any(ASYNCHRONOUS.search(word) for word in hypervisor.command_line(balloon))


def test_a_guest_is_labelled_only_by_what_confines_it_here() -> None:
    assert domain.labels([]) == []
    both = domain.labels(["dac", "apparmor"])
    assert both[:2] == ["--seclabel", "type=none,model=apparmor"]
    assert both[3].startswith("type=static,model=dac,relabel=no,label=+")


def test_the_hosts_security_models_are_known(hypervisor: Hypervisor) -> None:
    assert set(hypervisor.security_models) <= {"dac", "apparmor", "selinux"}
