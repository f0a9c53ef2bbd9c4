"""Which commit to judge next after some were skipped, so that a search keeps to its length.

Git takes the middle of what is left. Where that was skipped it jumps away from it, at random and as far as it happens
to be: well out of a range of commits that do not build, and now and then so far that several steps more are needed.
Its choice is followed wherever the search can still end in time.
"""

from collections.abc import Collection, Mapping, Sequence

SKIPPED_PER_EXTRA_STEP = 4
"""Skipped commits for which the search may become a step longer: to leave a broken range costs less than to
cross it."""
MAX_EXTRA_STEPS = 2
"""Steps by which it may become longer at most."""
MAX_COMMITS = 20_000
"""Commits of which it is worked out; where more are left, no choice is bad for long."""

History = Mapping[str, Sequence[str]]
"""Each commit that could be the first bad one to its parents, no commit before one that descends from it."""


def extra_steps(skipped: int) -> int:
    """By how many steps the search may become longer when so many of those that are left were skipped."""
    return min(MAX_EXTRA_STEPS, skipped // SKIPPED_PER_EXTRA_STEP)


def choose(history: History, bad: str, skipped: Collection[str], suggested: str, left: int) -> str:
    """The commit to judge: ``suggested``, if whatever comes of it the search can end with ``left`` verdicts.

    Otherwise one of those with which it can, as far from the skipped ones as may be; or where there is none, as among
    branches may be, the one that leaves the fewest. ``bad`` is the commit that all others lead to.
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
        """How many are left to be judged after this one, if it goes badly."""
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
