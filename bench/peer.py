"""Beside what people use instead: one job by virtme-ng and by agelab, from the command to its figures on the host.

    .venv/bin/python -m bench.peer [--repeat 3]

The job (bench/peer.toml, SCRIPT): make ext4 on a disk of 512 MiB, copy a tree of 48 MB to it, sync, drop the caches,
read every file, remove the tree. Host seconds from the start of the command until the seconds of all five have been
printed, in turns, after one turn that does not count. Nothing else should run; other guests are waited for.

Alike: Debian's kernel of the same package, one processor under TCG, the same memory, the same ISO image with the tree,
ext4 with today's defaults, warm caches on the host. agelab has the virtual clock, the modelled drive and the sealed
image on; virtme-ng has its virtio disks in the host's page cache, and the clock of the host.

Debian's kernels have virtio, 9p, overlay and ext4 as modules. virtme-ng's own ways serve them: it makes an initramfs
with the modules of 9p and overlay for each start, and the script loads the others with modprobe from the root, which
holds the kernel's. Its disks are its own ``--disk``: virtio-blk. Its root is the small one of bench/virtme.py;
without udev (*bare root*) is the fastest start of virtme-ng that we found.
"""

import argparse
import re
import shutil
import statistics
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agelab import kernel as kernels
from agelab.base import process
from agelab.cli.options import open_store
from agelab.data.corpus import CorpusSpec, make
from agelab.results import run_lookup
from agelab.results.run_directory import LATEST
from agelab.store.artefacts import Store
from bench import virtme
from bench.common import quietly, time_until
from bench.virtme import Virtme
from docs.make import command
from docs.make.command import Answer
from docs.make.page import columns

SCENARIO = Path(__file__).with_name("peer.toml")
AGELAB = Path(sys.executable).with_name("agelab")
STEPS = ("mkfs", "copy", "sync", "read", "remove")
FIGURE = re.compile(rb"^\s*(mkfs|copy|sync|read|remove)\s+(\d+\.\d+)", re.MULTILINE)
"""A step and its seconds: a line of the script, or the first two columns of agelab's table."""
DISK_BYTES, TREE_BYTES = 512 << 20, 48 << 20
SCRIPT = """\
#!/bin/bash
set -e
modprobe -a virtio_blk ext4 isofs
until [ -b /dev/vda ] && [ -b /dev/vdb ]; do sleep 0.05; done  # udev may be loading the driver, too
mkdir /tmp/source /tmp/disk
mount -t iso9660 -o ro /dev/vdb /tmp/source
figure() {
  local name=$1 began=$EPOCHREALTIME
  eval "$2"
  local took=$((${EPOCHREALTIME/./} - ${began/./}))
  printf '%s %d.%06d\\n' "$name" $((took / 1000000)) $((took % 1000000))
}
figure mkfs 'mkfs.ext4 -q -F /dev/vda'
mount /dev/vda /tmp/disk
cd /tmp/disk
figure copy 'cp -r /tmp/source/. tree'
figure sync sync
echo 3 > /proc/sys/vm/drop_caches
figure read 'find tree -type f -print0 | xargs -0 cat > /dev/null'
figure remove 'rm -r tree; sync'
cd /
umount /tmp/disk
"""
PATIENCE = 600.0
"""Host seconds for one job."""
WAIT = 900.0
"""Host seconds to wait for a machine without other guests."""


def figures(output: bytes) -> dict[str, float]:
    """Return the seconds of each step that the output names."""
    return {name.decode(): float(seconds) for name, seconds in FIGURE.findall(output)}


def is_complete(output: bytes) -> bool:
    """Return True where the output has the figures of all steps, the last line whole."""
    return set(figures(output[: output.rfind(b"\n") + 1])) >= set(STEPS)


