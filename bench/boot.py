"""Measure how long a guest takes to start: agelab's, and virtme-ng's with the same kernel, in turns.

    .venv/bin/python bench/boot.py [--repetitions 3] [--kernel debian:6.1]

Ours is the virtual clock with the sealed image: from asking virt-install for the domain until the harness's
first event is read on the host. virtme-ng's is from the start of its command until its guest's command is
heard. Host seconds, under TCG both; nothing else should run meanwhile, and other guests are waited for.
"""

import hashlib
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agelab import kernel as kernels
from agelab.base.errors import AgelabError
from agelab.base.hashing import canonical_json
from agelab.cli.options import open_store
from agelab.data.corpus import Corpus
from agelab.kernel import initramfs
from agelab.machine import image as images
from agelab.machine import qemu
from agelab.machine.disk import parse
from agelab.machine.image import Image
from agelab.machine.image import root as roots
from agelab.machine.qemu import Emulator
from agelab.machine.vm import domain
from agelab.machine.vm.guest import GuestSpec, MemoryDisk
from agelab.machine.vm.guest_output import GuestOutput
from agelab.machine.vm.hypervisor import Hypervisor, connected
from agelab.runner.execute import disks
from agelab.runner.plan import cell_inputs
from agelab.runner.plan.cell_spec import BASE_MODULES, CellSpec
from agelab.runner.plan.guest_plan import guest_plan
from agelab.runner.plan.phases import phases
from agelab.scenario import selection
from bench import virtme
from bench.common import quietly, spread
from docs.make import command
from docs.make.command import Answer
from docs.make.page import columns

MEMORY_MIB = 768
MACHINE = "pentium4-2800"
PATIENCE = 120.0
WAIT = 900.0
"""Host seconds to wait for a machine without other guests."""


def empty_plan() -> bytes:
    """Return the plan of a cell of ``aging-ext4`` in which nothing is done."""
    [variant] = selection.select("aging-ext4").variants
    spec = CellSpec(
        scenario=selection.select("aging-ext4").scenario,
        variant=variant,
        filesystem=selection.filesystem(variant.filesystem),
        shrink=10,
        defaults="period",
        run_seed=1,
        corpus_seed=1,
        machine=selection.machine(MACHINE),
        drives=(parse("model:none"),),
    )
    no_corpus = Corpus("", Path(), 0, "", 0, 0, "")
    nothing: dict[str, object] = {
        "corpus": None,
        "drives": [],
        "disk": None,
        "swap": None,
        "steps": [],
        "dilation": 1.0,
        "start_at": 0.0,
        "booted_at": None,
    }
    plan = {
        **guest_plan(spec, no_corpus, phases(spec.scenario, no_corpus)[0]),
        **nothing,
        "memory": {"available": None, "sysctl": {}},
    }
    return canonical_json(plan)


@dataclass
class Ours:
    """Our guest, and what its starts took in host seconds."""

    image: Image
    hypervisor: Hypervisor
    directory: Path
    emulator: Emulator
    launched: list[float]
    """From libvirt's start of the domain, without virt-install."""

    def start(self) -> float:
        """Host seconds from asking for the domain until the harness was heard. Raises AgelabError."""
        console, events = self.directory / "console.log", self.directory / "events.jsonl"
        for output in (console, events):
            output.write_bytes(b"")
        guest = GuestSpec(
            name="agelab-bench-" + hashlib.sha256(str(self.directory).encode()).hexdigest()[:12],
            emulator=self.emulator.program,
            machine=selection.machine(MACHINE),
            memory_mib=MEMORY_MIB,
            kernel=self.image.boot_image,
            initramfs=self.directory / "initramfs",
            disks=(
                MemoryDisk(self.image.root, self.image.root.stat().st_size, written=False, constant=True),
                MemoryDisk(self.directory / "plan", disks.PLAN_DISK_BYTES, written=False),
            ),
            console=console,
            events=events,
            preload=(self.emulator.clock,),
        )
        heard: list[float] = []

        def hear(line: str) -> None:
            if '"ready"' in line:
                heard.append(time.monotonic())

        began = time.monotonic()
        xml = domain.domain_xml(guest, self.hypervisor.security_models)
        launched = time.monotonic()
        self.hypervisor.run(guest.name, xml, GuestOutput(events, console), hear, PATIENCE)
        if not heard:
            raise AgelabError(f"our guest was never ready; its console is in {console}")
        self.launched.append(heard[0] - launched)
        return heard[0] - began


def main() -> int:
    """Return the exit code: 1 when ours takes more than half of virtme-ng's time."""
    parser = command.parser(__doc__)
    parser.add_argument("--repetitions", type=command.at_least(3), default=3, metavar="N")
    parser.add_argument("--kernel", default=kernels.DEFAULT)
    return command.run(parser, lambda options: compare(options.repetitions, options.kernel))


def compare(repetitions: int, spec: str) -> Answer:
    """Both in turns, after one start of each that is not counted (it fills the host's page cache)."""
    store = open_store()
    kernel = kernels.resolve(spec, store)
    print(f"preparing: image for {kernel.release}, virtme-ng with two roots", file=sys.stderr)
    image = images.build(kernel, store, roots.served(roots.definition(), ()))
    theirs = virtme.prepare(store, kernel, bare=False, memory_mib=MEMORY_MIB)
    bare = virtme.prepare(store, kernel, bare=True, memory_mib=MEMORY_MIB)
    directory = store.cache("bench-boot")
    own = initramfs.cell(
        kernel.modules, BASE_MODULES, cell_inputs.harness_files(), {"start": cell_inputs.harness_start()}
    )
    (directory / "initramfs").write_bytes(image.initramfs.read_bytes() + own)
    disks.write_plan_disk(directory / "plan", b"", disks.plan_archive(empty_plan(), {}, {}))
    with connected() as hypervisor:
        ours = Ours(image, hypervisor, directory, qemu.obtain(store), [])
        libvirt = hypervisor.version
        starts: dict[str, Callable[[], float]] = {
            "agelab": ours.start,
            "virtme-ng": theirs.start,
            "virtme-ng, bare root": bare.start,
        }
        seconds: dict[str, list[float]] = {name: [] for name in starts}
        for number in range(repetitions + 1):
            for name, start in starts.items():
                took = quietly(start, WAIT)
                print(f"  {name}: {took:.2f} s{'' if number else ' (not counted)'}", file=sys.stderr)
                if number:
                    seconds[name].append(took)
    ours.launched.pop(0)
    median = {name: statistics.median(values) for name, values in seconds.items()}
    rows = [
        ["agelab", "harness ready", spread(seconds["agelab"]), ""],
        ["  of this, without virt-install", "", spread(ours.launched), ""],
    ]
    for name in list(starts)[1:]:
        rows.append([name, "command's output", spread(seconds[name]), f"{median['agelab'] / median[name]:.2f}"])
    load = os.getloadavg()[0]
    text = (
        columns(["guest", "from the start until", "median  range, host s", "ours/theirs"], rows)
        + f"\n\n{repetitions} starts each, in turns; Linux {kernel.release} ({kernel.version}), one virtual CPU under "
        f"TCG, {MEMORY_MIB} MiB;\n{ours.emulator.version}, libvirt {libvirt}, {virtme.version(theirs)};"
        f" host with {os.cpu_count()} CPUs, load {load:.1f} at the end"
    )
    status = 0 if median["agelab"] <= median["virtme-ng"] / 2 else 1
    return Answer({"boot": f"```\n{text}\n```"}, status=status)


if __name__ == "__main__":
    sys.exit(main())
