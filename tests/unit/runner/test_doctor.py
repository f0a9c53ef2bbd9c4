"""``agelab doctor`` reads the output of programs and the state of the host."""

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agelab.base import process
from agelab.base.errors import HostError
from agelab.debian import Package, cached_resolution, snapshot
from agelab.debian.buildroot import BuildRoot
from agelab.machine import qemu
from agelab.machine.qemu import emulator
from agelab.machine.vm import host
from agelab.runner.doctor import Finding, HostReport, ProbeStatus, probes
from agelab.runner.doctor.probes import kvm as finding
from agelab.runner.doctor.probes import memory, passthrough, space
from agelab.store.artefacts import Store
from tests.build.cli import Cli

# The serial console of Debian's 6.1 kernel without a root, shortened; and of one that hung under KVM.
BOOTED = """\
[    0.000000] Linux version 6.1.0-56-amd64 (debian-kernel@lists.debian.org) (gcc-12 12.2.0)
[    0.000000] Command line: console=ttyS0 earlyprintk=serial,ttyS0,115200 panic=-1
[    1.486832] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)
"""
HUNG = "Probing EDD (edd=off to disable)... ok\n"


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright (c) 2003-2022\n", "7.2.22"),
        ("libvirtd (libvirt) 9.0.0\n", "9.0.0"),
        ("4.1.0\n", "4.1.0"),
        ("Packer v1.6.6\n", "1.6.6"),
        ("mmdebstrap 1.3.5\n", "1.3.5"),
        ("sqfstar version 4.5.1 (2022/03/17)\n", "4.5.1"),
        ("xorriso 1.5.4 : RockRidge filesystem manipulator, libburnia project.\n", "1.5.4"),
        ("apt 2.6.1 (amd64)\n", "2.6.1"),
        ("Debian 'dpkg-deb' package archive backend version 1.21.22 (amd64).\n", "1.21.22"),
        ("unreleased build\nmore", "unreleased build"),
    ],
)
def test_versions_as_programs_print_them(output: str, version: str) -> None:
    assert probes.version_in(output) == version


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(process, "SEARCH_PATH", str(tmp_path))
    found = probes.probe(probes.TOOLS[0])
    assert (found.status, found.required) == (ProbeStatus.MISSING, True)
    assert found.fix == "install the Debian package virtinst"
    assert probes.libvirt().fix == "install the Debian package libvirt-daemon"
    assert "libvirt-clients" in probes.other_packages().fix
    report = HostReport(findings=(found,))
    assert not report.virtual_clock


def test_without_apt_one_advice_stands_for_all_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with_apt = [*map(probes.probe, probes.TOOLS), probes.other_packages()]
    assert list(probes.one_advice(with_apt)) == with_apt
    monkeypatch.setattr(process, "SEARCH_PATH", str(tmp_path))
    absent = [*map(probes.probe, probes.TOOLS), probes.libvirt(), probes.other_packages()]
    absent.append(probes.confinement(Store(tmp_path / "home")))
    advised = probes.one_advice(absent)
    assert [found.fix for found in advised if found.fix] == [probes.WITHOUT_APT]
    assert [found.status for found in advised] == [found.status for found in absent]


