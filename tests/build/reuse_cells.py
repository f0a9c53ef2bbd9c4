"""Ended cells without a guest, for the tests of reuse."""

import gzip
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from agelab.results.key_and_digest import inputs_key
from agelab.results.result import Cell, Ending, Sample
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute.answers import CellReuse, Elsewhere
from agelab.runner.execute.cell import CellRunner
from agelab.runner.execute.guests import GuestLauncher
from agelab.runner.execute.phases import CellGoals
from agelab.runner.plan.guest_plan import Boot
from agelab.runner.reuse.ended_cells import CellKey, EndedCell, EndedCells, StoreRuns
from agelab.scenario.step import MAP, StepId
from agelab.store.artefacts import Store
from tests.build import run_builder
from tests.build.cell_builder import CORPUS, OK, spec

INPUTS = {"making": {"kernel": "6.1"}, "seeds": 1}
KEY = CellKey(inputs_key(INPUTS), run_builder.EVALUATED)
MAPS = {"aged/extents": b"the extents", "aged/free": b"the free space"}
NO_RUNS = Path("/nonexistent/runs")


def ended(
    home: Path,
    value: float = 1.5,
    *,
    inputs: dict[str, Any] | None = None,
    cells: Sequence[Cell] | None = None,
    clock: str = "virtual",
    **fields: Any,
) -> RunDirectory:
    """A run with one ended cell, two samples and two maps."""
    run = run_builder.begin(home, cells or [run_builder.cell()], clock=clock, provenance={"host": "Linux, 2 x P4"})
    for name, content in MAPS.items():
        path = run.cell_directory(0) / "maps" / f"{name}.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content, mtime=0))
    samples = [run_builder.sample(value=value), run_builder.sample("read", None)]
    maps = {name: hashlib.sha256(content).hexdigest() for name, content in MAPS.items()}
    run_builder.end(run, 0, samples, inputs=inputs or INPUTS, maps=maps, **fields)
    return run


class Guests:
    """Runs cells on a scripted guest whose steps take ``value`` seconds; counts the boots."""

    def __init__(self, home: Path, value: float = 1.5) -> None:
        self.home, self.value, self.boots = home, value, 0

    def _run(self, boot: Boot, events: Any, record: Callable[[Sample], None], on_step: Callable[[str], None]) -> Ending:
        self.boots += 1
        record(run_builder.sample(str(StepId("read").inside(boot.phase or MAP)), self.value))
        events.ended = OK
        return Ending.STOPPED

    def carry_out(self, reuse: CellReuse | None, elsewhere: Elsewhere | None = None, **goals: Any) -> RunDirectory:
        """Carry out one cell in a run of its own."""
        run = run_builder.begin(self.home, [run_builder.cell("reiserfs")])
        kernel = SimpleNamespace(modules=SimpleNamespace(closure=lambda names: ()))
        image = SimpleNamespace(kernel=kernel, proof={("reiserfs", "period"): SimpleNamespace(status="ok", reason="")})
        launcher = SimpleNamespace(
            directory=run.cell_directory(0), spec=spec(), corpus=CORPUS, module=None, tools={}, parts=(),
            guests=SimpleNamespace(
                image=image,
                emulator=SimpleNamespace(identity={"version": "7.2"}),
                store=Store(self.home / "s"),
                schedule=None,
                progress=print,
            ),
            run=self._run, console=lambda boot: "", inputs=lambda boot, places: {},
        )  # fmt: skip
        CellRunner(
            run, 0, cast(GuestLauncher, launcher), CellGoals(**goals), lambda _: None, None, reuse, elsewhere=elsewhere,
        ).carry_out()  # fmt: skip
        return run


def a_cell(home: Path, **fields: Any) -> tuple[EndedCell, Path]:
    """An ended cell, and the directory with its maps."""
    ended(home, **fields)
    directory = home / "maps-of-it"
    found = StoreRuns(home / "runs", print).restore(KEY, directory)
    assert found
    return found, directory


def restored(blobs: Any, place: Path, said: list[str]) -> EndedCell | None:
    return EndedCells(NO_RUNS, said.append, blobs).restore(KEY, place)
