"""Flame graphs of the steps that were profiled, and of what differs between two disks or two kernels."""

from collections.abc import Iterator

from agelab.analysis import profiles
from agelab.analysis.cells import RunSet, SeedGroup
from agelab.analysis.profiles import StepStacks
from agelab.base.errors import InputError
from agelab.evaluate.stacks import flame
from agelab.evaluate.stacks.folded import top
from agelab.present.report.blocks import Block, FlameGraph, Prose
from agelab.scenario.step import AGED, CONTROL, StepId

MOST = 48
"""Flame graphs of a page at most: each has some 30 KB."""
NARROWEST = 5.0
"""A box of a page's graphs is as wide at least, of 1200."""
NAMED = 3
"""Functions that a graph's description names."""
NOTE = (
    "A box is a function, as wide as the processor's time in it and in what it calls, above the function that called "
    "it. Grey: tasks; green: programs; orange: the kernel; yellow: its modules. Of two profiles the widths are those "
    "of the one named first: red has more samples than the other, blue fewer, and what it has no more is not drawn. "
    "The pointer on a box shows its samples. Waiting is in no box. As text: agelab profile RUN STEP."
)


def flame_graphs(group: RunSet) -> Iterator[Block]:
    """Yield the graphs of each group of cells, and of the first group against others of its variant and layout."""
    profiled: dict[int, dict[str, StepStacks]] = {}
    for number, subject in enumerate(group.groups):
        if steps := _steps(subject):
            profiled[number] = steps
    graphs: list[FlameGraph] = []
    left = 0
    for title, stacks, before in _titled_stacks(group, profiled):
        if len(graphs) < MOST:
            graphs.append(_graph(title, stacks, before))
        else:
            left += 1
    if graphs:
        yield Prose((NOTE,))
        yield from graphs
    if left:
        yield Prose((f"{left} more are left out, for the page's size: agelab profile RUN STEP --svg FILE draws them.",))


def _steps(group: SeedGroup) -> dict[str, StepStacks]:
    """Return the stacks of each profiled step of a group. Raises InputError for damage."""
    cells = list(group.counted.values())
    known = [profile for cell in cells if (profile := profiles.of_cell(cell))]
    steps = dict.fromkeys(step for profile in known for step in profiles.step_names(profile))
    return {step: profiles.of_step(group.name, cells, step) for step in steps}


def _titled_stacks(
    group: RunSet, profiled: dict[int, dict[str, StepStacks]]
) -> Iterator[tuple[str, StepStacks, StepStacks | None]]:
    """Yield title, stacks and what they are compared with; what differs comes first."""
    for number, steps in profiled.items():
        name = group.groups[number].name
        for step, stacks in steps.items():
            aged = StepId.parse(step)
            if aged.on_aged_disk:
                control = steps.get(str(StepId(aged.name, (*aged.within[:-1], CONTROL))))
                if control and _comparable(stacks, control):
                    yield f"{name}: {step} against {control.step}", stacks, control
    for number, steps in profiled.items():
        base = _base(group, profiled, number)
        for step, stacks in steps.items() if base is not None else ():
            before = profiled[base or 0].get(step)
            if before and _comparable(stacks, before):
                names = group.groups[number].name, group.groups[base or 0].name
                yield f"{step}: {names[0]} against {names[1]}", stacks, before
    for number, steps in profiled.items():
        for step, stacks in steps.items():
            disk = StepId.parse(step)
            if disk.disk == CONTROL and str(StepId(disk.name, (*disk.within[:-1], AGED))) in steps:
                continue
            yield f"{group.groups[number].name}: {step}", stacks, None


def _base(group: RunSet, profiled: dict[int, dict[str, StepStacks]], number: int) -> int | None:
    """Return the first profiled group of the same variant and layout; None for that one itself."""
    subject = group.groups[number]
    same = (
        n for n in profiled if (group.groups[n].variant, group.groups[n].layout) == (subject.variant, subject.layout)
    )
    first = next(same)
    return None if first == number else first


def _comparable(stacks: StepStacks, before: StepStacks) -> bool:
    try:
        stacks.require_comparable(before)
    except InputError:
        return False
    return True


def _graph(title: str, stacks: StepStacks, before: StepStacks | None) -> FlameGraph:
    drawn = flame.svg(stacks.stacks, before.stacks if before else None, narrowest=NARROWEST)
    every = stacks.stacks.samples or 1
    leading = ", ".join(
        f"{function.name} {100 * function.itself / every:.1f} %" for function in top(stacks.stacks)[:NAMED]
    )
    words = f"{stacks.seconds:.3f} s of the processor in {stacks.stacks.samples} samples"
    if before:
        words += f", {before.seconds:.3f} s in {before.stacks.samples} of the other"
    if stacks.lost:
        words += f"; {stacks.lost} samples are lost"
    waited = f"it waited at {100 * stacks.idle_share:.0f} %"
    return FlameGraph(title, f"{words}; {waited}; most in {leading or 'none'}", drawn)
