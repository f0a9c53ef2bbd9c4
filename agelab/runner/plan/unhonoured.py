"""Options of a cell that nothing honours: discards where a drive takes none, or a layout may not pass them on."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from agelab.base.errors import name_some
from agelab.runner.plan.cell_spec import CellSpec
from agelab.scenario import job_files
from agelab.scenario.step import Action

MOST_PLACES = 4
"""Places to name."""
COMMAND = re.compile(r"\b(fstrim|blkdiscard)\b")
OPTION_APART = re.compile(r"(?<!\S)(--?\w+)\s+(?!-)")
"""An option of a command line whose value is a word of its own."""
WHY = "no discard (TRIM) reaches the drive: what it costs, and what it is good for, is not in these numbers"


def unhonoured(specs: Sequence[CellSpec]) -> dict[str, str]:
    """Return, by variant, the option that its cells run without, a colon, what asks for it, and why it is in vain."""
    places_by_variant = {spec.variant.name: [*dict.fromkeys(_discards(spec))] for spec in specs}
    return {
        name: f"discard: {name_some(places, MOST_PLACES)}: {WHY}"
        for name, places in places_by_variant.items()
        if places
    }


def _discards(spec: CellSpec) -> Iterator[str]:
    """Yield what asks for discards in a cell whose disk takes none."""
    if spec.disk.real or spec.disk.takes_discards or spec.variant.script:
        return
    options, defaults = spec.variant.mkfs_options_for(spec.defaults), spec.defaults
    if any(_asks(word) for word in spec.filesystem.mount_command(defaults, spec.variant.mount_options)):
        yield "mount option discard"
    if any(_asks(word) for word in spec.filesystem.mkfs_command(defaults, options)):
        yield "mkfs option discard"
    for action in (*spec.scenario.actions(), *spec.scenario.tests):
        yield from (f"step {action.name}, {place}" for place in _in_step(action, spec))


def _asks(word: str) -> bool:
    """Return True if a word of a command has discard among the options that commas separate."""
    return any(option.partition("=")[0] == "discard" for option in word.split(","))


def _in_step(action: Action, spec: CellSpec) -> Iterator[str]:
    if action.program is None:
        yield from (command[1] for command in COMMAND.finditer(action.run))
        return
    program = spec.workload.programs[action.program]
    if not program.discards:
        return
    if action.job:
        for entry in job_files.entries(Path(action.job).name, program, spec.workload.jobs):
            option = job_files.filled(f"{entry.option}={entry.value}", action.environment)
            if re.match(program.discards, option):
                yield f"{entry.file}:{entry.line}: {option}"
    for word in OPTION_APART.sub(r"\1=", job_files.filled(action.arguments, action.environment)).split():
        if re.match(program.discards, word.lstrip("-")):
            yield word
