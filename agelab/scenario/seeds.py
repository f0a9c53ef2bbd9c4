"""The two seeds by which cells differ that are otherwise alike."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Seeds(NamedTuple):
    """What a cell repeats, in the order in which cells are sorted."""

    corpus: int
    """Which files there are, and which of them are deleted."""
    run: int
    """The platters' first angle, the guest's entropy, the moment of the first step."""


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
        f"{_several('seed', runs)} of {_several('corpus', corpora, 'corpora')}"
        for runs, corpora in alike.items()
    )


def seeds_key(seeds: Seeds) -> str:
    """Return the key of a cell's value in JSON: its run seed, and behind it the corpus seed unless that is 1."""
    return str(seeds.run) if seeds.corpus == 1 else f"{seeds.run}@{seeds.corpus}"


def _several(word: str, numbers: Sequence[int], plural: str = "") -> str:
    return f"{word if len(numbers) == 1 else plural or f'{word}s'} {','.join(map(str, numbers))}"
