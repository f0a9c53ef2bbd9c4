"""What a guest says of crash states, and where its run lies."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agelab.runner.crash import crash
from agelab.runner.crash.guests import Guests, JoinedEvents
from agelab.store.artefacts import Store


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


def test_runs_that_begin_in_the_same_second_lie_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def ready(*_: object) -> Iterator[Guests]:
        raise Spent
        yield

    monkeypatch.setattr(Guests, "ready", ready)
    question, store = crash.ask("create A/new; sync", "ext4", "debian:6.1", "today"), Store(tmp_path)
    for _ in range(3):
        with pytest.raises(Spent):
            crash.run(question, store)
    assert len(list(store.crashes.iterdir())) == 3
