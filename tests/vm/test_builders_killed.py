"""agelab killed while a builder with programs and mounts of its own is at work."""

from pathlib import Path

import pytest

from agelab import atomic
from tests.vm.chaos import Chaos, cleaned, home, wait_until

pytestmark = [pytest.mark.vm, pytest.mark.full]


@pytest.mark.parametrize(
    ("kind", "at_work"),
    [("root", "mmdebstrap.log"), ("image", "console.log")],
    ids=["mmdebstrap, and apt", "packer, and its guest"],
)
def test_a_builder_ends_with_the_agelab_that_is_killed(tmp_path: Path, kind: str, at_work: str) -> None:
    store = home(tmp_path)
    for own in ("image", kind):
        (store.root / own).unlink(missing_ok=True)
    chaos = Chaos(store, ("image", "build"))
    child = chaos.start(*chaos.words)

    def busy() -> bool:
        said = list((store.root / kind).glob(f".*{atomic.SUFFIX}/work/{at_work}"))
        return bool(said) and said[0].stat().st_size > 0

    try:
        assert wait_until(busy, 300), chaos.said()
    finally:
        child.kill()
        child.wait()
    assert wait_until(lambda: not chaos.still_there(), 5), chaos.still_there()
    left = cleaned(store)
    assert [line.startswith(f"unfinished {store.root / kind}/.") for line in left] == [True]
    assert not list((store.root / kind).iterdir())
