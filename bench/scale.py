"""What a run costs whoever puts it together: cells planned, brought by others, and reused.

python -m bench.scale [DIRECTORY]

The results of the cells are made up: each has the samples and maps of one real cell, a run of aging-reiserfs in the
store (AGELAB_HOME), whose kernel, image and corpora are used. No guest runs, but where the store has no image of this
code: it is made first. Times are of the processor, of all processes.
"""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from agelab.base import atomic
from agelab.base.errors import AgelabError, InputError
from agelab.base.plain_path import temp_parent
from agelab.results import run_lookup
from agelab.results.key_and_digest import digest
from agelab.results.result import CellOrigin, Sample
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute import runner
from agelab.runner.request.options import RunOptions
from agelab.runner.reuse import cache, ended_cells
from agelab.runner.reuse.ended_cells import CellKey, EndedCell
from agelab.scenario.seeds import CellName
from agelab.store.artefacts import Store
from agelab.store.home import open_store

PATTERN = "aging-reiserfs"
PLANNED = 10_000
OPTIONS = RunOptions(name="aging", seeds=(1, 2, 3, 4, 5))
RUN = ("run", "aging", "--seeds", "1,2,3,4,5")


class MadeUp:
    """Hosts that answer with the samples and maps of one real cell, packed and unpacked as on the way."""

    def __init__(self, real: RunDirectory) -> None:
        self._real = real
        self._samples: Sequence[Sample] = tuple(real.samples()[0])
        self.sent = 0

    def slots(self, memory: int) -> int:
        return 1

    def stop(self) -> None:
        pass

    def run(self, cell: CellName, key: CellKey, directory: Path, memory: int) -> EndedCell:
        end = self._real.end(0)
        assert end, "it ended"
        inputs = RunDirectory(directory.parents[1]).recorded_inputs(int(directory.name))
        now: dict[str, object] = {
            "inputs_key": key.inputs_key,
            "evaluated_by": key.evaluated_by,
            "digest": digest(end.status, self._samples, end.maps),
            "pictures": {},
            "reused": None,
        }
        made = EndedCell(
            inputs=inputs,
            end=end.model_copy(update=now),
            samples=self._samples,
            origin=CellOrigin(run=self._real.name, host="made up", ended=end.ended or ""),
        )
        sent = ended_cells.pack(made, self._real.cell_directory(0))
        self.sent += len(sent)
        return ended_cells.unpack(sent, key, directory)


def main(words: list[str]) -> int:
    """Measure, and print a line for each."""
    os.environ.pop(cache.CACHE, None)  # what is made up here is for no cache
    store = open_store()
    real = _real_cell(store)
    with atomic.temp_dir(Path(words[0]) if words else temp_parent()) as place:
        home = place / "home"
        home.mkdir()
        for part in ("store", "cache"):  # what the cells need is there; the runs are of this bench alone
            (home / part).symlink_to(store.home / part)
        took, memory = _ran(home, "plan", "aging-ext4", "--seeds", _first(PLANNED), "--slurm", str(place / "array"))
        size = (place / "array/plan.json").stat().st_size
        print(f"{PLANNED} cells planned: {took:.1f} s, {memory / 1e6:.0f} MB of memory, {size / 1e6:.1f} MB written")
        for _ in range(2):  # before the second time all is there that is made once
            brought, began = MadeUp(real), _processor()
            with runner.asked(OPTIONS.changed(fresh=True)) as request:
                run = runner.run_request(request, Store(home), elsewhere=brought)
        cells = len(run.plan().cells)
        each = (_processor() - began) / cells
        print(f"{cells} cells brought by others: {each:.3f} s each, {brought.sent / cells / 1e6:.2f} MB sent")
        size = sum(path.stat().st_size for path in run.path.rglob("*") if path.is_file())
        print(f"their run directory: {size / cells / 1e6:.2f} MB each")
        began = time.monotonic()
        took, memory = _ran(home, *RUN)
        seconds = time.monotonic() - began
        print(f"{cells} cells reused: {took:.1f} s of processor, {seconds:.1f} s, {memory / 1e6:.0f} MB of memory")
    return 0


def _real_cell(store: Store) -> RunDirectory:
    for run in run_lookup.all_runs(store.runs)[::-1]:
        end = run.end(0) if run.plan().scenario == "aging" and not run.unfinished() else None
        if end and end.digest and end.maps and run.plan().cells[0].variant == "reiserfs":
            return run
    raise InputError(f"the store has no run of {PATTERN}", hint=f"make one: agelab run {PATTERN}")


def _first(count: int) -> str:
    return ",".join(map(str, range(1, count + 1)))


def _processor() -> float:
    """Return the seconds of processor time of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _ran(home: Path, *words: str) -> tuple[float, int]:
    """Run agelab; return its seconds of processor time, and its memory. Raises AgelabError where it fails."""
    program = Path(sys.executable).with_name("agelab")
    child = subprocess.Popen(
        [str(program), *words],
        env={
            **{name: value for name, value in os.environ.items() if name != "AGELAB_FRESH"},
            "AGELAB_HOME": str(home),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):  # 1 where a filesystem is not supported
        raise AgelabError(f"agelab {' '.join(words)[:60]} exits with {child.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
