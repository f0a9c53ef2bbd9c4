"""Real images: what the guest proved, and the same bytes from another home."""

import resource
import sys
from pathlib import Path

import pytest

from agelab import kernel
from agelab.base import process
from agelab.cli.options import open_store
from agelab.kernel import initramfs
from agelab.machine import image, qemu
from agelab.machine.drive import module
from agelab.machine.image import root
from agelab.machine.image.packer import CMDLINE
from agelab.store.artefacts import Store

pytestmark = pytest.mark.vm


def made(store: Store, spec: str = kernel.DEFAULT) -> image.Image:
    """The project's image of a kernel, from the store or built now."""
    return image.build(kernel.resolve(spec, store), store, root.served(root.definition(), ()))


def test_the_guest_proves_every_filesystem_that_its_kernel_has() -> None:
    proofs = made(open_store()).proof
    others = {key: (proof.status, proof.reason) for key, proof in proofs.items() if proof.status != "ok"}
    assert {key: status for key, (status, _) in others.items()} == {
        ("reiser4", "period"): "unsupported",
        ("reiser4", "today"): "unsupported",
        ("ufs", "period"): "unsupported",
        ("ufs", "today"): "unsupported",
    }
    assert "without CONFIG_UFS_FS_WRITE" in str(others["ufs", "period"][1])
    assert "KERNEL=recipe:reiser4" in str(others["reiser4", "today"][1])
    assert len(proofs) == 2 * len(root.served(root.definition(), ()))


def test_a_second_call_is_instant_and_needs_no_network() -> None:
    store = open_store()
    made(store)
    program = (
        "from agelab.machine import image; from agelab import kernel; from agelab.base import process;"
        "from agelab.cli.options import open_store;"
        "from agelab.machine.image import root;"
        "process.run = None;"  # no program at all: neither apt nor packer
        "store = open_store(); found = kernel.resolve(kernel.DEFAULT, store);"
        "image.build(found, store, root.served(root.definition(), ()))"
    )
    before = _processor_seconds()
    env = {"AGELAB_HOME": str(store.home), "PYTHONPATH": str(Path(__file__).parents[2])}
    process.run([sys.executable, "-c", program], env=env)
    assert _processor_seconds() - before < 2


def _processor_seconds() -> float:
    """What ended programs took of the processor: however loaded the host is."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def boot(directory: Path, built: image.Image, archive: bytes, *, root: bool) -> str:
    """The console of a guest that starts with this second archive, with or without its root disk."""
    (directory / "initramfs").write_bytes(built.initramfs.read_bytes() + archive)
    size = built.root.stat().st_size
    backend = f"memory-backend-file,id=root,share=off,mem-path={built.root},size={size}"
    disk = ["-object", backend, "-device", "nvdimm,memdev=root"] if root else []
    argv = [
        *(str(qemu.obtain(open_store()).program), "-machine", "q35,nvdimm=on", "-accel", "tcg"),
        *("-m", "512,slots=2,maxmem=4G"),
        *("-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{directory}/console", *disk),
        *("-kernel", str(built.boot_image), "-initrd", str(directory / "initramfs"), "-append", CMDLINE),
    ]
    process.run(argv, timeout=120)
    return (directory / "console").read_text(errors="replace")


def test_the_guest_runs_what_the_second_archive_holds(tmp_path: Path) -> None:
    built = made(open_store())
    start = b"#!/bin/sh\ncat /run/agelab/word; grep -c ^ext4 /proc/modules\necho o > /proc/sysrq-trigger\nsleep 60\n"
    archive = initramfs.cell(built.kernel.modules, ["ext4"], {"word": b"hello\n"}, {"start": start})
    console = boot(tmp_path, built, archive, root=True)
    assert "hello" in console.split() and "1" in console.split()


@pytest.mark.parametrize(
    "root, said",
    [(True, "cannot find /agelab/start"), pytest.param(False, "cannot mount the root", marks=pytest.mark.full)],
    ids=["no-start", "no-root"],
)
def test_a_guest_that_cannot_start_names_the_step_and_stops(tmp_path: Path, root: bool, said: str) -> None:
    built = made(open_store())
    console = boot(tmp_path, built, initramfs.cell(built.kernel.modules, [], {}), root=root)
    assert f"agelab init: {said}" in console


@pytest.mark.full
@pytest.mark.parametrize("spec", ["debian:bullseye", "debian:trixie", "debian:sid"])
def test_other_kernels_load_the_drives_module_that_was_built_for_them(tmp_path: Path, spec: str) -> None:
    """Every cell shows it of the usual one."""
    store = open_store()
    found = kernel.resolve(spec, store)
    built = module.obtain(found, store)  # a warning of the compiler is an error
    start = b"#!/bin/sh\ngrep -o '^agedrive .*Live' /proc/modules\necho o > /proc/sysrq-trigger\nsleep 60\n"
    archive = initramfs.cell(found.modules, [], {}, {"start": start}, {"agedrive": built.read_bytes()})
    assert "agedrive " in boot(tmp_path, made(store, spec), archive, root=True)
