"""The boot that maps a cell's disks, and the reader of its maps."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from agelab.evaluate.maps import DIRECTORY, MapReader
from agelab.machine.vm.guest import MemoryDisk
from agelab.runner.execute.forks import Forks
from agelab.runner.plan.boot import Boot
from agelab.runner.plan.cell_spec import MIB, PROCESSOR_MIB, CellSpec
from agelab.runner.plan.guest_plan import MAP_MEMORY_MIB, RESULTS_MIB, map_plan
from agelab.runner.plan.phases import DAYS
from agelab.scenario.step import MAP


def mapping_boot(spec: CellSpec, forks: Forks, names: Sequence[str], results: Path) -> Boot:
    """Return the boot that maps these forks; its last disk is the file ``results``."""
    attached = [] if spec.disk.real else [disk for name in names for disk in forks.attached(name)]
    return Boot(
        name=f"{MAP}-",
        number=0,
        day=3 * DAYS,
        plan=map_plan(spec, names),
        memory_mib=MAP_MEMORY_MIB + PROCESSOR_MIB * (spec.vcpus - 1),
        disks=(*attached, MemoryDisk(results, RESULTS_MIB * MIB, written=True)),
        phase=MAP,
    )


def remove(directory: Path) -> None:
    """Remove the maps from a cell's directory."""
    shutil.rmtree(directory / DIRECTORY, ignore_errors=True)


def reader(spec: CellSpec) -> MapReader:
    """Return the reader of a cell's maps."""
    return MapReader(spec.filesystem, spec.scenario.measures, bool(spec.disk.layout.make))
