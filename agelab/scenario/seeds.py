"""The two seeds by which cells differ that are otherwise alike."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Seeds(NamedTuple):
    """What a cell repeats, in the order in which cells are sorted."""

    corpus: int
    """Which files there are, and which of them are deleted."""
    run: int
    """The platters' first angle, the guest's entropy, the moment of the first step."""


MOST_NAMED = 20
"""Seeds that are named one by one; of more the ranges."""
CellName = tuple[str, str, Seeds]
"""Variant, layout and seeds, by which the cells of a run are told apart."""


def seeds_text(seeds: Iterable[Seeds], beside: Iterable[Seeds] = ()) -> str:
    """Name seeds: ``seed 1``, ``seeds 1,2,3``, ``seeds 1,2,3 of corpora 1,2``.

    Corpus 1 alone goes without saying, unless others of another corpus stand ``beside`` it.
    """
    by_corpus: dict[int, list[int]] = {}
    for pair in dict.fromkeys(seeds):
        by_corpus.setdefault(pair.corpus, []).append(pair.run)
    alike: dict[tuple[int, ...], list[int]] = {}
    for corpus, runs in by_corpus.items():
        alike.setdefault(tuple(runs), []).append(corpus)
    if list(by_corpus) in ([1], []) and {pair.corpus for pair in beside} <= {1}:
        return _several("seed", by_corpus.get(1, []))
    return ", ".join(
        f"{_several('seed', runs)} of {_several('corpus', corpora, 'corpora')}" for runs, corpora in alike.items()
    )


def seeds_key(seeds: Seeds) -> str:
    """Return the key of a cell's value in JSON: its run seed, and behind it the corpus seed unless that is 1."""
    return str(seeds.run) if seeds.corpus == 1 else f"{seeds.run}@{seeds.corpus}"


def ranges(numbers: Sequence[int]) -> str:
    """Shorten a list of numbers: ``1-3,7`` for 1, 2, 3, 7."""
    rows: list[list[int]] = []
    for number in numbers:
        if rows and number == rows[-1][-1] + 1:
            rows[-1].append(number)
        else:
            rows.append([number])
    return ",".join(f"{row[0]}-{row[-1]}" if len(row) > 1 else str(row[0]) for row in rows)


def _several(word: str, numbers: Sequence[int], plural: str = "") -> str:
    named = ",".join(map(str, numbers)) if len(numbers) <= MOST_NAMED else ranges(numbers)
    return f"{word if len(numbers) == 1 else plural or f'{word}s'} {named}"
