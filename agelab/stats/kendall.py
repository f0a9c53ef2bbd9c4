"""Kendall's tau-b: how far two rankings of the same things agree, and how often chance agrees as well."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from math import comb, isnan, prod

from scipy.stats import kendalltau

Groups = tuple[int, ...]
"""How many things share each value, the lowest value first."""


def competition_ranks(values: Sequence[Fraction]) -> list[int]:
    """Rank values from 1, the lowest; equal values have equal ranks, and the next counts them all: 1, 2, 2, 4."""
    return [1 + sum(other < value for other in values) for value in values]


def tau_b(one: Sequence[Fraction], other: Sequence[Fraction]) -> float | None:
    """Return Kendall's tau-b of two rankings of the same things; None for fewer than two, or all ties on a side.

    (concordant - discordant pairs) / sqrt((pairs not tied in the one) * (pairs not tied in the other)): M. G. Kendall,
    "The treatment of ties in ranking problems", Biometrika 33 (1945), 239-251.
    """
    if not _can_agree(one, other):
        return None
    # Ranks, not the values themselves: two fractions never become one float.
    found = float(kendalltau(competition_ranks(one), competition_ranks(other), variant="b").statistic)
    return None if isnan(found) else found


def tau_b_chance(one: Sequence[Fraction], other: Sequence[Fraction]) -> Fraction | None:
    """Return the share of all orders of the other's values with a tau-b at least as high; None where there is none.

    Exact, with ties too. Whatever the order, the pairs that are tied stay as many, so tau-b is as high as the
    concordant pairs less the discordant ones.
    """
    if not _can_agree(one, other):
        return None
    pairs = list(zip(one, other, strict=True))
    seen = sum(_sign(b[0] - a[0]) * _sign(b[1] - a[1]) for at, a in enumerate(pairs) for b in pairs[at + 1 :])
    orders = _orders(_groups(one), _groups(other))
    return Fraction(sum(ways for score, ways in orders.items() if score >= seen), sum(orders.values()))


def _can_agree(one: Sequence[Fraction], other: Sequence[Fraction]) -> bool:
    return len(set(one)) > 1 and len(set(other)) > 1


def _groups(values: Sequence[Fraction]) -> Groups:
    found = Counter(values)
    return tuple(found[value] for value in sorted(found))


@cache
def _orders(one: Groups, other: Groups) -> Counter[int]:
    """Count all orders by their score, concordant less discordant pairs.

    The groups of the one take their values from what is left of the other's, the lowest group first: each value taken
    is concordant with all higher ones that are left, discordant with all lower ones.
    """
    scores: dict[Groups, Counter[int]] = {other: Counter({0: 1})}
    for size in one:
        then: dict[Groups, Counter[int]] = {}
        for left, counted in scores.items():
            for taken in _choices(left, size):
                rest = tuple(have - take for have, take in zip(left, taken, strict=True))
                gain = sum(
                    take * (sum(rest[at + 1 :]) - sum(rest[:at])) for at, take in enumerate(taken) if take
                )
                ways = prod(map(comb, left, taken))
                into = then.setdefault(rest, Counter())
                for score, number in counted.items():
                    into[score + gain] += ways * number
        scores = then
    return scores[(0,) * len(other)]


def _choices(left: Groups, size: int) -> Iterator[Groups]:
    """Yield each way to take so many from the groups that are left."""
    if size == 1:
        yield from (tuple(int(at == one) for at in range(len(left))) for one, have in enumerate(left) if have)
        return
    yield from (taken for taken in product(*(range(have + 1) for have in left)) if sum(taken) == size)


def _sign(value: Fraction) -> int:
    return (value > 0) - (value < 0)
