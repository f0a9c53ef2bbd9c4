"""The realised error rates of the rules that call a step good or bad, for docs/chance.md.

    .venv/bin/python -m validation.bisect_rules [--write]

Draws ends and steps whose truth is known, from populations of some shapes and from recorded samples
(``validation/bisect_rules.json``), and lets the rules judge them. The same table for everybody: the seed is fixed.
"""

import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import permutations
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Any

from agelab.base.errors import InputError
from agelab.bisect.measurements import Decision
from agelab.bisect.rules import (
    ALPHA,
    SEEDS_NEEDED,
    EndReferences,
    EndsOrder,
    Round,
    compare_ends,
    decide_virtual,
    decide_wall,
)
from agelab.stats.series import exact
from docs.make import command
from docs.make.command import Answer
from docs.make.page import grid, line

RECORDED = Path(__file__).with_name("bisect_rules.json")
STEPS, WALL_STEPS, BUDGET = 2000, 400, 60
TRUTHS = (Decision.GOOD, Decision.BAD)

Draw = Callable[[Random], float]
SHAPES: dict[str, Draw] = {
    "normal": lambda random: random.gauss(0, 1),
    "lognormal": lambda random: math.exp(random.gauss(0, 1)),
    "two clusters, 4 : 1": lambda random: random.gauss(0, 0.2) + (4 if random.random() < 0.2 else 0),
}


@dataclass
class Tally:
    """Counts of verdicts on steps whose truth is known."""

    refused: int = 0
    wrong: int = 0
    undecided: int = 0
    taken: list[int] = field(default_factory=list)
    """Seeds or rounds of each step that was judged."""
    median_wrong: int = 0
    """Steps that the median of five alone, without a word of doubt, would have called wrong."""

    def add(self, truth: Decision, decision: Decision, taken: int) -> None:
        """Count one more step."""
        self.wrong += decision in TRUTHS and decision is not truth
        self.undecided += decision is Decision.UNDECIDED
        self.taken.append(taken)

    def percent(self, count: int) -> str:
        """Format a count as a share of the steps that were judged."""
        return f"{100 * count / len(self.taken):.2f}" if self.taken else "-"


def number(value: float) -> Fraction:
    """Round a drawn value to three decimals, as samples have them."""
    return Fraction(round(value * 1000), 1000)


def told(references: EndReferences, values: Sequence[Fraction]) -> tuple[Decision, int]:
    """Feed a step's values to the rule one by one; return the verdict and how many values it took."""
    for taken in range(1, len(values) + 1):
        decision = decide_virtual(references, values[:taken]).decision
        if decision is not Decision.MORE:
            return decision, taken
    raise AssertionError("the last seed decides, or says that it does not")


def searched(
    tally: Tally, good: Sequence[Fraction], bad: Sequence[Fraction], steps: Sequence[Sequence[Fraction]]
) -> None:
    """Judge a step like the good end and one like the bad end, and count the verdicts."""
    try:
        references = EndReferences(good, bad)
    except InputError:
        tally.refused += 1
        return
    for truth, values in zip(TRUTHS, steps, strict=True):
        tally.add(truth, *told(references, values))
        tally.median_wrong += references.side(Fraction(median(values))) is not truth


def floor_of(shape: Draw, random: Random) -> float:
    """Return the median floor of many pairs of series of five."""

    def spread() -> float:
        five = [shape(random) for _ in range(SEEDS_NEEDED)]
        return max(five) - min(five)

    return median(max(spread(), spread()) for _ in range(1000))


