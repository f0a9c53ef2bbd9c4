"""agelab killed while a builder with programs and mounts of its own is at work."""

from dataclasses import dataclass

import pytest

from agelab.base import atomic
from agelab.cli.options import open_store
from agelab.store.artefacts import Store
from tests.vm.chaos import Chaos, cleaned, home, wait_until

pytestmark = [pytest.mark.vm, pytest.mark.full]

IMAGE = ("image", "build")
KERNEL = ("kernel", "fetch", "debian:6.1")
"""Also builds the modelled drive's module for it."""


@dataclass(frozen=True)
class Moment:
    """When to kill: as soon as the unfinished artefact of a kind holds something there."""

    kind: str
    holds: str
    words: tuple[str, ...]
    own: tuple[str, ...] = ()
    """Further kinds that are made anew."""

    def has_come(self, store: Store) -> bool:
        found = list((store.root / self.kind).glob(f".*{atomic.SUFFIX}/{self.holds}"))
        return any(path.is_dir() or path.stat().st_size for path in found)


MOMENTS = {
    "mmdebstrap, and apt": Moment("root", "work/mmdebstrap.log", IMAGE, ("image",)),
    "the root is packed": Moment("root", "root.squashfs", IMAGE, ("image",)),
    "packer begins": Moment("image", "work/packer.log", IMAGE),
    "packer, and its guest": Moment("image", "work/console.log", IMAGE),
    "the guest has proved": Moment("image", "work/proof.json", IMAGE),
    "the image is sealed": Moment("image", "root.squashfs", IMAGE),
    "a kernel is unpacked": Moment("kernel", "unpacked/*", KERNEL),
    "a compiler is unpacked": Moment("buildroot", "tree/usr", KERNEL, ("drive",)),
    "a compiler's root is packed": Moment("buildroot", "root.tar", KERNEL, ("drive",)),
    "a module is compiled": Moment("drive", "work/root/usr", KERNEL),
}


@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_a_builder_ends_with_the_agelab_that_is_killed(
    moment: Moment, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = home(tmp_path_factory.mktemp("killed"))
    for own in (moment.kind, *moment.own):
        (store.root / own).unlink(missing_ok=True)
    chaos = Chaos(store, moment.words)
    child = chaos.start(*chaos.words)
    try:
        assert wait_until(lambda: moment.has_come(store), 300), chaos.said()
    finally:
        child.kill()
        child.wait()
    assert wait_until(lambda: not chaos.still_there(), 5), chaos.still_there()
    left = cleaned(store)
    kinds = [line.removeprefix(f"unfinished {store.root}/").partition("/.")[0] for line in left]
    assert kinds.count(moment.kind) == 1 and {*kinds} <= {moment.kind, *moment.own}, left
    assert not list((store.root / moment.kind).iterdir())
    assert chaos.start(*chaos.words).wait() == 0, chaos.said()
    [made] = store.all(moment.kind)
    known = open_store().find(moment.kind, made.key)
    assert known and made.manifest.content == known.manifest.content and not made.damage()
