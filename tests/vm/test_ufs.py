"""UFS2 in a guest whose kernel writes it: what Linux leaves there agrees with itself, and is what was written."""

import os
import sys
from pathlib import Path

import pytest

from agelab import kernel
from agelab.base import process
from agelab.cli.options import open_store
from agelab.kernel import initramfs
from agelab.machine import image, qemu
from agelab.machine.image import root, tools
from agelab.machine.image.packer import CMDLINE
from agelab.scenario import selection
from agelab.store.artefacts import Store

pytestmark = [
    pytest.mark.vm,
    pytest.mark.full,  # the kernel is built first
]
MIB = 200
UUID = "6167656c-6162-4000-8000-000000000001"
WORK = Path(__file__).with_name("ufs_work.py")


def built(store: Store) -> image.Image:
    return image.build(kernel.resolve("recipe:ufs", store), store, root.served(root.definition(), ()))


def test_a_kernel_that_writes_it_proves_it() -> None:
    proofs = built(open_store()).proof
    for which in ("period", "today"):
        assert (proofs["ufs", which].status, proofs["ufs", which].reason) == ("ok", None)


@pytest.mark.parametrize("which", ["period", "today"])
def test_what_linux_writes_is_whole(which: str, tmp_path: Path) -> None:
    """A guest makes, grows, cuts, moves and removes files, also with no space left; ``ufs_work.py`` says what."""
    store = open_store()
    sealed = built(store)
    programs = tools.obtain_filesystem_tools(("mkufs", "checkufs"), store)
    disk, console, archive = (tmp_path / name for name in ("disk", "console", "initramfs"))
    disk.touch()
    os.truncate(disk, MIB << 20)
    mkfs = selection.filesystem("ufs").tooling("period" if which == "period" else "today").mkfs
    words = [word.format(uuid=UUID, device=disk) for word in mkfs]
    process.run([str(programs[words[0]]), *words[1:]])
    start = "#!/bin/sh\npython3 /run/agelab/work.py\necho o > /proc/sysrq-trigger\nsleep 60\n"
    own = initramfs.cell(
        sealed.kernel.modules,
        ["ufs"],
        {"work.py": WORK.read_bytes()},
        {"start": start.encode(), **{f"tools/{name}": path.read_bytes() for name, path in programs.items()}},
    )
    archive.write_bytes(sealed.initramfs.read_bytes() + own)
    backend = "memory-backend-file,id={0},share={1},mem-path={2},size={3}"
    process.run(
        [
            *(str(qemu.obtain(open_store()).program), "-machine", "q35,nvdimm=on", "-accel", "tcg"),
            *("-cpu", "Skylake-Client-v1,-erms", "-m", "768,slots=3,maxmem=8G", "-nodefaults"),
            *("-display", "none", "-no-reboot", "-serial", f"file:{console}"),
            *("-object", backend.format("root", "off", sealed.root, sealed.root.stat().st_size)),
            *("-object", backend.format("disk", "on", disk, MIB << 20)),
            *("-device", "nvdimm,memdev=root,id=nv0", "-device", "nvdimm,memdev=disk,id=nv1"),
            *("-kernel", str(sealed.boot_image), "-initrd", str(archive), "-append", CMDLINE),
        ],
        timeout=1200,
    )
    said = console.read_text(errors="replace")
    print(said, file=sys.stderr)
    lines = said.splitlines()
    assert [line for line in lines if line.startswith("wrong: ")] == []
    assert "all is as it was written" in lines
    assert process.run([str(programs["checkufs"]), str(disk)]).stdout.endswith(": clean\n")
