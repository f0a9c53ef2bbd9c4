"""Choose the next commit after some were skipped, so that the search keeps its expected length.

Git takes the middle of the remaining commits. If that was skipped, it jumps away at random: well out of a range of
commits that do not build, but sometimes so far that several more steps are needed. Git's choice is followed as long
as the search can still end in time.
"""

from collections.abc import Collection, Mapping, Sequence

SKIPPED_PER_EXTRA_STEP = 4
"""Skipped commits that allow one extra step: leaving a broken range costs less than crossing it."""
MAX_EXTRA_STEPS = 2
"""Maximum number of extra steps."""
MAX_COMMITS = 20_000
"""With more commits than this git's choice is followed: with so many left no choice costs much."""

History = Mapping[str, Sequence[str]]
"""Parents of each commit that could be the first bad one; descendants come before their ancestors."""


def extra_steps(skipped: int) -> int:
    """Return the number of extra steps allowed after so many skipped commits."""
    return min(MAX_EXTRA_STEPS, skipped // SKIPPED_PER_EXTRA_STEP)


def choose(history: History, bad: str, skipped: Collection[str], suggested: str, left: int) -> str:
    """Return ``suggested`` if the search can then end within ``left`` verdicts, whatever its verdict.

    Otherwise a commit with which it can, as far from the skipped ones as possible; if there is none, as may happen
    among branches, the commit that leaves the fewest. ``bad`` is the commit that descends from all others.
    """
    if len(history) > MAX_COMMITS:
        return suggested
    order = list(history)
    number = {commit: place for place, commit in enumerate(order)}
    reached: dict[str, int] = {}
    for commit in reversed(order):
        bits = 1 << number[commit]
        for parent in history[commit]:
            bits |= reached.get(parent, 0)
        reached[commit] = bits
    open_ones = [commit for commit in order if commit != bad and commit not in skipped]
    untested = sum(1 << number[commit] for commit in open_ones)
    if not open_ones:
        return suggested

    def worst(commit: str) -> int:
        """Return how many commits are left to be judged after this one in the worse case."""
        below = (reached[commit] & untested).bit_count()
        return max(below - 1, len(open_ones) - below)

    def in_time(commit: str) -> bool:
        return 1 + worst(commit).bit_length() <= left

    if suggested in open_ones and in_time(suggested):
        return suggested
    fitting = [commit for commit in open_ones if in_time(commit)]
    if not fitting:
        return min(open_ones, key=worst)
    avoided = [number[commit] for commit in skipped if commit in number]
    return max(
        fitting,
        key=lambda commit: (min((abs(number[commit] - one) for one in avoided), default=0), -worst(commit)),
    )
