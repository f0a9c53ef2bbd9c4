"""The domains of both clocks: as they were looked at last, valid for libvirt, nothing asynchronous in the virtual one.

``AGELAB_REGENERATE=1 pytest tests/golden`` writes the golden files anew; read the difference before you commit it.
"""

import os
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agelab.base import orphans, process
from agelab.base.errors import AgelabError, InputError
from agelab.cli.options import open_store
from agelab.machine import qemu
from agelab.machine.vm import domain
from agelab.machine.vm.guest import REAL_SERIAL, GuestSpec, MemoryDisk, RealDisk, SavedMemory
from agelab.machine.vm.hypervisor import Hypervisor, connected
from tests import capabilities
from tests.build.guest_spec import SPEC

HERE = Path(__file__).parent
WALL = replace(SPEC, clock="wall", vcpus=2, preload=(), disks=SPEC.disks[:3])
# virt-install wants to see what it is given: devices that every host has stand in for disks, its host bridge for a
# controller.
REAL = (
    RealDisk("/dev/null", "block", REAL_SERIAL.format(0), "none", "native"),
    RealDisk("/dev/zero", "file", REAL_SERIAL.format(1), "writeback", "threads"),
)
BRIDGE = "0000:00:00.0"
MEMORY = Path("/agelab/saved/memory")
SPECS = {
    "virtual": SPEC,
    "saved": replace(SPEC, saved=SavedMemory(MEMORY, restored=False)),
    "restored": replace(SPEC, saved=SavedMemory(MEMORY, restored=True)),
    "shaken": replace(
        SPEC,
        saved=SavedMemory(MEMORY, restored=True),
        preload=(Path("/agelab/schedule/schedule.so"), *SPEC.preload),
        schedule="7:15000000000",
    ),
    "several": replace(
        SPEC, vcpus=2, preload=(Path("/agelab/schedule/turns.so"), *SPEC.preload), schedule="7:15000000000"
    ),
    "wall": replace(WALL, real_disks=REAL),
    "wall-kvm": replace(WALL, real_disks=REAL[:1], accelerator="kvm"),
    "wall-pci": replace(WALL, passthrough=(BRIDGE,)),
}
ASYNCHRONOUS = re.compile(r"virtio|-netdev|-nic|rng|balloon|vhost|e1000|rtl8139|usb-|ide-|scsi|-drive|-blockdev")


@pytest.fixture(scope="module")
def hypervisor() -> Iterator[Hypervisor]:
    with connected() as found:
        yield found


@pytest.fixture(scope="module")
def texts(hypervisor: Hypervisor) -> dict[str, str]:
    possible = {
        name: spec
        for name, spec in SPECS.items()
        if not spec.passthrough or Path("/sys/bus/pci/devices", BRIDGE).exists()
    }
    return {name: domain.domain_xml(spec, ["dac"]) for name, spec in possible.items()}


@pytest.fixture(scope="module")
def written(texts: dict[str, str]) -> str:
    return texts["virtual"]


@pytest.fixture
def text(texts: dict[str, str], name: str) -> str:
    if name not in texts:
        capabilities.skip("PCI bridge")
    return texts[name]


def _comparable(text: str) -> str:
    """Without what is this user's (the label) and this process's."""
    text = re.sub(rf'\n *<qemu:env name="{orphans.VARIABLE}" value="\d+:\d+"/>', "", text)
    return re.sub(r"<label>.*?</label>", "<label>+0:+0</label>", text)


def _command(hypervisor: Hypervisor, text: str) -> list[str]:
    """What libvirt makes of a domain: it asks its QEMU, so the store's stands in the golden one's place."""
    return hypervisor.command_line(text.replace(str(SPEC.emulator), str(qemu.obtain(open_store()).program)))


@pytest.mark.parametrize("name", SPECS)
def test_it_is_what_it_was(text: str, name: str) -> None:
    golden = HERE / f"{name}.xml"
    if os.environ.get("AGELAB_REGENERATE"):
        golden.write_text(_comparable(text))
    assert _comparable(text) == golden.read_text()


