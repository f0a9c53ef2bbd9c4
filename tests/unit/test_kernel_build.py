"""Kernels that are built: what their keys are made of, and that nothing is compiled twice or in vain."""

import os
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from agelab import buildroot, kernel
from agelab.buildroot import BuildFailed, Workshop
from agelab.drive import module
from agelab.errors import InputError
from agelab.kernel import build, build_inputs, config, provenance
from agelab.store import Store
from tests.unit.test_kernel_source import PATCH, files

GOOD = config.NEEDED.read_text() + config.SMALL.read_text() + 'CONFIG_CC_VERSION_TEXT="gcc 12"\n'


class Make:
    """Stands in for the programs of a workshop: make configures, compiles and installs at once."""

    def __init__(self) -> None:
        self.said: list[list[str]] = []
        self.config = GOOD
        self.fails = ""

    def run(self, shop: Workshop, argv: list[str]) -> str:
        self.said.append(argv)
        if argv[-1] in ("allnoconfig", "olddefconfig"):
            _renamed_to(shop.build / ".config", self.config)
        elif argv[-1] == "modules" and "vmlinux" in argv:
            if self.fails:
                raise BuildFailed(self.fails)
            place = shop.build / "include" / "config"
            place.mkdir(parents=True, exist_ok=True)
            _renamed_to(place / "kernel.release", "6.1.7-rc1\n")
            (shop.build / "vmlinux").write_bytes(b"\x7fELF kernel")
        elif argv[0].endswith("strip") and argv[1] == "-s":
            _renamed_to(shop.build / "vmlinux.stripped", "\x7fELF")
        elif argv[-1] == "modules_install":
            tree = shop.build / "installed" / "lib" / "modules" / "6.1.7-rc1"
            tree.mkdir(parents=True)
            (tree / "modules.builtin").write_text("kernel/fs/ext4/ext4.ko\n")
        elif "M=/tmp/module" in argv:
            (shop.writable["module"] / "agedrive.ko").write_text("module")
        return ""

    @property
    def compiled(self) -> int:
        return sum("vmlinux" in argv for argv in self.said)


def _renamed_to(path: Path, text: str) -> None:
    """Write a file as make's programs do: what was there is replaced, not written through."""
    path.unlink(missing_ok=True)
    path.write_text(text)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Make:
    fake = Make()
    monkeypatch.setattr(Workshop, "run", lambda shop, argv: fake.run(shop, argv))
    monkeypatch.setattr(buildroot, "unpacked_root", lambda toolchain, store: toolchain.directory)
    monkeypatch.setattr(
        build_inputs,
        "toolchain",
        lambda store, progress: store.obtain("buildroot", {}, lambda directory: None),
    )
    return fake


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "home")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return files(tmp_path / "linux")


def test_a_built_kernel_is_a_bundle_like_any_other_and_is_built_once(
    made: Make, store: Store, tree: Path
) -> None:
    found = kernel.resolve(f"tree:{tree}", store)
    assert (found.release, found.version) == ("6.1.7-rc1", "6.1.7-rc1")
    assert found.boot_image.read_bytes() == b"\x7fELF" and found.modules.has("ext4")
    assert kernel.resolve(f"tree:{tree}", store).key == found.key and made.compiled == 1
    assert provenance.identity(found.artefact) == ("6.1.7-rc1", "6.1.7-rc1")
    came = provenance.of(found)
    assert (came.kind, came.compiler, came.sources[0].name) == ("built", "gcc 12", f"tree:{tree}")


def test_the_drive_is_built_with_the_kernels_objects_and_these_are_not_made_again(
    made: Make, store: Store, tree: Path
) -> None:
    found = kernel.resolve(f"tree:{tree}", store)
    assert module.obtain(found, store).read_text() == "module"
    assert made.compiled == 1
    # Another kernel of the same tree takes the objects; the drive of the first one brings them back.
    (tree / "fs/inode.c").write_text("other\n")
    kernel.resolve(f"tree:{tree}", store)
    assert made.compiled == 2
    (tree / "fs/inode.c").write_text("one\ntwo\nthree\n")
    sources = tree.parent / "drive"
    sources.mkdir()
    (sources / "Kbuild").write_text("obj-m += agedrive.o\n")
    module.obtain(kernel.resolve(f"tree:{tree}", store), store, sources=sources)
    assert made.compiled == 3


