"""Run a claim's test on a source of values: a study's own table, or our runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from agelab.analysis.published.claims import (
    Amount,
    AnyTest,
    Claims,
    ExpectedOrder,
    ExpectedRatio,
    Extreme,
    Gain,
    Kept,
    Place,
    Same,
    Spread,
    Uncounted,
    subject,
)
from agelab.analysis.published.values import (
    ValueSource,
    compare_values,
    judge_values,
    same_within,
    too_close,
    why_not_known,
)
from agelab.base.types import LayoutName
from agelab.stats.series import Series


@dataclass(frozen=True)
class ClaimComparison:
    where: str
    figure: Fraction | None
    """A ratio, or another number by the kind of test; None where values are missing."""
    holds: bool | None
    """None where it cannot be said, or nothing would follow from it."""
    note: str = ""
    close: bool = False
    """True if it cannot be said because values lie too close to each other for these seeds."""
    uncounted: Uncounted | None = None
    """Why nothing would follow from it, if so."""


@dataclass(frozen=True)
class ClaimOutcome:
    """The outcome of a test on one source."""

    over: str
    comparisons: tuple[ClaimComparison, ...]

    @property
    def true(self) -> int:
        return sum(comparison.holds is True for comparison in self.comparisons)

    @property
    def holds(self) -> bool | None:
        """True if enough comparisons are true; None where those that are not known could change the answer.

        Those with a mark are not counted: None where no other is there.
        """
        counted = self.counted
        unknown = sum(comparison.holds is None for comparison in counted)
        number = len(counted)
        if not number:
            return None
        fewest = {"every": number, "most": number // 2 + 1, "some": 1}[self.over]
        if self.true >= fewest:
            return True
        return None if self.true + unknown >= fewest else False

    @property
    def missing(self) -> list[str]:
        """The reasons why comparisons cannot be made, each once; those with a mark where there is nothing else."""
        chosen = self.counted or self.comparisons
        missing = [comparison for comparison in chosen if comparison.holds is None and not comparison.close]
        return list(dict.fromkeys(comparison.note for comparison in missing))

    @property
    def close(self) -> list[str]:
        """The reasons why comparisons were made and say nothing, each once."""
        return list(dict.fromkeys(comparison.note for comparison in self.counted if comparison.close))

    @property
    def counted(self) -> list[ClaimComparison]:
        """Those that have no mark."""
        return [comparison for comparison in self.comparisons if not comparison.uncounted]


@dataclass(frozen=True)
class _Spot:
    """The place of a comparison: one step in one layout."""

    source: ValueSource
    read: dict[Place, None]
    """The places that were asked for, in their order."""
    table: str
    metric: str
    layout: LayoutName
    step: str

    @property
    def name(self) -> str:
        return self.step if self.layout == "single" else f"{self.step}, {self.layout}"

    def value(self, ref: str, step: str | None = None, layout: LayoutName | None = None) -> Series:
        parsed = subject(ref)
        table, where = parsed.table or self.table, layout or parsed.layout or self.layout
        place = (table, parsed.variant, where, step or self.step, self.metric)
        self.read[place] = None
        return self.source.value(place)

    def values(self, refs: Sequence[str], layout: LayoutName | None = None) -> dict[str, Series]:
        return {ref: self.value(ref, layout=layout) for ref in refs}


def run_test(test: AnyTest, claims: Claims, source: ValueSource) -> ClaimOutcome:
    return run_and_read(test, claims, source)[0]


def run_and_read(test: AnyTest, claims: Claims, source: ValueSource) -> tuple[ClaimOutcome, tuple[Place, ...]]:
    """Run a test; return the places whose values it asked for, too."""
    read: dict[Place, None] = {}
    comparisons = tuple(_comparisons(test, claims, source, read))
    return ClaimOutcome(test.over, comparisons), tuple(read)


def _comparisons(
    test: AnyTest, claims: Claims, source: ValueSource, read: dict[Place, None]
) -> Iterator[ClaimComparison]:
    for layout in test.layouts:
        for step in test.steps:
            spot = _Spot(source, read, claims.table(test.table).id, test.metric, layout, step)
            other = getattr(test, "to_step", None) or step
            mark = source.why_uncounted(step, test.metric) or source.why_uncounted(other, test.metric)
            for comparison in _at(spot, test, claims):
                yield (
                    replace(comparison, holds=None, note=str(mark), uncounted=mark, close=False) if mark else comparison
                )


def _at(spot: _Spot, test: AnyTest, claims: Claims) -> Iterator[ClaimComparison]:
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


def why_missing(*values: Series) -> str:
    """Return why one of them is missing, or nothing."""
    return next((value.why_missing for value in values if not value.values), "")


def _in_band(figure: Fraction, low: float | None, high: float | None) -> bool:
    """Return whether it lies between two bounds, taken as they are written: 1.45 is 145/100."""
    return (low is None or figure >= Fraction(str(low))) and (high is None or figure <= Fraction(str(high)))


def _ratio(spot: _Spot, test: ExpectedRatio, of: str, to: str) -> ClaimComparison:
    second = f"{to} {test.to_step}" if test.to_step else to
    where = f"{spot.name}: {of} / {second}"
    left, right = spot.value(of), spot.value(to, test.to_step)
    if why := why_missing(left, right) or ("" if right.median else f"{second} is 0"):
        return ClaimComparison(where, None, None, why)
    figure, sign = left.median / right.median, compare_values(left, right)
    # A difference that does not count is none.
    measured, none = (_in_band(ratio, test.at_least, test.at_most) for ratio in (figure, Fraction(1)))
    if sign is None and measured is not none:
        return _unknown(where, figure, why_not_known(left, right))
    if sign == 0 and figure != 1:
        return ClaimComparison(where, figure, none, "no difference")
    return ClaimComparison(where, figure, measured)


def _unknown(where: str, figure: Fraction | None, why: str) -> ClaimComparison:
    """Return a comparison of which the seeds do not tell how it comes out."""
    return ClaimComparison(where, figure, None, why, close=True)


def _same(spot: _Spot, test: Same, of: str, to: str) -> ClaimComparison:
    where = f"{spot.name}: {of} / {to}"
    left, right = spot.value(of), spot.value(to)
    if why := why_missing(left, right) or ("" if right.median else f"{to} is 0"):
        return ClaimComparison(where, None, None, why)
    figure = left.median / right.median
    same = same_within(left, right, Fraction(str(test.within)))
    if same is not None:
        return ClaimComparison(where, figure, same)
    if abs(left.median - right.median) <= spot.source.resolution:
        return ClaimComparison(where, figure, True, "closer than the clock could tell")
    sign = None if judge_values(left, right) else compare_values(left, right)
    if sign is None:
        return _unknown(where, figure, why_not_known(left, right))
    return ClaimComparison(where, figure, sign == 0, "" if sign else "no difference")


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


def _extreme(spot: _Spot, test: Extreme, description: str) -> ClaimComparison:
    """Compare with the nearest of the others; the figure is its value over ours, or ours over its."""
    lowest = test.kind == "lowest"
    where = f"{spot.name}: {description}"
    ours, others = spot.values(test.of), spot.values(test.among)
    margin = Fraction(str(test.margin))
    near: list[tuple[Fraction, str]] = []
    against: list[tuple[Fraction, str]] = []
    close: list[tuple[Fraction, str, str]] = []
    for own in ours.values():
        for name, other in others.items():
            if own.values and other.values:
                low, high = (own, other) if lowest else (other, own)
                far, sign = high.median / low.median if low.median else Fraction(0), compare_values(high, low)
                near.append((far, name))
                if sign is None and (margin == 1 or far >= margin):
                    close.append((far, name, why_not_known(low, high)))
                elif sign != 1 or far < margin:
                    against.append((far, name))
    why = why_missing(*ours.values(), *others.values())
    if not near:
        return ClaimComparison(where, None, None, why)
    figure, name = min(near)
    if against:
        return ClaimComparison(where, figure, False, f"against {min(against)[1]}")
    if why:
        return ClaimComparison(where, figure, None, why)
    if close:
        _, other_name, reason = min(close)
        return _unknown(where, figure, f"against {other_name}: {reason}")
    return ClaimComparison(where, figure, True, f"next is {name}")


def _order(spot: _Spot, test: ExpectedOrder) -> ClaimComparison:
    """Check an order; the figure is the smallest ratio of a later value to an earlier one."""
    where = f"{spot.name}: " + " <= ".join(", ".join(group) for group in test.groups)
    groups = [spot.values(group) for group in test.groups]
    ratios: list[tuple[Fraction, int | None, str, str, str]] = []
    for number, group in enumerate(groups):
        for later in groups[number + 1 :]:
            for lower, low in group.items():
                for upper, high in later.items():
                    if low.values and high.values and low.median:
                        sign = compare_values(low, high)
                        near = why_not_known(low, high) if sign is None else ""
                        ratios.append((high.median / low.median, sign, lower, upper, near))
    ratios.sort(key=lambda row: row[0])
    why = why_missing(*(value for group in groups for value in group.values()))
    wrong = [f"{lower} is above {upper}" for _, sign, lower, upper, _ in ratios if sign == 1]
    close = [f"{lower} and {upper}: {near}" for _, sign, lower, upper, near in ratios if sign is None]
    figure = ratios[0][0] if ratios else None
    if wrong:
        return ClaimComparison(where, figure, False, wrong[0])
    if why:
        return ClaimComparison(where, figure, None, why)
    return _unknown(where, figure, close[0]) if close else ClaimComparison(where, figure, True)


def _kept(spot: _Spot, test: Kept) -> ClaimComparison:
    """Check what stays in both layouts; the figure is the number of pairs that change places in the order."""
    where = f"{spot.step}: {test.what} of {', '.join(test.among)}, {' and '.join(test.between)}"
    here, there = (spot.values(test.among, layout) for layout in test.between)
    if why := why_missing(*here.values(), *there.values()):
        return ClaimComparison(where, None, None, why)
    if test.what == "order":
        return _kept_order(where, here, there)
    ends = [_at_the_end(values, test.what) for values in (here, there)]
    note = " | ".join(", ".join(sorted(sure | maybe)) for sure, maybe in ends)
    (first, first_maybe), (second, second_maybe) = ends
    if (first_maybe or second_maybe) and (first | first_maybe) & (second | second_maybe):
        return _unknown(where, None, f"{note}: these seeds do not tell them apart")
    return ClaimComparison(where, None, bool(first & second), note)


def _kept_order(where: str, here: dict[str, Series], there: dict[str, Series]) -> ClaimComparison:
    """Check that no pair changes places; the figure is the number of those that do."""
    turned: list[str] = []
    close: list[str] = []
    names = list(here)
    for number, name in enumerate(names):
        for other in names[number + 1 :]:
            before, after = (compare_values(values[name], values[other]) for values in (here, there))
            if before is None or after is None:
                close.append(f"{name} and {other}")
            elif before * after < 0:
                turned.append(f"{name} and {other}")
    figure = Fraction(len(turned))
    if close and not turned:
        return _unknown(where, figure, f"{'; '.join(close)}: these seeds do not tell them apart")
    return ClaimComparison(where, figure, not turned, "; ".join(turned))


def _at_the_end(values: dict[str, Series], what: str) -> tuple[set[str], set[str]]:
    """Return the names with the lowest or highest value or one as good, and those that few seeds leave as possible."""
    end = (min if what == "lowest" else max)(values.values(), key=lambda value: value.median)
    signs = {name: compare_values(value, end) for name, value in values.items()}
    sure = {name for name, value in values.items() if value is end or signs[name] == 0}
    return sure, {name for name, sign in signs.items() if sign is None} - sure


def _gain(spot: _Spot, test: Gain) -> ClaimComparison:
    """Compare gains; the figure is the gain of ``of``, the note that of the next."""
    where = f"{spot.step}: gain of {test.of}, {' to '.join(test.between)}"
    refs = (test.of, *test.among)
    first, second = (spot.values(refs, layout) for layout in test.between)
    why = why_missing(*first.values(), *second.values())
    gains: dict[str, Fraction] = {}
    for ref in refs:
        if first[ref].values and second[ref].values and second[ref].median:
            before, after = first[ref].median, second[ref].median
            gains[ref] = before / after if test.measure == "ratio" else before - after
    others = [(gain, ref) for ref, gain in gains.items() if ref != test.of]
    if test.of not in gains or not others:
        return ClaimComparison(where, None, None, why)
    most, name = max(others)
    gain, next_gain = gains[test.of], f"{float(most):.3g}"
    compared = [values[ref] for values in (first, second) for ref in gains]
    if near := too_close((max(gain, Fraction()), max(most, Fraction())), *compared):
        return _unknown(where, gain, f"against {name}: {near}")
    if gain <= most:
        return ClaimComparison(where, gain, False, f"{name} gains {next_gain}")
    return ClaimComparison(where, gain, None if why else True, why or f"next is {name}: {next_gain}")


def _spread(spot: _Spot, test: Spread) -> ClaimComparison:
    """Compare spreads; the figure is the one over the other."""
    where = f"{spot.name}: spread of {', '.join(test.of)} / of {', '.join(test.than)}"
    of, than = spot.values(test.of), spot.values(test.than)
    if why := why_missing(*of.values(), *than.values()):
        return ClaimComparison(where, None, None, why)
    spreads = []
    for values in (of, than):
        medians = [value.median for value in values.values()]
        if not min(medians):
            return ClaimComparison(where, None, None, "a value is 0")
        spreads.append(max(medians) / min(medians))
    figure = spreads[0] / spreads[1]
    if why := too_close((spreads[0], spreads[1]), *of.values(), *than.values()):
        return _unknown(where, figure, why)
    return ClaimComparison(where, figure, figure < 1)