@dataclass(frozen=True)
class Ours:
    """The job by agelab."""

    store: Store

    def run(self) -> tuple[float, bytes]:
        """Return host seconds until the figures were there, and the output. Raises HostError."""
        env = process.environment({"AGELAB_HOME": str(self.store.home)})
        log = self.store.cache("bench-peer") / "agelab.log"
        return time_until([str(AGELAB), "run", str(SCENARIO), "--fresh"], env, log, is_complete, PATIENCE)

    def memory_mib(self) -> int:
        """Return the memory of the last run's guest."""
        run = run_lookup.find(self.store.runs, LATEST)
        domain = ElementTree.parse(run.cell_directory(0) / "domain-0.xml").getroot()
        return int(domain.findtext("memory", "0")) >> 10


@dataclass(frozen=True)
class Theirs:
    """The job by virtme-ng."""

    virtme: Virtme
    tree: Path
    disk: Path

    def run(self) -> tuple[float, bytes]:
        """Return host seconds until the figures were there, and the output. Raises HostError."""
        script = self.virtme.directory / "root" / "job"
        script.write_text(SCRIPT)
        with self.disk.open("wb") as file:
            file.truncate(DISK_BYTES)
        argv = self.virtme.argv("bash /job", (self.disk, self.tree))
        return self.virtme.time(argv, is_complete)


def compare(repeat: int, store: Store) -> list[list[str]]:
    """Do the job in turns, after one turn that does not count. Returns the table's rows."""
    ours = Ours(store)
    kernel = kernels.resolve(kernels.DEFAULT, store)
    corpus = make(CorpusSpec(kind="debian-iso", bytes=TREE_BYTES, seed=1), store)
    directory = store.cache("bench-peer")
    tree = directory / "tree.iso"  # virtme-ng opens disks for writing
    shutil.copyfile(corpus.image, tree)
    print("preparing: a first run of agelab, virtme-ng with two roots", file=sys.stderr)
    ours.run()
    memory = ours.memory_mib()
    jobs: dict[str, Callable[[], tuple[float, bytes]]] = {"agelab": ours.run}
    for name, bare in (("virtme-ng", False), ("virtme-ng, bare root", True)):
        guest = virtme.prepare(store, kernel, bare=bare, memory_mib=memory)
        jobs[name] = Theirs(guest, tree, directory / "disk.raw").run
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    by_job: dict[str, dict[str, float]] = {}
    for turn in range(repeat + 1):
        for name, job in jobs.items():

            def timed(name: str = name, job: Callable[[], tuple[float, bytes]] = job) -> float:
                took, output = job()
                by_job[name] = figures(output)
                return took

            took = quietly(timed, WAIT)
            print(f"  {name}: {took:.2f} s{'' if turn else ' (not counted)'}", file=sys.stderr)
            if turn:
                seconds[name].append(took)
    base = statistics.median(seconds["agelab"])
    return [
        [
            name,
            f"{statistics.median(some):.2f}",
            f"{min(some):.2f} - {max(some):.2f}",
            f"{base / statistics.median(some):.2f}",
            *(f"{by_job[name][step]:.3f}" for step in STEPS),
        ]
        for name, some in seconds.items()
    ]


def measure(options: argparse.Namespace) -> Answer:
    """Measure both; 1 when agelab takes longer than virtme-ng."""
    rows = compare(options.repeat, open_store())
    heads = ["", "host s", "range", "agelab / it", *(f"{step} s" for step in STEPS)]
    text = (
        f"```\n{columns(heads, rows)}\n\n"
        f"medians of {options.repeat} turns; of the last one the seconds of the steps, by the guest's clock with the\n"
        "modelled drive (agelab), and by the host's\n```"
    )
    return Answer({"peer": text}, status=0 if all(float(ratio) <= 1 for _, _, _, ratio, *_ in rows) else 1)


def main() -> int:
    """Return the exit code."""
    parser = command.parser(__doc__)
    parser.add_argument("--repeat", type=command.at_least(1), default=3, metavar="N", help="turns that count")
    return command.run(parser, measure)


if __name__ == "__main__":
    sys.exit(main())