def test_the_key_is_of_source_patches_and_configuration_and_not_of_the_place(
    made: Make, store: Store, tree: Path, tmp_path: Path
) -> None:
    patch, more = tmp_path / "a.patch", tmp_path / "more.config"
    patch.write_text(PATCH)
    more.write_text("CONFIG_PVH=y\nCONFIG_MORE=y\n")
    made.config = GOOD + "CONFIG_MORE=y\n"
    elsewhere = files(tmp_path / "elsewhere")
    keys = {
        spec: kernel.resolve(spec, store).key
        for spec in (
            f"tree:{tree}",
            f"tree:{elsewhere}",
            f"tree:{tree},patches={patch}",
            f"tree:{tree},config={more}",
            f"tree:{tree},base={more}",
        )
    }
    assert keys[f"tree:{tree}"] == keys[f"tree:{elsewhere}"]
    assert len(set(keys.values())) == 4


def test_what_a_guest_needs_is_looked_at_before_anything_is_compiled(
    made: Make, store: Store, tree: Path
) -> None:
    made.config = GOOD.replace("CONFIG_OVERLAY_FS=m", "")
    with pytest.raises(InputError, match="lacks options that a guest needs: CONFIG_OVERLAY_FS"):
        kernel.resolve(f"tree:{tree}", store)
    assert made.compiled == 0


def test_a_configuration_is_looked_at_alone_and_the_next_build_begins_with_it(
    made: Make, store: Store, tree: Path
) -> None:
    kernel.resolve(f"tree:{tree}", store)
    build.check_configuration(f"tree:{tree}", store)
    assert sum(argv[-1] == "allnoconfig" for argv in made.said) == 1  # it is there already
    (tree / "fs/inode.c").write_text("other\n")
    build.check_configuration(f"tree:{tree}", store)
    assert sum(argv[-1] == "allnoconfig" for argv in made.said) == 2 and made.compiled == 1
    made.config = GOOD.replace("CONFIG_OVERLAY_FS=m", "")
    with pytest.raises(InputError, match="lacks options that a guest needs: CONFIG_OVERLAY_FS"):
        build.check_configuration(f"tree:{tree}", store)
    made.config = GOOD
    kernel.resolve(f"tree:{tree}", store)
    assert made.compiled == 2


def test_a_configuration_that_is_no_text_is_one_clear_error(
    made: Make, store: Store, tree: Path, tmp_path: Path
) -> None:
    packed = tmp_path / "config.gz"
    packed.write_bytes(b"\x1f\x8b\x08\x00\xff\xfe")
    for option in ("base", "config"):
        with pytest.raises(InputError, match=r"config\.gz is not a text file"):
            kernel.resolve(f"tree:{tree},{option}={packed}", store)


def test_what_did_not_build_is_no_kernel_and_is_tried_again(made: Make, store: Store, tree: Path) -> None:
    made.fails = "fs/inode.c:2: error: oops"
    with pytest.raises(BuildFailed, match="oops"):
        kernel.resolve(f"tree:{tree}", store)
    made.fails = ""
    kernel.resolve(f"tree:{tree}", store)
    assert made.compiled == 2


