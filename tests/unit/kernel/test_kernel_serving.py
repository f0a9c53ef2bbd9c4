"""Of a filesystem that a kernel lacks it is said which kernels have it."""

from pathlib import Path

import pytest

from agelab.kernel import Kernel, Modules, guest_needs, recipes
from agelab.kernel.modules import BUILTIN, CONFIG, INDEX, index
from agelab.store.artefacts import Artefact, Store


def add(store: Store, release: str, modules: tuple[str, ...], config: str = "", kind: str = "package") -> Artefact:
    """Put a kernel with these modules built in into the store."""

    def build(directory: Path) -> None:
        (directory / "modules").mkdir()
        (directory / INDEX).write_bytes(index(()))
        (directory / BUILTIN).write_text("".join(f"kernel/{name}.ko\n" for name in modules))
        (directory / CONFIG).write_text(config)

    inputs = {kind: f"linux-image-{release}", "version": f"{release}-1", "release": release}
    return store.obtain("kernel", inputs, build)


def of(artefact: Artefact, release: str) -> Kernel:
    return Kernel(f"debian:{release}", release, f"{release}-1", artefact=artefact)


def test_a_kernel_that_has_all_lacks_nothing(store: Store) -> None:
    found = add(store, "6.1.0", ("ext4",), "CONFIG_EXT4_FS=m\n")
    modules = Modules.of("6.1.0", found.directory)
    assert guest_needs.why_not(modules, ["ext4"], ["EXT4_FS"]) == ""
    assert guest_needs.why_not(modules, ["ntfs3"], []) == "kernel 6.1.0 has no module ntfs3"
    assert guest_needs.why_not(modules, ["ext4"], ["UFS_FS_WRITE"]).endswith("without CONFIG_UFS_FS_WRITE")


def test_debians_kernels_of_the_store_are_named_the_newest_first(store: Store) -> None:
    old = of(add(store, "6.1.0", ("ext4",)), "6.1.0")
    for release in ("6.9.1", "6.12.117"):
        add(store, release, ("ext4", "ntfs3"))
    add(store, "6.13.0", ("ext4",))
    add(store, "6.20.0", ("ext4", "ntfs3"), kind="tree")  # built here: no spec finds it by its release
    assert guest_needs.kernels_with(old, ["ntfs3"], [], store) == ["6.12.117", "6.9.1"]


@pytest.fixture
def another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe beside that of ufs, for a filesystem that the small configuration does not have."""
    directory = tmp_path / "kernels"
    directory.mkdir()
    (directory / "ufs.toml").write_text((recipes.DIRECTORY / "ufs.toml").read_text())
    (directory / "reiser4.toml").write_text(
        'name = "reiser4"\nsummary = "s"\nsource = "source:5.10"\nconfig = ["CONFIG_REISER4_FS=m"]\n'
    )
    monkeypatch.setattr(recipes, "DIRECTORY", directory)


@pytest.mark.usefixtures("another")
@pytest.mark.parametrize(
    ("modules", "options", "recipe"),
    [
        (["ufs"], ["UFS_FS_WRITE"], "recipe:ufs"),
        (["reiser4"], [], "recipe:reiser4"),
        (["reiser4", "crc32c_generic"], [], "recipe:reiser4"),  # that is in the small configuration
        (["reiser4", "nls_iso8859-1"], [], "recipe:reiser4"),  # as vfat.toml
        # The small configuration of a recipe has nilfs2 too, but that says nothing of the tree that it is set in.
        (["nilfs2"], [], None),
    ],
)
@pytest.mark.parametrize("own", [("ufs", "crc32c_generic"), ("ufs",)], ids=["with crc32c", "without"])
def test_a_recipe_is_named_that_switches_on_what_is_lacking(
    store: Store, own: tuple[str, ...], modules: list[str], options: list[str], recipe: str | None
) -> None:
    kernel = of(add(store, "6.1.0", own, "CONFIG_UFS_FS=m\n"), "6.1.0")
    assert guest_needs.kernels_with(kernel, modules, options, store) == ([recipe] if recipe else [])