@pytest.mark.parametrize(
    ("suites", "status", "fix"),
    [
        (["bookworm", "bookworm-updates", "bookworm-security"], ProbeStatus.OK, ""),
        (["bookworm", "bookworm-updates"], ProbeStatus.LIMITED, "add the suite bookworm-security to"),
        (["trixie"], ProbeStatus.MISSING, "sources.list"),
    ],
)
def test_apts_sources_are_told_with_what_they_lack(
    suites: list[str], status: ProbeStatus, fix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = "".join(f"'http://m.test/dists/{suite}/InRelease' m 0\n" for suite in suites)
    monkeypatch.setattr(process, "run", lambda *_: process.Completed(0, printed, ""))
    for module in ("agelab.debian.snapshot", "agelab.debian.archive"):
        monkeypatch.setattr(f"{module}.host_suite", lambda: "bookworm")
    found = probes.sources(Store(tmp_path))
    assert (found.status, found.required) == (status, False) and fix in found.fix and bool(fix) == bool(found.fix)


def test_a_program_that_does_not_start_counts_as_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "xorriso"
    broken.write_text("#!/bin/sh\necho 'cannot load libfoo' >&2\nexit 127\n")
    broken.chmod(0o755)
    monkeypatch.setattr(process, "SEARCH_PATH", f"{tmp_path}:/usr/bin:/bin")
    found = probes.probe(next(tool for tool in probes.TOOLS if tool.name == "xorriso"))
    assert found.status is ProbeStatus.MISSING
    assert "cannot load libfoo" in found.found
    assert "does not start" in found.meaning


def with_qemu(home: Path, script: str) -> Store:
    """Return a store whose QEMU is a script."""
    store = Store(home)
    store.obtain(
        emulator.KIND,
        {"sources": emulator.sources()},
        lambda directory: with_qemu_files(directory, script, "7.2.22 (Debian 1:7.2)"),
    )
    return store


def with_qemu_files(directory: Path, script: str, version: str) -> None:
    (directory / emulator.START).write_text(f"#!/bin/sh\n{script}\n")
    (directory / emulator.START).chmod(0o755)
    (directory / emulator.VERSION).write_text(f"QEMU emulator version {version}")


def test_the_qemu_of_the_store_is_tried_with_a_machine_of_the_virtual_clock(tmp_path: Path) -> None:
    found = probes.emulator(with_qemu(tmp_path / "well", "true"))
    assert (found.status, found.required) == (ProbeStatus.OK, True)
    assert found.found == "7.2.22 (Debian 1:7.2)"
    found = probes.emulator(with_qemu(tmp_path / "ill", "echo \"Property 'nvdimm' not found\" >&2; exit 1"))
    assert found.status is ProbeStatus.MISSING and "nvdimm' not found" in found.found


def test_the_qemu_that_is_told_is_the_one_that_a_run_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "store")

    def chosen(version: str) -> BuildRoot:
        package = Package(name="qemu", version=version, filename="qemu.deb", size=1, sha256="0" * 64)
        return BuildRoot(suite=qemu.SUITE, packages=(package,))

    def made(version: str) -> None:
        packages = [["qemu", version, "0" * 64]]
        store.obtain(
            emulator.KIND,
            {"sources": emulator.sources(), "packages": packages},
            lambda directory: with_qemu_files(directory, "true", version),
        )

    def told() -> str:
        return probes.emulator(store).found

    made("1")
    cached_resolution(store, qemu.question(), BuildRoot, lambda: chosen("1"))
    time.sleep(0.01)
    made("2")
    assert told() == "1"  # what is newer in the store is not taken
    (tmp_path / "mirror/debian/dists/bookworm").mkdir(parents=True)
    (tmp_path / "mirror/debian/dists/bookworm/Release").touch()
    monkeypatch.setenv(snapshot.VARIABLE, str(tmp_path / "mirror"))
    assert told().startswith("none in the store yet")
    cached_resolution(store, qemu.question(), BuildRoot, lambda: chosen("2"))
    assert told() == "2"


def test_before_the_first_run_no_qemu_is_in_the_store(tmp_path: Path) -> None:
    found = probes.emulator(Store(tmp_path))
    assert found.status is ProbeStatus.UNKNOWN and HostReport(findings=(found,)).virtual_clock
    assert found.found == "none in the store yet: a run takes it from the packages of Debian bookworm"


def test_a_host_that_cannot_run_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    found = probes.emulator(Store(tmp_path))
    assert found.status is ProbeStatus.MISSING and found.found.startswith("this host is aarch64")


