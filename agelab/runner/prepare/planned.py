"""The cells that options ask for, before anything is made for them."""

from agelab.results.result import Cell
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.prepare import input_data
from agelab.runner.request.options import RunOptions
from agelab.runner.request.resolve import resolve
from agelab.runner.request.run_request import cell_requests


def planned_cells(options: RunOptions) -> list[CellSpec]:
    """Return the cells that options ask for. Raises InputError where a drive is not to be had or too small."""
    request = resolve(options)
    return [one.spec for one in cell_requests(request, input_data.shrink(request, None), (), None)]


def cell_of(spec: CellSpec, release: str) -> Cell:
    """Return the cell as results name it, on a kernel of that release."""
    return Cell(
        variant=spec.variant.name,
        filesystem=spec.filesystem.name,
        layout=spec.layout,
        kernel=release,
        machine="+".join((spec.machine.name, *spec.changes)),
        drives=spec.disk.drive_specs,
        accelerator=spec.accelerator,
        defaults=spec.defaults,
        seed=spec.run_seed,
        corpus_seed=spec.corpus_seed,
    )
