"""Profiles of the last good and the first bad kernel: in which functions of the kernel they differ."""

from dataclasses import dataclass

from agelab.analysis import profiles
from agelab.analysis.cells import load
from agelab.analysis.profiles import StepStacks
from agelab.bisect.answer import BisectAnswer
from agelab.bisect.bisect_directory import BisectDirectory
from agelab.bisect.kernel_runs import RunLog, options_of
from agelab.run.execute import runner
from agelab.store.artefacts import Store

SEED = 1
"""The run seed of both profiles: one is enough, since samples repeat."""


@dataclass(frozen=True)
class NeighbourProfiles:
    """The stacks of the judged step on both sides of the change."""

    before: StepStacks
    after: StepStacks


def take(directory: BisectDirectory, store: Store, answer: BisectAnswer) -> NeighbourProfiles:
    """Profile the judged step with the kernels before and after the change.

    Cells that the bisect has run are not run again; only the profiling pass is. Raises InputError where a kernel's pass
    gave no stacks of the step.
    """
    question = directory.question()
    options = options_of(question).changed(seeds=(SEED,), profile=True)
    found = []
    for point in (answer.before, answer.after):
        directory.log_line(f"profile: {point.name}")
        run = runner.run(options.changed(kernel=point.kernel), store, RunLog(directory.log_detail))
        found.append(profiles.of_step(point.name, load(run).cells, question.profiled_step))
    before, after = found
    after.require_comparable(before)
    return NeighbourProfiles(before, after)