@pytest.mark.parametrize(
    ("console", "boots", "detail"),
    [
        (BOOTED, True, "booted Linux 6.1.0-56-amd64"),
        (BOOTED.replace("VFS: Unable", "Run /init as init process, unable"), True, "booted Linux 6.1.0-56-amd64"),
        (HUNG, False, "a guest came no further than 'Probing EDD (edd=off to disable)... ok'"),
        (BOOTED.partition("[    1.48")[0], False, "a guest came no further than "),
        ("Unable to mount root fs", False, "a guest came no further than "),
        ("", False, "a guest said nothing"),
    ],
)
def test_kvm_is_judged_by_how_far_a_kernel_came(console: str, boots: bool, detail: str) -> None:
    verdict = host.judge_console(console)
    assert verdict.boots is boots
    assert verdict.detail.startswith(detail)


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(host, "SOFTWARE", tmp_path / "no-kvm_pvm")
    stand_in = tmp_path / "kvm"
    stand_in.touch()
    return stand_in


def with_kernel(home: Path) -> Store:
    store = Store(home)

    def build(directory: Path) -> None:
        (directory / "vmlinuz").touch()

    store.obtain("kernel", {"release": "6.1"}, build)
    return store


def test_kvm_without_a_device_or_a_kernel_says_so(tmp_path: Path, store: Store, device: Path) -> None:
    assert finding(store, tmp_path / "none").status is ProbeStatus.MISSING
    found = finding(store, device)
    assert found.status is ProbeStatus.UNKNOWN
    assert found.found == "not proven: no kernel in the store yet"
    assert "agelab image build" in found.fix


