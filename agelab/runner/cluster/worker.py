"""One cell of a shared plan, run on this host, with the packages of the plan."""

from contextlib import chdir
from dataclasses import replace
from pathlib import Path

from agelab.base.errors import AgelabError, InputError
from agelab.machine.vm import host
from agelab.results.result import CellOrigin
from agelab.results.run_directory import RunDirectory
from agelab.runner.cluster import shared_plan
from agelab.runner.cluster.shared_plan import SharedPlan
from agelab.runner.execute import runner
from agelab.runner.progress import Progress
from agelab.runner.request.resolve import resolve
from agelab.runner.reuse import bundle
from agelab.runner.reuse.ended_cell import CellKey, EndedCell
from agelab.store.artefacts import Store


class NothingToSend(AgelabError):
    """The cell has no result that could stand for another of its key."""


def run_cell(plan: SharedPlan, number: int, store: Store, progress: Progress) -> RunDirectory:
    """Run a cell of the plan in a run of its own, unless its key is known. Raises as ``agelab run`` does."""
    options, name = plan.options, plan.name_of(number)
    if not Path(options.directory).is_dir():
        if named := shared_plan.own_files(options):
            raise InputError(
                f"the plan was made in {options.directory}, which this host does not have, and names {named[0]}"
            )
        options = options.changed(directory="/")
    fixed = Store(store.home, store.warn, resolutions=plan.resolutions, shared=store.shared)
    with chdir(options.directory):
        request = replace(resolve(options), only=frozenset([name]))
        if name not in request.cell_names:
            raise InputError(
                f"--cell {number}: the plan's own options ask for no such cell: {', '.join(name[:2])}"
            )
        return runner.run_request(request, fixed, progress)


def pack(run: RunDirectory) -> bytes:
    """Return the one cell of a run as bytes to be sent. Raises NothingToSend for one without a digest."""
    end = run.end(0)
    key = CellKey.of(end) if end else None
    if end is None or key is None:
        raise NothingToSend(end.reason or end.status if end else "it has no end record")
    here = CellOrigin(run=run.name, host=host.description(), ended=end.ended or "")
    cell = EndedCell(
        inputs=run.recorded_inputs(0),
        end=end.model_copy(update={"disk": None, "pictures": {}}),
        samples=tuple(run.samples().get(0, ())),
        origin=end.reused or here,
    )
    return bundle.pack(key, cell, run.cell_directory(0))
