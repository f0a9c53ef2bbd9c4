"""Show a run's progress without a guest, as ``agelab run`` shows it: ``python -m tests.build.live_run HOME [ENDED]``.

Six cells in HOME, two at a time; ENDED of them (or none) have ended before. The last one is unsupported.
"""

import sys
from pathlib import Path

from agelab.present.view.progress import show_progress
from agelab.results.result import End, Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import resolve
from tests.build.aging_runs import make


def main(home: Path, ended: int) -> None:
    """Begin the cells that are left, two at a time, and end them."""
    name = make(home, {"ext4": 1.2, "xfs": 1.4, "reiserfs-journal": 1.3}, seeds=(1, 2), unfinished=6 - ended)
    run = RunDirectory(home / "runs" / name)
    wanted = resolve(RunOptions(name="aging", jobs=2))
    with show_progress() as progress:
        progress.stage("kernel debian:6.1")
        left = run.unfinished()
        progress.begin_runs(wanted, [run], left, jobs=2)
        cells = run.plan().cells
        for pair in zip(left[::2], left[1::2], strict=True):
            for number in pair:
                progress.begin_cell(cells[number], number)
            for step in ("ready", "mkfs 1", "copy 1", "aged/random-read 1"):
                for number in pair:
                    progress.end_step(number, step)
                progress.stage(f"{step} of both")  # whatever is said has the moving lines drawn again
            for number in pair:
                status = Status.UNSUPPORTED if number == 5 else Status.OK
                reason = "this kernel has none" if number == 5 else None
                progress.end_cell(cells[number], number, End(status=status, reason=reason, host_seconds=200 + number))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