@pytest.mark.parametrize("boots", [True, False])
def test_that_kvm_boots_is_remembered_and_that_it_does_not_is_tried_again(
    boots: bool, tmp_path: Path, device: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = with_kernel(tmp_path / "home")
    assert finding(store, device).found == "not proven: no QEMU in the store yet"
    with_qemu(tmp_path / "home", "true")
    calls: list[Path] = []

    def boot(program: Path, kernel: Path) -> host.KvmProbe:
        calls.append(kernel)
        return host.KvmProbe(boots=boots, detail="what was seen")

    monkeypatch.setattr(host, "try_boot", boot)
    first, second = finding(store, device), finding(store, device)
    assert first == second
    assert len(calls) == (1 if boots else 2)
    assert calls[0].name == "vmlinuz"
    assert first.status is (ProbeStatus.OK if boots else ProbeStatus.LIMITED)
    assert "what was seen" in first.found
    calls.clear()
    for remembered in store.cache("doctor").iterdir():
        remembered.write_text("{")
    assert finding(store, device) == first
    assert len(calls) == 1
    assert finding(store, device, again=True) == first
    assert len(calls) == 2


def test_a_damaged_store_leaves_kvm_unproven(tmp_path: Path, device: Path) -> None:
    store = with_kernel(tmp_path / "home")
    (store.all("kernel")[0] / "manifest.json").write_text("{")
    found = finding(store, device)
    assert found.status is ProbeStatus.UNKNOWN
    assert "no kernel in the store" in found.found  # one that is damaged is none: it is made again when it is wanted


def test_what_the_processor_is_called() -> None:
    assert host.cpu_model("processor\t: 0\nmodel name\t: AMD EPYC\nflags\t: fpu\n") == "AMD EPYC"
    assert host.cpu_model("") == ""


@pytest.mark.parametrize(
    ("groups", "driver", "status", "fix"),
    [
        (2, "kernel/drivers/vfio/pci/vfio-pci.ko: kernel/drivers/vfio/vfio.ko\n", ProbeStatus.OK, ""),
        (2, "", ProbeStatus.MISSING, "use a kernel with the vfio-pci module"),
        (0, "kernel/drivers/vfio/pci/vfio-pci.ko.xz:\n", ProbeStatus.MISSING, "switch the IOMMU on"),
    ],
)
def test_passthrough_wants_an_iommu_and_the_driver(
    tmp_path: Path, groups: int, driver: str, status: ProbeStatus, fix: str
) -> None:
    for number in range(groups):
        (tmp_path / f"kernel/iommu_groups/{number}").mkdir(parents=True)
    (tmp_path / "modules.dep").write_text(driver)
    found = passthrough(tmp_path, tmp_path)
    assert found.status is status
    assert found.fix.startswith(fix)
    assert not found.required


@pytest.mark.parametrize(("available", "status"), [(24_000_000, ProbeStatus.OK), (1_000_000, ProbeStatus.LIMITED)])
def test_memory(tmp_path: Path, available: int, status: ProbeStatus) -> None:
    (tmp_path / "meminfo").write_text(f"MemTotal:       25000000 kB\nMemFree:  1 kB\nMemAvailable:   {available} kB\n")
    assert memory(tmp_path).status is status


@pytest.mark.parametrize(
    ("free", "status"), [(50 << 30, ProbeStatus.OK), (3 << 30, ProbeStatus.LIMITED), (1 << 30, ProbeStatus.MISSING)]
)
def test_space_is_looked_up_where_the_store_will_be(
    tmp_path: Path, free: int, status: ProbeStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []

    def disk_usage(path: Path) -> object:
        asked.append(path)
        return type("usage", (), {"free": free})

    monkeypatch.setattr("shutil.disk_usage", disk_usage)
    found = space(tmp_path / "not" / "yet")
    assert (found.status, asked) == (status, [tmp_path])
    assert ("AGELAB_HOME" in found.fix) is (status is not ProbeStatus.OK)


def test_only_what_is_required_and_missing_stops_the_virtual_clock() -> None:
    def report(status: ProbeStatus, required: bool) -> HostReport:
        return HostReport(findings=(Finding(name="x", status=status, found="", meaning="", required=required),))

    assert not report(ProbeStatus.MISSING, True).virtual_clock
    assert report(ProbeStatus.MISSING, False).virtual_clock
    assert report(ProbeStatus.LIMITED, True).virtual_clock


def test_doctor_as_json_on_this_host(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from agelab.cli import main; sys.exit(main())", "doctor", "--json"],
        env={**os.environ, "AGELAB_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(done.stdout)
    assert told["schema"] == 1
    names = [found["name"] for found in told["findings"]]
    assert len(names) == len(set(names))
    assert {"QEMU", "libvirt", "virt-install", "mmdebstrap", "KVM", "passthrough"} <= set(names)
    for found in told["findings"]:
        assert set(found) == {"name", "status", "found", "meaning", "fix", "required"}
        assert found["meaning"]
        if found["required"] and found["status"] == "missing":
            assert found["fix"], found
    assert done.returncode == (0 if told["virtual_clock"] else 3)


def test_doctor_prints_what_to_do_where_something_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(process, "SEARCH_PATH", str(tmp_path))
    assert cli.out("doctor", code=3).count("-> no Debian: install") == 1
    (tmp_path / "apt-get").symlink_to("/bin/true")
    out = cli.out("doctor", code=3)
    assert "-> install the Debian package virtinst" in out
    assert out.endswith("The virtual clock cannot run here.\n")


def test_where_nothing_can_be_built_the_images_of_the_store_still_run(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container without privileges, whose store was brought along."""

    def refuse(_: Path) -> None:
        raise HostError("mmdebstrap could not build the guest's root:\nunshare: Operation not permitted")

    monkeypatch.setattr("agelab.machine.image.root.prove_mmdebstrap", refuse)
    found = probes.confinement(store)
    assert (found.status, found.required) == (ProbeStatus.MISSING, True)
    store.obtain("image", {}, lambda _: None)
    found = probes.confinement(store)
    assert (found.status, found.required) == (ProbeStatus.MISSING, False)
    assert "cells with the store's images run without" in found.meaning
