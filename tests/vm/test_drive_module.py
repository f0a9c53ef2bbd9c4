"""The drive's real module: built for real kernels, the same bytes each time, and loaded by them."""

import shutil
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
from agelab.store.artefacts import Store, file_hash

pytestmark = pytest.mark.vm
OTHERS = ("debian:bullseye", "debian:trixie", "debian:sid")


@pytest.mark.parametrize(
    "spec", [kernel.DEFAULT, *(pytest.param(spec, marks=pytest.mark.full) for spec in OTHERS)]
)
def test_a_kernel_loads_the_module_built_for_it(tmp_path: Path, spec: str) -> None:
    store = open_store()
    found = kernel.resolve(spec, store)
    built = module.obtain(found, store)  # a warning of the compiler is an error
    sealed = image.build(found, store, root.served(root.definition(), ()))
    start = b"#!/bin/sh\ngrep -o '^agedrive .*Live' /proc/modules\necho o > /proc/sysrq-trigger\nsleep 60\n"
    extra = {"agedrive": built.read_bytes()}
    archive = initramfs.cell(found.modules, [], {}, {"start": start}, extra)
    (tmp_path / "initramfs").write_bytes(sealed.initramfs.read_bytes() + archive)
    size = sealed.root.stat().st_size
    backend = f"memory-backend-file,id=root,share=off,mem-path={sealed.root},size={size}"
    argv = [
        *(
            str(qemu.obtain(open_store()).program),
            "-machine",
            "q35,nvdimm=on",
            "-accel",
            "tcg",
            "-m",
            "512,slots=2,maxmem=4G",
        ),
        *("-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{tmp_path}/console"),
        *("-object", backend, "-device", "nvdimm,memdev=root"),
        *("-kernel", str(sealed.boot_image), "-initrd", str(tmp_path / "initramfs"), "-append", CMDLINE),
    ]
    process.run(argv, timeout=120)
    assert "agedrive " in (tmp_path / "console").read_text(errors="replace")


def test_a_second_call_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store()
    found = kernel.resolve(kernel.DEFAULT, store)
    built = module.obtain(found, store)
    monkeypatch.setattr(process, "run", None)
    assert module.obtain(found, store) == built


@pytest.mark.full
def test_the_same_packages_give_the_same_bytes_in_another_home(tmp_path: Path) -> None:
    store = open_store()
    first = module.obtain(kernel.resolve(kernel.DEFAULT, store), store)
    other = Store(tmp_path / "another" / "home")
    for cache in ("apt", "debs", "resolved"):
        shutil.copytree(store.home / "cache" / cache, other.home / "cache" / cache)
    second = module.obtain(kernel.resolve(kernel.DEFAULT, other), other)
    assert second.parent.name == first.parent.name
    assert file_hash(second) == file_hash(first)