def test_what_a_build_that_was_killed_has_left_half_written_is_not_taken_for_whole(
    made: Make, store: Store, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, found = made.run, list[bool]()

    def killed(shop: Workshop, argv: list[str]) -> str:
        if "vmlinux" in argv:
            found.append((shop.build / "half.o").exists())
            (shop.build / "half.o").write_text("\x7fEL")
            if len(found) == 1:
                raise KeyboardInterrupt
        return run(shop, argv)

    monkeypatch.setattr(made, "run", killed)
    with pytest.raises(KeyboardInterrupt):
        kernel.resolve(f"tree:{tree}", store)
    kernel.resolve(f"tree:{tree}", store)
    (tree / "fs/inode.c").write_text("other\n")
    kernel.resolve(f"tree:{tree}", store)
    assert found == [False, False, True]  # what came to its end stays for the next kernel


def test_the_small_configuration_is_filled_up_with_nothing_and_a_base_with_defaults(
    made: Make, store: Store, tree: Path, tmp_path: Path
) -> None:
    base = tmp_path / "config-6.1"
    base.write_text('CONFIG_PVH=y\nCONFIG_SYSTEM_TRUSTED_KEYS="debian/certs"\n')
    kernel.resolve(f"tree:{tree}", store)
    kernel.resolve(f"tree:{tree},base={base}", store)
    targets = [argv[-1] for argv in made.said if argv[-1].endswith("config")]
    assert targets == ["allnoconfig", "olddefconfig"]
    building = build_inputs.plan_build(f"tree:{tree},base={base}", store, lambda line: None)
    assert config.options(building.config_text)["CONFIG_SYSTEM_TRUSTED_KEYS"] == '""'


def test_what_is_said_twice_or_in_a_comment_makes_no_other_kernel(
    made: Make, store: Store, tree: Path, tmp_path: Path
) -> None:
    fragment = tmp_path / "mine.config"
    fragment.write_text("# how QEMU enters the kernel\nCONFIG_PVH=n\nCONFIG_PVH=y\n")
    keys = {kernel.resolve(f"tree:{tree}{more}", store).key for more in ("", f",config={fragment}")}
    assert len(keys) == 1 and made.compiled == 1


LEFT = {
    "a link in the place of what agelab writes": ("agelab.config", "{host}/overwritten", None),
    "another": (".config", "{host}/overwritten", r"leaves '\.config'"),
    "a link in the place of the kernel": ("vmlinux.stripped", "{host}/secret", "leaves 'vmlinux.stripped'"),
    "a release that leads out": ("include/config/kernel.release", "../../../../../host", "no name of a dir"),
    "a link in the place of the release": (
        "include/config/kernel.release",
        "{host}/secret",
        r"leaves 'include/config/kernel\.release'",
    ),
    "modules elsewhere": ("installed", "{host}", "leaves 'installed/lib/modules"),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_a_hostile_tree_builds_reaches_no_file_of_the_host(
    made: Make, store: Store, tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    host = tmp_path / "host"
    modules = host / "lib/modules/6.1.7-rc1"
    modules.mkdir(parents=True)
    for file in (host / "secret", host / "overwritten", modules / "modules.builtin"):
        file.write_text("of the host")
    where, what, said = LEFT[name]
    run = made.run

    def harmful(shop: Workshop, argv: list[str]) -> str:
        output = run(shop, argv)
        place = shop.build / where
        if argv[-1] in ("modules", "modules_install") or argv[1] == "-s":
            if place.is_dir() and not place.is_symlink():
                buildroot.remove_path(place)
            place.unlink(missing_ok=True)
            place.parent.mkdir(parents=True, exist_ok=True)
            if what.startswith("{host}"):
                place.symlink_to(what.format(host=host))
            else:
                place.write_text(what)
        return output

    before = {file: file.read_text() for file in host.rglob("*") if file.is_file()}
    with monkeypatch.context() as patched:
        patched.setattr(made, "run", harmful)
        with pytest.raises(BuildFailed, match=said) if said else nullcontext():
            kernel.resolve(f"tree:{tree}", store)
    (tree / "fs/inode.c").write_text("sound again\n")
    found = kernel.resolve(f"tree:{tree}", store)
    assert {file: file.read_text() for file in host.rglob("*") if file.is_file()} == before
    kept = [file for file in found.artefact.directory.rglob("*") if file.is_file()]
    assert not [file for file in kept if file.is_symlink() or "of the host" in file.read_text()]


def test_objects_of_a_clock_that_was_put_back_since_are_not_made_further(tmp_path: Path) -> None:
    """make goes by times: sources that are new would be older than their objects."""
    assert not build._clock_went_back(tmp_path)
    (tmp_path / build.BUILT_MARK).touch()
    assert not build._clock_went_back(tmp_path)
    later = time.time() + 3600
    os.utime(tmp_path / build.BUILT_MARK, (later, later))
    assert build._clock_went_back(tmp_path)
