"""Have the host's own program look at a job file before anything is built, where the host has it.

It is confined, and only parses. A host without the program is no worse off: the guest's tells the same, later.
"""

from collections.abc import Sequence

from agelab.base import atomic, confine, process
from agelab.base.errors import InputError
from agelab.base.plain_path import temp_parent
from agelab.base.process import ProcessFailed, TimedOut
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.guest_plan import step_environment
from agelab.scenario.step import Action
from agelab.scenario.workloads import JOBS

SECONDS = 20.0
LINES = 3
"""Lines of the program to quote."""


def check(specs: Sequence[CellSpec]) -> None:
    """Raise InputError, with the program's own words, for a job file that it refuses."""
    wrong = []
    for spec in specs:
        for action in (*spec.scenario.actions(), *spec.scenario.tests):
            if action.job and (why := _refusal(action, spec)):
                wrong.append(f"step {action.name}: {action.job}: {why}")
    if wrong:
        raise InputError("\n".join(dict.fromkeys(wrong)))


def _refusal(action: Action, spec: CellSpec) -> str:
    """Return what the program says against a step's job file; empty where it takes it, or the host lacks it."""
    program = spec.workload.programs[action.program or ""]
    if not program.check or process.find(program.check[0]) is None:
        return ""
    with atomic.temp_dir(temp_parent()) as directory:
        job = directory.resolve() / action.job.rpartition("/")[2]
        job.write_bytes(spec.brought.files[f"{JOBS}/{job.name}"])
        argv = [word.replace("{job}", str(job)) for word in program.check]
        guests = spec.brought.environment  # paths of the guest
        env = {name: value for name, value in step_environment(spec).items() if name not in guests}
        try:
            confine.run(argv, read=[job], env=env, timeout=SECONDS)
        except (ProcessFailed, TimedOut) as error:
            said = error.stderr if isinstance(error, ProcessFailed) else str(error)
            lines = [line.strip() for line in said.replace(str(job), job.name).splitlines() if line.strip()]
            return " / ".join(lines[:LINES])[:400] or f"{program.name} refuses it"
    return ""
