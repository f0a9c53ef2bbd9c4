"""Add run seeds to a run until a question is decided, the seeds are used up, or a budget of time ends.

It is looked after each number of LOOKS, each time at LEVEL. A wrong difference is found at one of them with the sum of
their levels at most, 5 % (Bonferroni's inequality), however the looks hang together.
"""

import time
from dataclasses import dataclass
from fractions import Fraction

from agelab.analysis.cells import load, seed_groups
from agelab.analysis.decision import Look, Question, decide, main_question, parse_question, require_sides
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute import runner
from agelab.runner.plan.cell_spec import cell_of
from agelab.runner.progress import Progress
from agelab.runner.request.options import LOOKS, RunOptions
from agelab.runner.request.request import require_measure, resolve
from agelab.store.artefacts import Store

LEVEL = Fraction(5, 100) / len(LOOKS)
"""What a look may find of what is not there."""


@dataclass(frozen=True)
class Outcome:
    """How it ended."""

    question: Question
    decision: Look
    seeds: int
    """Run seeds that were looked at last."""
    ended: str
    """Why no more seeds were added, where the question is not decided."""


def run_until_decided(
    options: RunOptions, store: Store, progress: Progress | None = None, begun: RunDirectory | None = None
) -> tuple[RunDirectory, Outcome]:
    """Run the seeds of one look after the other, from that of ``options`` on, in one run; ``begun`` is gone on with.

    Raises as ``runner.run`` does, and InputError for a question that the cells do not answer.
    """
    progress = progress or Progress()
    request = resolve(options)
    selected = request.selection
    asked = parse_question(options.ask, selected.workload.metrics) if options.ask else None
    if asked:
        require_measure(asked.measure, selected)
    require_sides(asked, [cell_of(spec, options.kernel) for spec in request.planned()])
    since, directory = time.monotonic(), begun
    looks = [number for number in LOOKS if number >= len(options.seeds)]
    for number, following in zip(looks, (*looks[1:], None), strict=True):
        now = options.changed(seeds=tuple(range(1, number + 1)))
        ran = {cell.seed for cell in directory.plan().cells} if directory else set()
        if directory is None or directory.unfinished() or len(ran) < number:
            directory = runner.run(now, store, progress, begun=directory)
        groups = seed_groups(load(directory))
        asked = asked or main_question(groups)
        decision = decide(asked, groups, LEVEL)
        progress.stage(f"{number} run seeds: {'' if decision.decided else 'not '}decided: {decision.said}")
        if decision.decided:
            return directory, Outcome(asked, decision, number, "")
        if following is None:
            return directory, Outcome(asked, decision, number, f"{number} run seeds are the most that are added")
        spent = (time.monotonic() - since) / 60
        expected = spent * (following - number) / number
        if options.budget is not None and spent + expected > options.budget:
            ended = (
                f"{following} run seeds would take about {expected:.0f} more of {options.budget:g} minutes, of which "
                f"{spent:.0f} are spent"
            )
            return directory, Outcome(asked, decision, number, ended)
    raise AssertionError("the last look ends it")
