"""Run a claim's test on a source of values: a study's own table, or our runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from agelab.model.base import Layout
from agelab.published.claims import (
    Amount,
    AnyTest,
    Claims,
    ExpectedOrder,
    ExpectedRatio,
    Extreme,
    Gain,
    Kept,
    Same,
    Spread,
    subject,
)
from agelab.published.value_sources import Value, ValueSource, compare_values


@dataclass(frozen=True)
class ClaimComparison:
    where: str
    figure: Fraction | None
    """A ratio, or another number by the kind of test; None where values are missing."""
    holds: bool | None
    """None where something is missing without which it cannot be said."""
    note: str = ""


@dataclass(frozen=True)
class ClaimOutcome:
    """The outcome of a test on one source."""

    over: str
    comparisons: tuple[ClaimComparison, ...]

    @property
    def true(self) -> int:
        return sum(one.holds is True for one in self.comparisons)

    @property
    def holds(self) -> bool | None:
        """True if enough comparisons are true; None where missing ones could change the answer."""
        unknown = sum(one.holds is None for one in self.comparisons)
        number = len(self.comparisons)
        fewest = {"every": number, "most": number // 2 + 1, "some": 1}[self.over]
        if self.true >= fewest:
            return True
        return None if self.true + unknown >= fewest else False

    @property
    def missing(self) -> list[str]:
        """The reasons why comparisons cannot be made, each once."""
        return list(dict.fromkeys(one.note for one in self.comparisons if one.holds is None))


@dataclass(frozen=True)
class _Spot:
    """The place of a comparison: one step in one layout."""

    source: ValueSource
    table: str
    metric: str
    layout: Layout
    step: str

    @property
    def name(self) -> str:
        return self.step if self.layout == "single" else f"{self.step}, {self.layout}"

    def value(self, ref: str, step: str | None = None, layout: Layout | None = None) -> Value:
        found = subject(ref)
        table, where = found.table or self.table, layout or found.layout or self.layout
        return self.source.value((table, found.variant, where, step or self.step, self.metric))

    def values(self, refs: Sequence[str], layout: Layout | None = None) -> dict[str, Value]:
        return {ref: self.value(ref, layout=layout) for ref in refs}


def run_test(test: AnyTest, claims: Claims, source: ValueSource) -> ClaimOutcome:
    return ClaimOutcome(test.over, tuple(_comparisons(test, claims, source)))


def _comparisons(test: AnyTest, claims: Claims, source: ValueSource) -> Iterator[ClaimComparison]:
    for layout in test.layouts:
        for step in test.steps:
            spot = _Spot(source, claims.table(test.table).id, test.metric, layout, step)
            match test:
                case ExpectedRatio():
                    yield from (_ratio(spot, test, *couple) for couple in test.couples)
                case Same():
                    yield from (_same(spot, test, *couple) for couple in test.couples)
                case Amount():
                    yield from (_amount(spot, test, ref) for ref in test.of)
                case Extreme():
                    yield _extreme(spot, test, describe_extreme(test, claims))
                case ExpectedOrder():
                    yield _order(spot, test)
                case Kept():
                    yield _kept(spot, test)
                case Gain():
                    yield _gain(spot, test)
                case Spread():
                    yield _spread(spot, test)


def why_missing(*values: Value) -> str:
    """Return why one of them is missing, or nothing."""
    return next((value.why or "no value" for value in values if not value.numbers), "")


def _in_band(figure: Fraction, low: float | None, high: float | None) -> bool:
    """Return whether it lies between two bounds, taken as they are written: 1.45 is 145/100."""
    return (low is None or figure >= Fraction(str(low))) and (high is None or figure <= Fraction(str(high)))


def _ratio(spot: _Spot, test: ExpectedRatio, one: str, other: str) -> ClaimComparison:
    second = f"{other} {test.to_step}" if test.to_step else other
    where = f"{spot.name}: {one} / {second}"
    left, right = spot.value(one), spot.value(other, test.to_step)
    if why := why_missing(left, right) or ("" if right.median else f"{second} is 0"):
        return ClaimComparison(where, None, None, why)
    figure, sign = left.median / right.median, compare_values(left, right)
    if not sign and figure != 1:
        # A difference that does not count is none.
        holds = _in_band(Fraction(1), test.at_least, test.at_most)
        return ClaimComparison(where, figure, holds, "below the floor")
    return ClaimComparison(where, figure, _in_band(figure, test.at_least, test.at_most))


def _same(spot: _Spot, test: Same, one: str, other: str) -> ClaimComparison:
    where = f"{spot.name}: {one} / {other}"
    left, right = spot.value(one), spot.value(other)
    if why := why_missing(left, right) or ("" if right.median else f"{other} is 0"):
        return ClaimComparison(where, None, None, why)
    figure = left.median / right.median
    lower, higher = sorted((left.median, right.median))
    if lower and higher / lower - 1 <= Fraction(str(test.within)):
        return ClaimComparison(where, figure, True)
    if higher - lower <= spot.source.resolution:
        return ClaimComparison(where, figure, True, "closer than the clock could tell")
    equal = compare_values(left, right) == 0
    return ClaimComparison(where, figure, equal, "below the floor" if equal else "")


def _amount(spot: _Spot, test: Amount, ref: str) -> ClaimComparison:
    where, value = f"{spot.name}: {ref}", spot.value(ref)
    if why := why_missing(value):
        return ClaimComparison(where, None, None, why)
    return ClaimComparison(where, value.median, _in_band(value.median, test.at_least, test.at_most))


def describe_extreme(test: Extreme, claims: Claims) -> str:
    """Say who is to be the lowest or highest, and among whom unless it is among all that the study ranks."""
    ours, others = ", ".join(test.of), ", ".join(test.among)
    if claims.ranked <= {*test.of, *test.among}:
        return f"{ours} {test.kind}"
    return f"{ours} {'below' if test.kind == 'lowest' else 'above'} {others}"


def _extreme(spot: _Spot, test: Extreme, said: str) -> ClaimComparison:
    """Compare with the nearest of the others; the figure is its value over ours, or ours over its."""
    lowest = test.kind == "lowest"
    where = f"{spot.name}: {said}"
    ours, others = spot.values(test.of), spot.values(test.among)
    near: list[tuple[Fraction, bool, str]] = []
    for one in ours.values():
        for name, other in others.items():
            if one.numbers and other.numbers:
                low, high = (one, other) if lowest else (other, one)
                far = high.median / low.median if low.median else Fraction(0)
                near.append((far, compare_values(high, low) == 1 and far >= Fraction(str(test.margin)), name))
    why = why_missing(*ours.values(), *others.values())
    if not near:
        return ClaimComparison(where, None, None, why)
    figure, _, name = min(near)
    holds = all(good for _, good, _ in near)
    note = f"next is {name}" if holds else f"against {min(n for n in near if not n[1])[2]}"
    if why and holds:
        return ClaimComparison(where, figure, None, why)
    return ClaimComparison(where, figure, holds, note)


def _order(spot: _Spot, test: ExpectedOrder) -> ClaimComparison:
    """Check an order; the figure is the smallest ratio of a later value to an earlier one."""
    where = f"{spot.name}: " + " <= ".join(", ".join(group) for group in test.groups)
    groups = [spot.values(group) for group in test.groups]
    ratios: list[tuple[Fraction, bool, str]] = []
    for number, group in enumerate(groups):
        for later in groups[number + 1 :]:
            for one, low in group.items():
                for other, high in later.items():
                    if low.numbers and high.numbers and low.median:
                        good = compare_values(low, high) != 1
                        ratios.append((high.median / low.median, good, f"{one} is above {other}"))
    why = why_missing(*(value for group in groups for value in group.values()))
    wrong = [words for _, good, words in sorted(ratios) if not good]
    figure = min(ratios)[0] if ratios else None
    if wrong:
        return ClaimComparison(where, figure, False, wrong[0])
    return ClaimComparison(where, figure, None if why else True, why)


def _kept(spot: _Spot, test: Kept) -> ClaimComparison:
    """Check what stays in both layouts; the figure is the number of pairs that change places in the order."""
    where = f"{spot.step}: {test.what} of {', '.join(test.among)}, {' and '.join(test.between)}"
    here, there = (spot.values(test.among, layout) for layout in test.between)
    if why := why_missing(*here.values(), *there.values()):
        return ClaimComparison(where, None, None, why)
    if test.what == "order":
        turned = [
            f"{one} and {other}"
            for number, one in enumerate(test.among)
            for other in test.among[number + 1 :]
            if compare_values(here[one], here[other]) * compare_values(there[one], there[other]) < 0
        ]
        return ClaimComparison(where, Fraction(len(turned)), not turned, "; ".join(turned))
    one, other = (_at_the_end(values, test.what) for values in (here, there))
    note = " | ".join(", ".join(sorted(names)) for names in (one, other))
    return ClaimComparison(where, None, bool(one & other), note)


def _at_the_end(values: dict[str, Value], what: str) -> set[str]:
    """Return the names with the lowest or highest value, and those that cannot be told from it."""
    end = (min if what == "lowest" else max)(values.values(), key=lambda value: value.median)
    return {name for name, value in values.items() if compare_values(value, end) == 0}


def _gain(spot: _Spot, test: Gain) -> ClaimComparison:
    """Compare gains; the figure is the gain of ``of``, the note that of the next."""
    where = f"{spot.step}: gain of {test.of}, {' to '.join(test.between)}"
    refs = (test.of, *test.among)
    first, second = (spot.values(refs, layout) for layout in test.between)
    why = why_missing(*first.values(), *second.values())
    gains: dict[str, Fraction] = {}
    for ref in refs:
        if first[ref].numbers and second[ref].numbers and second[ref].median:
            before, after = first[ref].median, second[ref].median
            gains[ref] = before / after if test.measure == "ratio" else before - after
    others = [(gain, ref) for ref, gain in gains.items() if ref != test.of]
    if test.of not in gains or not others:
        return ClaimComparison(where, None, None, why)
    most, name = max(others)
    gain, next_gain = gains[test.of], f"{float(most):.3g}"
    if gain <= most:
        return ClaimComparison(where, gain, False, f"{name} gains {next_gain}")
    return ClaimComparison(where, gain, None if why else True, why or f"next is {name}: {next_gain}")


def _spread(spot: _Spot, test: Spread) -> ClaimComparison:
    """Compare spreads; the figure is the one over the other."""
    where = f"{spot.name}: spread of {', '.join(test.of)} / of {', '.join(test.than)}"
    one, other = spot.values(test.of), spot.values(test.than)
    if why := why_missing(*one.values(), *other.values()):
        return ClaimComparison(where, None, None, why)
    spreads = []
    for values in (one, other):
        medians = [value.median for value in values.values()]
        if not min(medians):
            return ClaimComparison(where, None, None, "a value is 0")
        spreads.append(max(medians) / min(medians))
    figure = spreads[0] / spreads[1]
    return ClaimComparison(where, figure, figure < 1)
