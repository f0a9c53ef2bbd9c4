"""The two seeds by which cells differ that are otherwise alike."""

from typing import NamedTuple


class Seeds(NamedTuple):
    """What a cell repeats, in the order in which cells are sorted."""

    corpus: int
    """Which files there are, and which of them are deleted."""
    run: int
    """The platters' first angle, the guest's entropy, the moment of the first step."""
