"""A guest in the wall clock with real disks: it finds them by serial, writes to them, and sees one go away."""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from agelab import kernel as kernels
from agelab.base import process
from agelab.cli.options import open_store
from agelab.kernel import initramfs
from agelab.machine import image as images
from agelab.machine import qemu
from agelab.machine.disk import claim_drives, parse
from agelab.machine.image import root as roots
from agelab.machine.vm import domain
from agelab.machine.vm.guest import REAL_SERIAL, GuestSpec, MemoryDisk, RealDisk
from agelab.machine.vm.guest_output import GuestOutput
from agelab.machine.vm.hypervisor import connected
from agelab.results.result import Ending
from agelab.scenario import selection
from tests.capabilities import needs_root

pytestmark = [pytest.mark.vm, needs_root]
MIB = 1 << 20
SIZE = 64 * MIB
PATIENCE = 240.0
START = b"""#!/bin/sh
exec > /dev/ttyS1 2>&1
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
for disk in /sys/block/vd*; do read -r serial < $disk/serial; read -r size < $disk/size; echo "$serial $size"; done
nproc
put() { dd if=/dev/zero of=/dev/vda bs=64k count=1 seek=$1 oflag=direct 2> /run/said; }
echo written in the guest | dd of=/dev/vda bs=4k conv=sync,fsync 2> /run/said && echo wrote
echo written in the guest | dd of=/dev/vdb bs=4k conv=sync,fsync 2> /run/said && echo wrote
number=16
while put $number; do echo well; sleep 0.2; number=$((number + 1)); done
cat /run/said
echo o > /proc/sysrq-trigger
sleep 100
"""


def test_a_guest_has_its_real_disks_and_sees_an_error_when_one_goes(tmp_path: Path) -> None:
    store = open_store()
    kernel = kernels.resolve(kernels.DEFAULT, store)
    image = images.build(kernel, store, roots.served(roots.definition(), ()))
    archive = initramfs.cell(kernel.modules, ["virtio_pci", "virtio_blk"], {}, {"start": START})
    (tmp_path / "initramfs").write_bytes(image.initramfs.read_bytes() + archive)
    pulled, kept = tmp_path / "pulled.img", tmp_path / "kept.img"
    for path in (pulled, kept):
        path.write_bytes(bytes(SIZE))
    said: list[str] = []
    with ExitStack() as stack:
        loop = process.run(["losetup", "--find", "--show", str(pulled)]).stdout.strip()
        stack.callback(process.run, ["losetup", "--detach", loop])
        specs = [parse(f"block:{loop}"), parse(f"file:{kept}?aio=threads")]
        claims = stack.enter_context(claim_drives(specs))
        hypervisor = stack.enter_context(connected())
        guest = GuestSpec(
            name=f"agelab-real-disks-{os.getpid()}",
            emulator=qemu.obtain(store).program,
            machine=selection.machine("pentium4-2800"),
            memory_mib=256,
            kernel=image.boot_image,
            initramfs=tmp_path / "initramfs",
            disks=(MemoryDisk(image.root, image.root.stat().st_size, written=False),),
            console=tmp_path / "console",
            events=tmp_path / "events",
            clock="wall",
            vcpus=2,
            real_disks=tuple(
                RealDisk(
                    claim.source,
                    "block" if claim.spec.kind == "block" else "file",
                    REAL_SERIAL.format(number),
                    claim.spec.cache,
                    claim.spec.aio,
                )
                for number, claim in enumerate(claims)
            ),
        )
        for file in (guest.console, guest.events):
            file.touch()

        def hear(line: str) -> None:
            said.append(line.strip())
            if said.count("well") == 2 and pulled.stat().st_size:
                assert pulled.read_bytes()[:20] == b"written in the guest"
                os.truncate(pulled, 0)
                process.run(["losetup", "--set-capacity", loop])

        xml = domain.domain_xml(guest, hypervisor.security_models)
        ending = hypervisor.run(guest.name, xml, GuestOutput(guest.events, guest.console), hear, PATIENCE)
        assert ending is Ending.STOPPED, said
        assert said[:5] == [
            f"agelab-disk0 {SIZE // 512}", f"agelab-disk1 {SIZE // 512}", "2", "wrote", "wrote",
        ]  # fmt: skip
        assert any("Input/output error" in line for line in said[5:])
        assert claims[0].problem() is not None
        assert claims[1].problem() is None
    assert kept.read_bytes()[:20] == b"written in the guest"
