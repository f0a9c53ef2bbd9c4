"""The command that makes a run again."""

from collections.abc import Sequence
from shlex import join, quote

from agelab.base import places
from agelab.base.errors import InputError
from agelab.results.result import RunPlan
from agelab.runner.request.options import RunOptions, make_variable
from agelab.runner.request.request import resolve
from agelab.stats.phrasing import ENOUGH_CORPORA, ENOUGH_SEEDS


def repeat_command(plan: RunPlan) -> str:
    """Return ``make scenario NAME=...`` where make knows all the options, else ``agelab run ...``.

    Empty where the plan does not say what was asked for.
    """
    try:
        options = RunOptions.from_plan(plan)
    except InputError:
        return ""
    given = options.set_options()
    if options.name and all(map(make_variable, given)) and not places.INSTALLED:
        words = (
            f"{make_variable(name)}={'1' if word is True else quote(str(word).replace('$', '$$'))}"
            for name, word in given.items()
        )
        return " ".join(["make scenario", f"NAME={quote(options.name.replace('$', '$$'))}", *words])
    return _agelab(options)


def settling_command(plan: RunPlan, *, corpora: bool = False, least: int = 0, kernels: Sequence[str] = ()) -> str:
    """Return the command that settles what too few run seeds, or ``corpora``, leave open; empty where there is none.

    It takes ``least`` run seeds or more, on ``kernels`` in place of the run's own.
    """
    least = max(least, ENOUGH_SEEDS)
    try:
        asked = RunOptions.from_plan(plan)
        seeds = asked.seeds if len(asked.seeds) >= least else tuple(range(1, least + 1))
        options = asked.of_seeds(seeds, ENOUGH_CORPORA if corpora else asked.corpora)
        if corpora and asked.corpus:
            resolve(options)  # where all corpora would be the same it refuses them
        if kernels:
            options = options.changed(kernel=RunOptions.model_fields["kernel"].default)
    except InputError:
        return ""
    return " ".join([_agelab(options), *(f"--kernel {quote(kernel)}" for kernel in kernels)])


def _agelab(options: RunOptions) -> str:
    return f"agelab {'run' if options.measure else 'age'} {join(options.arguments())}"
