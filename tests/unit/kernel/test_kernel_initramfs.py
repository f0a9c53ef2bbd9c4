"""The archives that a guest boots from: the format, and that equal content gives equal bytes."""

import subprocess
from pathlib import Path

import pytest

from agelab.kernel import initramfs
from agelab.kernel.elf import ModuleInfo
from agelab.kernel.initramfs import Entry
from agelab.kernel.modules import MissingModule, Modules

ENTRIES = [Entry.program("init", b"#!/bin/sh\n"), Entry("etc/deep/file", b"content"), Entry.directory("proc")]


def test_order_of_entries_does_not_matter_and_archives_are_whole_blocks() -> None:
    assert initramfs.pack(ENTRIES) == initramfs.pack(reversed(ENTRIES))
    assert len(initramfs.pack(ENTRIES)) % 512 == 0


def test_another_program_reads_the_archive(tmp_path: Path) -> None:
    subprocess.run(["cpio", "-idm", "--quiet"], input=initramfs.pack(ENTRIES), cwd=tmp_path, check=True)
    assert (tmp_path / "etc/deep/file").read_bytes() == b"content"
    assert (tmp_path / "proc").is_dir()
    assert (tmp_path / "init").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "init").stat().st_mtime == 0


def modules(directory: Path) -> Modules:
    """A kernel that has every module of the base, and ``ext4`` needing one of them and one more."""
    names = {**dict.fromkeys(initramfs.BASE_MODULES, ()), "jbd2": (), "ext4": ("libnvdimm", "jbd2")}
    for name in names:
        (directory / f"{name}.ko").write_bytes(name.encode())
    infos = (ModuleInfo(name=name, path=f"{name}.ko", depends=needed) for name, needed in names.items())
    return Modules("6.1", directory, tuple(infos), frozenset())


def test_a_cell_inserts_what_the_base_has_not(tmp_path: Path) -> None:
    archive = initramfs.cell(modules(tmp_path), ["ext4"], {"plan.json": b"{}"}, {"start": b"#!"})
    assert b"jbd2.ko\next4.ko\n" in archive
    assert b"agelab/plan.json" in archive
    assert b"modules/cell/libnvdimm.ko" not in archive


def test_a_module_that_is_not_the_kernels_own_comes_after_those_that_are(tmp_path: Path) -> None:
    archive = initramfs.cell(modules(tmp_path), ["ext4"], {}, {}, {"agedrive": b"its image"})
    assert b"ext4.ko\nagedrive.ko\n" in archive
    assert b"modules/cell/agedrive.ko" in archive and b"its image" in archive


def test_a_base_needs_the_modules_of_the_root(tmp_path: Path) -> None:
    kernel = modules(tmp_path)
    assert b"libnvdimm.ko\nnd_btt.ko\n" in initramfs.base(kernel, b"busybox", b"init")
    poor = Modules("6.1", tmp_path, kernel.infos[:2], frozenset())
    with pytest.raises(MissingModule, match="no module nd_pmem"):
        initramfs.base(poor, b"busybox", b"init")
