"""agelab killed with SIGKILL at random moments, and resumed, again and again: nothing is lost, wrong or left."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from agelab.store.artefacts import Store
from tests.vm.chaos import Chaos, cheap, cleaned, domains, home, wait_until

pytestmark = pytest.mark.vm
EARLY = 0.6
"""The share of moments that lie in the time before a guest runs, or shortly after."""


@contextmanager
def own_guests(store: Store, aside: Path) -> Iterator[None]:
    """Hide the saved guests that the store takes from that of all tests, so that they are made and killed at that."""
    guests = store.root / "guest"
    shared = guests.readlink()
    guests.unlink()
    yield
    if guests.exists():
        guests.rename(aside / f"guests-{time.monotonic_ns()}")
    guests.symlink_to(shared)


@pytest.mark.parametrize("kills", [5, pytest.param(200, marks=pytest.mark.full)])
def test_nothing_is_lost_wrong_or_left_however_often_agelab_is_killed(tmp_path: Path, kills: int) -> None:
    store = home(tmp_path)
    words = ("run", str(cheap(tmp_path)), "--filesystem", "ext4", "--seeds", "1,2", "--jobs", "2")
    chaos = Chaos(store, words, seed=kills)
    started = time.monotonic()
    undisturbed = store.runs / chaos.run(*words)
    whole = time.monotonic() - started
    expected = chaos.results(undisturbed)
    assert {status for _, _, status, _, _ in expected} == {"ok"}
    rounds = 0
    while chaos.kills < kills:
        rounds += 1
        corpora = store.root / "corpus"
        if rounds % 5 == 1 and corpora.exists():  # so that it is made anew, and killed at that, too
            shutil.rmtree(corpora)
        with own_guests(store, tmp_path) if rounds % 5 == 3 else nullcontext():
            early = chaos.random.random() < EARLY
            chaos.kill(chaos.random.uniform(0, whole / (6 if early else 1.7)))
        print(f"{chaos.kills} kills, {rounds} rounds, {time.monotonic() - started:.0f} s", flush=True)
    while any(chaos.left(run) for run in chaos.plans()):
        before = chaos.recorded()
        chaos.run(*chaos.next())
        chaos.nothing_lost(before)
    finished = chaos.plans()
    assert [chaos.results(run) for run in finished] == [expected] * len(finished)
    assert len(finished) > 1
    assert wait_until(lambda: not chaos.still_there()), chaos.still_there()
    assert domains(store) == []
    assert not [path for run in finished for path in run.glob("cells/*/*disk-*")]
    found = len(cleaned(store))
    print(f"{chaos.kills} kills in {time.monotonic() - started:.0f} s, {len(finished)} runs, {found} leftovers removed")
