"""What a guest says of crash states."""

from typing import Any

import pytest

from agelab.runner.crash.guests import JoinedEvents


class Spent(Exception):
    """A budget has ended."""


def test_a_tree_comes_in_several_lines() -> None:
    heard: list[dict[str, Any]] = []
    joined = JoinedEvents(heard.append)
    joined.hear({"event": "looked", "tree": ["a"], "goes_on": True})
    assert not heard
    joined.hear({"event": "more", "tree": ["b"], "fsck": 0})
    assert heard == joined.events == [{"event": "looked", "tree": ["a", "b"], "fsck": 0}]


def test_nothing_is_heard_after_the_budget_has_ended() -> None:
    def judge(event: dict[str, Any]) -> None:
        raise Spent

    joined = JoinedEvents(judge)
    with pytest.raises(Spent):
        joined.hear({"event": "looked", "tree": ["a"]})
    joined.hear({"event": "more", "tree": ["b"]})  # the line before it was lost
    assert joined.events == [{"event": "looked", "tree": ["a"]}]
