"""Kendall's tau-b: how far two rankings of the same things agree, and how often chance agrees as well."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import comb, prod, sqrt

Groups = tuple[int, ...]
"""How many things share each value, the lowest value first."""


def competition_ranks(values: Sequence[Fraction]) -> list[int]:
    """Rank values from 1, the lowest; equal values have equal ranks, and the next counts them all: 1, 2, 2, 4."""
    return [1 + sum(other < value for other in values) for value in values]


def tau_b(first: Sequence[Fraction], second: Sequence[Fraction]) -> float | None:
    """Return Kendall's tau-b of two rankings of the same things; None for fewer than two, or all ties on a side.

    (concordant - discordant pairs) / sqrt((pairs not tied in the first) * (pairs not tied in the second)): M. G.
    Kendall, "The treatment of ties in ranking problems", Biometrika 33 (1945), 239-251.
    """
    if not _can_agree(first, second):
        return None
    tau = float(_score(first, second))
    for side in (first, second):
        tau /= sqrt(comb(len(side), 2) - sum(comb(size, 2) for size in _groups(side)))
    return max(-1.0, min(1.0, tau))


def tau_b_chance(first: Sequence[Fraction], second: Sequence[Fraction]) -> Fraction | None:
    """Return the share of all orders of the second's values with a tau-b at least as high; None where there is none.

    Exact, with ties too. Whatever the order, the pairs that are tied stay as many, so tau-b is as high as the
    concordant pairs less the discordant ones.
    """
    if not _can_agree(first, second):
        return None
    seen = _score(first, second)
    orders = _orders(_groups(first), _groups(second))
    return Fraction(sum(ways for score, ways in orders.items() if score >= seen), sum(orders.values()))


def _can_agree(first: Sequence[Fraction], second: Sequence[Fraction]) -> bool:
    return len(set(first)) > 1 and len(set(second)) > 1


def _score(first: Sequence[Fraction], second: Sequence[Fraction]) -> int:
    """Return the concordant pairs less the discordant ones."""
    pairs = combinations(zip(first, second, strict=True), 2)
    return sum(_sign(b[0] - a[0]) * _sign(b[1] - a[1]) for a, b in pairs)


def _groups(values: Sequence[Fraction]) -> Groups:
    counts = Counter(values)
    return tuple(counts[value] for value in sorted(counts))


@cache
def _orders(first: Groups, second: Groups) -> Counter[int]:
    """Count all orders by their score, concordant less discordant pairs.

    The groups of the first take their values from what is left of the second's, the lowest group first: each value
    taken is concordant with all higher ones that are left, discordant with all lower ones.
    """
    scores: dict[Groups, Counter[int]] = {second: Counter({0: 1})}
    for size in first:
        then: dict[Groups, Counter[int]] = {}
        for left, counted in scores.items():
            for taken in _choices(left, size):
                rest = tuple(have - take for have, take in zip(left, taken, strict=True))
                gain = sum(take * (sum(rest[at + 1 :]) - sum(rest[:at])) for at, take in enumerate(taken) if take)
                ways = prod(map(comb, left, taken))
                into = then.setdefault(rest, Counter())
                for score, number in counted.items():
                    into[score + gain] += ways * number
        scores = then
    return scores[(0,) * len(second)]


def _choices(left: Groups, size: int) -> Iterator[Groups]:
    """Yield each way to take so many from the groups that are left."""
    if size == 1:
        yield from (tuple(int(at == place) for at in range(len(left))) for place, have in enumerate(left) if have)
        return
    yield from (taken for taken in product(*(range(have + 1) for have in left)) if sum(taken) == size)


def _sign(value: Fraction) -> int:
    return (value > 0) - (value < 0)