def test_virt_install_is_asked_once_for_guests_that_differ_in_names_and_files_alone(
    texts: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(SPEC, name="agelab-other", console=Path("/agelab/cell/console-2.log"))
    monkeypatch.setattr(process, "run", None)
    renamed = texts["virtual"].replace("agelab-golden", "agelab-other").replace("console-1", "console-2")
    assert domain.domain_xml(other, ["dac"]) == renamed


@pytest.mark.parametrize("name", SPECS)
def test_libvirts_schema_accepts_it(text: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "domain.xml"
    path.write_text(text)
    process.run(["virt-xml-validate", str(path), "domain"])


@pytest.mark.parametrize(
    "change", [{"real_disks": REAL}, {"passthrough": (BRIDGE,)}, {"preload": ()}], ids=lambda change: next(iter(change))
)
def test_the_virtual_clock_refuses_what_has_its_own_time(change: dict[str, Any]) -> None:
    with pytest.raises(AgelabError, match="no real disks"):
        domain.domain_xml(replace(SPEC, **change), ["dac"])


def test_disks_of_three_hundred_gigabytes_have_room_and_what_no_guest_reaches_is_refused() -> None:
    """fedorchuk-2008 has a 300 GB partition beside its 100 GB at paper scale."""

    def with_gib(size: int) -> GuestSpec:
        return replace(SPEC, disks=(*SPEC.disks, MemoryDisk(Path("/dev/null"), size << 30, True)))

    words = [domain.virt_install_command(with_gib(size), ["dac"]) for size in (100, 400)]
    found = [re.findall(r"maxmem=(\d+)G", " ".join(each)) for each in words]
    assert found == [["256"], ["512"]]
    with pytest.raises(InputError, match=r"of 6\d\d GB: a guest can address 550 GB: take a smaller scale"):
        domain.domain_xml(with_gib(600), ["dac"])


def test_a_disk_larger_than_the_hosts_memory_can_be_mapped_though_its_writes_stay_in_memory(tmp_path: Path) -> None:
    """Linux refuses a private mapping of more than it has, unless nothing is to be reserved for it."""
    large = tmp_path / "large"
    large.touch()
    os.truncate(large, 300 << 30)
    kept = replace(SPEC, disks=(*SPEC.disks, MemoryDisk(large, 300 << 30, False)))
    words = " ".join(domain.virt_install_command(kept, ["dac"]))
    assert re.findall(r"share=(\S+?),mem-path", words)[-1] == "off,reserve=off"
    backend = re.findall(r"memory-backend-file\S+", words)[-1]
    machine = ["-machine", "none", "-display", "none", "-nodefaults", "-qmp", "stdio"]
    asked = '{"execute": "qmp_capabilities"}{"execute": "quit"}'
    (tmp_path / "asked").write_text(asked)
    process.run([str(qemu.obtain(open_store()).program), *machine, "-object", backend], stdin=tmp_path / "asked")


def test_a_wall_guest_has_its_disks_and_nothing_of_the_virtual_clock(
    texts: dict[str, str], hypervisor: Hypervisor
) -> None:
    words = " ".join(_command(hypervisor, texts["wall"]))
    assert "icount" not in words and "LD_PRELOAD" not in words and "rr=" not in words
    assert '"driver":"host_device","filename":"/dev/null","aio":"native"' in words
    assert '"driver":"file","filename":"/dev/zero","aio":"threads"' in words
    for device in re.findall(r'\{"driver":"virtio-blk-pci".*?\}', words):
        assert '"werror":"report","rerror":"report"' in device
    assert re.findall(r'"serial":"(.*?)"', words) == ["agelab-disk0", "agelab-disk1"]
    assert "-smp 2" in words and "nvdimm,memdev=disk1-memory" in words


@pytest.mark.parametrize("name", ["wall-pci"])
def test_libvirt_makes_a_command_for_a_guest_that_gets_a_controller(text: str, hypervisor: Hypervisor) -> None:
    assert '"driver":"vfio-pci","host":"0000:00:00.0"' in " ".join(_command(hypervisor, text))


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
    command = _command(hypervisor, written)
    assert [word for word in command if ASYNCHRONOUS.search(word)] == []
    words = " ".join(command)
    assert "-serial file:/agelab/cell/console-1.log -serial file:/agelab/cell/events-1.jsonl" in words
    assert "-icount shift=0,sleep=off,align=off,rr=record,rrfile=/dev/null" in words
    assert words.count("-rtc") == 2 and "base=2020-01-01,clock=vm" in words and "driftfix" not in words


def test_the_check_would_see_an_asynchronous_device(hypervisor: Hypervisor, written: str) -> None:
    balloon = written.replace('<memballoon model="none"/>', '<memballoon model="virtio"/>')
    assert balloon != written
    assert any(ASYNCHRONOUS.search(word) for word in _command(hypervisor, balloon))


def test_a_guest_is_labelled_only_by_what_confines_it_here() -> None:
    assert domain.security_labels([]) == []
    both = domain.security_labels(["dac", "apparmor"])
    assert both[:2] == ["--seclabel", "type=none,model=apparmor"]
    assert both[3].startswith("type=static,model=dac,relabel=no,label=+")


def test_the_hosts_security_models_are_known(hypervisor: Hypervisor) -> None:
    assert set(hypervisor.security_models) <= {"dac", "apparmor", "selinux"}