def virtual_drawn(shape: Draw, effect: float, shaken: float, random: Random, steps: int) -> Tally:
    """Ends ``effect`` apart; each step as a whole ``shaken`` by a normal, as any change of input shakes it."""
    tally = Tally()

    def five(centre: float) -> list[Fraction]:
        return [number(centre + shape(random)) for _ in range(SEEDS_NEEDED)]

    for _ in range(steps // 2):
        moved = [five(centre + random.gauss(0, shaken)) for centre in (0, effect)]
        searched(tally, five(0), five(effect), moved)
    return tally


def virtual_recorded(
    series: dict[str, dict[str, list[float]]], random: Random, times: int
) -> Iterator[tuple[str, Tally]]:
    """Resample pairs of variants as ends, in classes by how many floors their medians differ."""
    classes = {"1 to 1.5": Tally(), "1.5 to 3": Tally(), "3 and more": Tally()}
    for variants in series.values():
        for good, bad in permutations([list(map(exact, values)) for values in variants.values()], 2):
            floor = max(max(good) - min(good), max(bad) - min(bad))
            apart = abs(median(good) - median(bad))
            if apart <= floor:
                continue
            name = "1 to 1.5" if apart <= 1.5 * floor else "1.5 to 3" if apart <= 3 * floor else "3 and more"
            for _ in range(times):
                again = [random.choices(end, k=SEEDS_NEEDED) for end in (good, bad, good, bad)]
                searched(classes[name], again[0], again[1], again[2:])
    yield from classes.items()


def judged(next_round: Callable[[], Round], alpha: Fraction = ALPHA) -> tuple[Decision, int]:
    """Rounds until the rule has decided or the budget ends, and how many they were. Bad is higher."""
    rounds: list[Round] = []
    while True:
        rounds.append(next_round())
        decision = decide_wall(rounds, EndsOrder.HIGHER, BUDGET, alpha).decision
        if decision is not Decision.MORE:
            return decision, len(rounds)


def ordered(next_round: Callable[[], Round]) -> EndsOrder:
    """Draw rounds until the order of good and bad is decided."""
    pairs: list[tuple[Fraction, Fraction]] = []
    while True:
        drawn = next_round()
        pairs.append((drawn.good, drawn.bad))
        order, _ = compare_ends(pairs, BUDGET)
        if order is not EndsOrder.MORE:
            return order


def rounds_drawn(shape: Draw, effect: float, at: float, drift: float, random: Random) -> Callable[[], Round]:
    """Rounds of a candidate ``at`` that share of the way from good to bad; between runs all drift by a random walk."""
    state = 0.0

    def draw() -> Round:
        nonlocal state
        values = {}
        for name, centre in random.sample([("good", 0.0), ("bad", effect), ("candidate", at * effect)], 3):
            state += random.gauss(0, drift)
            values[name] = number(centre + state + shape(random))
        return Round(**values)

    return draw


def rounds_recorded(times: Sequence[float], ratio: float, at: float, random: Random) -> Callable[[], Round]:
    """Recorded times in their own order from anywhere on; bad takes ``ratio`` times as long."""
    place = random.randrange(len(times))

    def draw() -> Round:
        nonlocal place
        values = {}
        for name, factor in random.sample([("good", 1.0), ("bad", ratio), ("candidate", 1 + at * (ratio - 1))], 3):
            values[name] = number(times[place % len(times)] * factor)
            place += 1
        return Round(**values)

    return draw


def wall_tally(rounds: Callable[[float], Callable[[], Round]], steps: int, alpha: Fraction = ALPHA) -> Tally:
    """Steps that are like good (0 of the way to bad) and like bad (1), in turns."""
    tally = Tally()
    for step in range(steps):
        tally.add(TRUTHS[step % 2], *judged(rounds(step % 2), alpha))
    return tally


def quartiles(shape: Draw, random: Random) -> float:
    """Estimate the interquartile range of a population from many draws."""
    low, _, high = quantiles((shape(random) for _ in range(4000)), n=4)
    return high - low


def virtual_row(name: str, effect: str, tally: Tally, apart: bool = True) -> str:
    """Make a row of the virtual clock's table; ``refused`` counts pairs of ends, each with two steps.

    Ends that are the same have no step that could be told wrong.
    """
    refused = f"{100 * tally.refused / (tally.refused + len(tally.taken) / 2):.1f}"
    if not apart:
        return line([name, effect, refused, *5 * ["-"]])
    return line(
        [
            name,
            effect,
            refused,
            tally.percent(tally.wrong),
            tally.percent(tally.undecided),
            tally.percent(tally.median_wrong),
            tally.percent(tally.taken.count(1)),
            f"{sum(tally.taken) / len(tally.taken):.2f}" if tally.taken else "-",
        ]
    )


def virtual_table(series: dict[str, dict[str, list[float]]]) -> Iterator[str]:
    """Shapes and recorded samples by how many floors the ends are apart."""
    yield from grid(("steps of", "apart, floors", "ends refused, %", "wrong, %", "undecided, %",
                      "median of five alone: wrong, %", "one seed, %", "seeds, mean"))  # fmt: skip
    random = Random(1)
    shapes = [(name, shape, 0.0) for name, shape in SHAPES.items()]
    for name, shape, shaken in [*shapes, ("normal, each step shifted", SHAPES["normal"], 0.5)]:
        unit = floor_of(shape, random)
        for effect in (0, 0.5, 1, 1.5, 2, 3, 6):
            tally = virtual_drawn(shape, effect * unit, shaken, random, STEPS)
            yield virtual_row(name, f"{effect:g}", tally, effect > 0)
    for effects, tally in virtual_recorded(series, random, 2):
        yield virtual_row("recorded", effects, tally)


def wall_table(times: Sequence[float]) -> Iterator[str]:
    """Shapes by how many distances of the quartiles the ends are apart; recorded times by how much longer bad takes."""
    yield from grid(("steps of", "apart", "ends told apart, %", "wrong way, %", "steps wrong, %",
                      "undecided, %", "rounds, median"))  # fmt: skip
    random = Random(1)
    shapes = [(name, shape, 0.0) for name, shape in SHAPES.items()]
    for name, shape, drift in [*shapes, ("normal, drifting", SHAPES["normal"], 0.5)]:
        unit = quartiles(shape, random)
        for effect in (0, 0.5, 1, 2):
            yield wall_row(
                name,
                f"{effect:g}",
                partial(rounds_drawn, shape, effect * unit, drift=drift, random=random),
                effect > 0,
            )
    for ratio in (1, 1.25, 1.5, 2):
        yield wall_row(
            "recorded",
            f"{ratio:g} times",
            partial(rounds_recorded, times, ratio, random=random),
            ratio > 1,
        )


def wall_row(name: str, effect: str, rounds: Callable[[float], Callable[[], Round]], apart: bool) -> str:
    """Make a row of the wall clock's table. Equal ends have no step that could be judged wrongly."""
    orders = Counter(ordered(rounds(0)) for _ in range(WALL_STEPS))
    right = orders[EndsOrder.HIGHER] if apart else 0
    falsely = orders[EndsOrder.LOWER] + (0 if apart else orders[EndsOrder.HIGHER])
    cells = [f"{100 * right / WALL_STEPS:.1f}" if apart else "-", f"{100 * falsely / WALL_STEPS:.2f}"]
    if not apart:
        return line([name, effect, *cells, "-", "-", "-"])
    tally = wall_tally(rounds, WALL_STEPS)
    return line(
        [
            name,
            effect,
            *cells,
            tally.percent(tally.wrong),
            tally.percent(tally.undecided),
            f"{median(tally.taken):.0f}",
        ]
    )


def between_table() -> Iterator[str]:
    """Judge a step between the ends with both rules, in normal noise."""
    yield from grid(("clock", "ends apart", "of the way to bad, %", "good, %", "bad, %", "undecided, %"))
    random, shape = Random(1), SHAPES["normal"]
    unit = floor_of(shape, random)
    for apart in (2, 6):
        for at in (0.25, 0.4, 0.5):
            decisions: Counter[Decision] = Counter()
            while decisions.total() < WALL_STEPS:
                ends = [[number(centre + shape(random)) for _ in range(5)] for centre in (0, apart * unit)]
                values = [number(at * apart * unit + shape(random)) for _ in range(5)]
                try:
                    decisions[told(EndReferences(ends[0], ends[1]), values)[0]] += 1
                except InputError:
                    continue
            yield between_row("virtual", f"{apart} floors", at, decisions)
    unit = quartiles(shape, random)
    for apart in (1, 2, 8):
        for at in (0.25, 0.4, 0.5):
            draws = (rounds_drawn(shape, apart * unit, at, 0, random) for _ in range(WALL_STEPS // 2))
            decisions = Counter(judged(draw)[0] for draw in draws)
            yield between_row("wall", f"{apart} quartile distances", at, decisions)


def between_row(clock: str, apart: str, at: float, decisions: Counter[Decision]) -> str:
    shares = (f"{100 * decisions[decision] / decisions.total():.1f}" for decision in (*TRUTHS, Decision.UNDECIDED))
    return line([clock, apart, f"{100 * at:.0f}", *shares])


def recorded() -> dict[str, Any]:
    """Read the recorded samples."""
    samples: dict[str, Any] = json.loads(RECORDED.read_text())
    return samples


def report() -> str:
    """Write all tables in Markdown."""
    samples = recorded()
    return "\n".join(
        [
            f"Virtual clock, {STEPS} steps a row (recorded: all pairs of variants):",
            "",
            *virtual_table(samples["virtual"]),
            "",
            f"Wall clock, {WALL_STEPS} steps a row, {BUDGET} rounds at most, alpha {float(ALPHA):g}:",
            "",
            *wall_table(samples["wall"]),
            "",
            "Steps between the ends:",
            "",
            *between_table(),
            "",
        ]
    )


def main() -> int:
    """The command line."""
    return command.run(command.parser(__doc__), lambda _: Answer({"bisect-rules": report()}))


if __name__ == "__main__":
    sys.exit(main())
