"""``agelab age``: make disks and keep them."""

from typing import Any

import click

from agelab.cli.click_options import CellsCommand, execute, run_options
from agelab.runner.request.options import RunOptions


@click.command(cls=CellsCommand, epilog="Exit: as agelab run has it.")
@run_options
@click.option("--curve", is_flag=True, help="Stop at the curve's points, as agelab run --curve does.")
def age(**words: Any) -> int:
    """Make the disks of a scenario's cells and keep them in the store, without measuring them."""
    from agelab.cli.options import open_store, print_blocks
    from agelab.present.view.artefacts import disks_blocks
    from agelab.present.view.summary import result_blocks
    from agelab.runner.execute import runner
    from agelab.store import stored_disk

    finished = execute(RunOptions(keep_disk=True, measure=False, **words))
    print_blocks(result_blocks(finished))
    ends = [finished.end(number) for number, _ in enumerate(finished.plan().cells)]
    made = {end.disk for end in ends if end and end.disk}
    print_blocks(disks_blocks([disk for disk in stored_disk.list_disks(open_store()) if disk.key in made]))
    return 0 if runner.succeeded(finished) else 1
