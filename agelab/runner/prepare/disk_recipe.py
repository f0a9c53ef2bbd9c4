"""What is to be known of a disk that a cell makes, for whoever finds it in the store."""

from agelab.runner.plan.cell_spec import CellSpec
from agelab.stored_disk import DiskRecipe


def disk_recipe(spec: CellSpec, kernel: str, scale: str | None, command: str) -> DiskRecipe:
    """Of the disk of that cell; ``command`` is what makes it again."""
    return DiskRecipe(
        makes=spec.scenario.makes,
        scenario=spec.scenario.name,
        scale=scale,
        variant=spec.variant.name,
        filesystem=spec.filesystem.name,
        layout=spec.layout,
        defaults=spec.defaults,
        machine=spec.machine.name,
        drives=spec.disk.specs,
        kernel=kernel,
        run_seed=spec.run_seed,
        corpus_seed=spec.corpus_seed,
        sizes=tuple(spec.disk.backing[place] for place in spec.disk.content),
        command=command,
    )
