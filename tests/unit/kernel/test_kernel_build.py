"""Kernels that are built: what their keys are made of, and that nothing is compiled twice or in vain."""

import os
from contextlib import nullcontext
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from agelab import kernel
from agelab.base.errors import InputError
from agelab.debian import buildroot
from agelab.debian.buildroot import BuildFailed, Workshop
from agelab.kernel import build, build_inputs, recipes, stored_kernel
from agelab.machine.drive import module
from agelab.store.artefacts import Store
from tests.build.source_tree import FILES, PATCH, files, git

GOOD = recipes.NEEDED.read_text() + recipes.SMALL.read_text() + 'CONFIG_CC_VERSION_TEXT="gcc 12"\n'


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
        build_inputs, "toolchain", lambda store, progress: store.obtain("buildroot", {}, lambda directory: None)
    )
    return fake


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return files(tmp_path / "linux")


def test_a_built_kernel_is_a_bundle_like_any_other_and_is_built_once(made: Make, store: Store, tree: Path) -> None:
    found = kernel.resolve(f"tree:{tree}", store)
    assert (found.release, found.version) == ("6.1.7-rc1", "6.1.7-rc1")
    assert found.boot_image.read_bytes() == b"\x7fELF" and found.modules.has("ext4")
    assert kernel.resolve(f"tree:{tree}", store).key == found.key and made.compiled == 1
    assert stored_kernel.release_and_version(found.artefact) == ("6.1.7-rc1", "6.1.7-rc1")
    came = stored_kernel.provenance_of(found)
    assert (came.kind, came.compiler, came.sources[0].name) == ("built", "gcc 12", f"tree:{tree}")


def test_the_drive_is_built_with_the_kernels_objects_and_these_are_not_made_again(
    made: Make, store: Store, tree: Path
) -> None:
    found = kernel.resolve(f"tree:{tree}", store)
    assert module.obtain(found, store).read_text() == "module"
    assert made.compiled == 1
    # There is room for the objects of one kernel of a tree; the drive of the first one brings them back.
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


def test_a_configuration_is_looked_at_alone_and_before_anything_is_compiled(
    made: Make, store: Store, tree: Path
) -> None:
    kernel.resolve(f"tree:{tree}", store)
    build.check_configuration(f"tree:{tree}", store)
    assert sum(argv[-1] == "allnoconfig" for argv in made.said) == 1  # it is there already
    (tree / "fs/inode.c").write_text("other\n")
    build.check_configuration(f"tree:{tree}", store)
    assert sum(argv[-1] == "allnoconfig" for argv in made.said) == 2 and made.compiled == 1
    made.config = GOOD.replace("CONFIG_OVERLAY_FS=m", "")
    for look in (build.check_configuration, kernel.resolve):
        with pytest.raises(InputError, match="lacks options that a guest needs: CONFIG_OVERLAY_FS"):
            look(f"tree:{tree}", store)
    assert made.compiled == 1
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
    assert found == [False, False, False]


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
    assert recipes.options(building.config_text)["CONFIG_SYSTEM_TRUSTED_KEYS"] == '""'


def test_what_is_said_twice_or_in_a_comment_makes_no_other_kernel(
    made: Make, store: Store, tree: Path, tmp_path: Path
) -> None:
    fragment = tmp_path / "mine.config"
    fragment.write_text("# how QEMU enters the kernel\nCONFIG_PVH=n\nCONFIG_PVH=y\n")
    keys = {kernel.resolve(f"tree:{tree}{more}", store).key for more in ("", f",config={fragment}")}
    assert len(keys) == 1 and made.compiled == 1


@pytest.mark.parametrize(
    "line",
    [
        "CONFIG_N=5 # x", "CONFIG_N=0x5 # x", " CONFIG_B=y", "CONFIG_B =y", "CONFIG_B= y", "CONFIG_B=Y",
        "CONFIG_S=text", 'CONFIG_S="text', 'CONFIG_S="a" b', "CONFIG_B", "  # CONFIG_B is not set", "B=y", "CONFIG_N=",
    ],
)  # fmt: skip
@pytest.mark.parametrize("option", ["base", "config"])
def test_a_line_of_configuration_that_linux_would_drop_is_an_error(
    made: Make, store: Store, tree: Path, tmp_path: Path, line: str, option: str
) -> None:
    """It would be in the key of a kernel that does not have it: that of the kernel which does."""
    mine = tmp_path / "mine.config"
    mine.write_text(f"# mine\nCONFIG_PVH=y\n{line}\n")
    with pytest.raises(InputError, match=r"mine\.config, line 3: ") as raised:
        kernel.resolve(f"tree:{tree},{option}={mine}", store)
    assert line.strip() in str(raised.value) and raised.value.hint and made.compiled == 0


def test_lines_that_linux_reads_are_taken(made: Make, store: Store, tree: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.config"
    lines = [
        "#", "# words", "  # words", "", " ", "# CONFIG_A is not set", "# CONFIG_A is not set # why", "CONFIG_B=y",
        "CONFIG_B=m # why", "CONFIG_N=-5", "CONFIG_N=0x1F ", "CONFIG_N=1f", 'CONFIG_S="a # \\"b\\""',
        'CONFIG_S="" # why',
    ]  # fmt: skip
    mine.write_bytes("\r\n".join(lines).encode())
    found = build_inputs.plan_build(f"tree:{tree},base={mine}", store, lambda line: None).options
    assert [found[f"CONFIG_{name}"] for name in "ABNS"] == ["n", "m", "1f", '""']


def test_linux_is_given_what_the_key_is_made_of(made: Make, store: Store, tree: Path, tmp_path: Path) -> None:
    """Of lines that say an option twice the first could be the one that counts: the last may be none of its type."""
    given = []
    for number, first in enumerate(["", "CONFIG_N=5\n", "# CONFIG_N is not set, why\n"]):
        mine = tmp_path / f"mine{number}.config"
        mine.write_text(f"{first}# CONFIG_A is not set # why\nCONFIG_B=m # why\nCONFIG_N=y\n")
        building = build_inputs.plan_build(f"tree:{tree},base={mine}", store, lambda line: None)
        given.append((building.key, building.config_text))
    assert len(set(given)) == 1 and given[0][1].startswith("# CONFIG_A is not set\nCONFIG_B=m\nCONFIG_N=y\n")


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


class RealMake(Make):
    """A make that goes by times, a compiler that goes by ccache, and a Makefile that may be hostile."""

    def run(self, shop: Workshop, argv: list[str]) -> str:
        output = super().run(shop, argv)
        if "vmlinux" in argv:
            source = shop.read_only["source"] / "fs/inode.c"
            evil = "hostile" in (shop.read_only["source"] / "Makefile").read_text()
            made = shop.build / "inode.o"
            if not made.exists() or made.stat().st_mtime <= source.stat().st_mtime:
                cached = shop.writable["ccache"] / sha256(source.read_bytes()).hexdigest()
                self.hits += cached.exists()
                if not cached.exists():
                    cached.write_text(f"object of {source.read_text()}")
                made.write_bytes(cached.read_bytes())
            if evil:
                made.write_text("forged")
                os.utime(made, (2_000_000_000, 2_000_000_000))
                for text in (FILES["fs/inode.c"], "next\n", "later\n"):
                    (shop.writable["ccache"] / sha256(text.encode()).hexdigest()).write_text("forged")
            (shop.build / "vmlinux").write_bytes(made.read_bytes())
        elif argv[0].endswith("strip") and argv[1] == "-s":
            _renamed_to(shop.build / "vmlinux.stripped", (shop.build / "vmlinux").read_text())
        return output

    hits = 0


@pytest.fixture
def real(made: Make, monkeypatch: pytest.MonkeyPatch) -> RealMake:
    fake = RealMake()
    monkeypatch.setattr(made, "run", fake.run)
    return fake


def _built(spec: str, store: Store) -> str:
    return (kernel.resolve(spec, store).directory / "vmlinux").read_text()


def _commit(tree: Path, **files: str) -> None:
    for name, text in files.items():
        (tree / {"inode": "fs/inode.c", "makefile": "Makefile"}[name]).write_text(text)
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "a change", "--allow-empty")


HOSTILE = f"{FILES['Makefile']}# hostile\n"


def test_an_object_of_the_future_that_a_commit_leaves_gets_into_no_other_commits_kernel(
    real: RealMake, store: Store, tree: Path
) -> None:
    git(tree, "init", "-q")
    _commit(tree)
    _commit(tree, makefile=HOSTILE)
    assert _built(f"tree:{tree}@HEAD", store) == "forged"
    assert _built(f"tree:{tree}@HEAD~1", store) == f"object of {FILES['fs/inode.c']}"
    _commit(tree, makefile=FILES["Makefile"], inode="clean\n")
    assert _built(f"tree:{tree}@HEAD", store) == "object of clean\n"


def test_what_a_commit_writes_into_ccache_is_found_by_no_commit_that_does_not_run_the_same(
    real: RealMake, store: Store, tree: Path
) -> None:
    """The revert has the key of the clean commit, the next one runs what the clean one runs."""
    git(tree, "init", "-q")
    _commit(tree)
    _commit(tree, makefile=HOSTILE)
    _commit(tree, makefile=FILES["Makefile"])
    _commit(tree, inode="next\n")
    assert _built(f"tree:{tree}@HEAD~2", store) == "forged"
    assert _built(f"tree:{tree}@HEAD~1", store) == f"object of {FILES['fs/inode.c']}"
    assert _built(f"tree:{tree}@HEAD", store) == "object of next\n"
    assert real.hits == 0


@pytest.mark.parametrize(
    ("name", "shared"),
    [
        ("fs/inode.c", True), ("fs/new/super.h", True), ("drivers/md/raid1.c", True),
        ("fs/new/Makefile", False), ("fs/Kconfig", False), ("fs/tables/table.c", False),
        ("kernel/bpf/disasm.c", False), ("include/linux/fs.h", False), ("scripts/sorttable.c", False),
        ("lib/gen_crc32table.c", False), ("fs/$(shell evil).c", False), ("fs/made.sh", False),
        ("fs/made.c ", False), ("afs/made.c", False),
    ],
)  # fmt: skip
def test_a_ccache_is_of_what_runs_and_not_of_what_is_only_compiled(
    real: RealMake, store: Store, tree: Path, name: str, shared: bool
) -> None:
    (tree / "fs/tables").mkdir()
    (tree / "fs/tables/Makefile").write_text("hostprogs := table\n")
    before = _cache_of(f"tree:{tree}", store)
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_text("changed\n")
    assert (_cache_of(f"tree:{tree}", store) == before) == shared


@pytest.mark.parametrize("change", ["link", "mode"])
def test_code_that_is_no_plain_file_counts_as_what_runs(real: RealMake, store: Store, tree: Path, change: str) -> None:
    before = _cache_of(f"tree:{tree}", store)
    (tree / "fs/inode.c").chmod(0o755)
    if change == "link":
        (tree / "fs/inode.c").unlink()
        (tree / "fs/inode.c").symlink_to("../kernel/fork.c")
    assert _cache_of(f"tree:{tree}", store) != before


@pytest.mark.parametrize(
    ("line", "shared"),
    [
        ("CONFIG_UFS_FS=m", True),
        ("# CONFIG_UFS_FS is not set", True),
        ("CONFIG_HZ=250", True),
        ('CONFIG_LOCALVERSION="$(shell evil)"', False),
        ("CONFIG_UFS_FS=y$(shell evil)", False),
        ("CONFIG_UFS_FS=m\fCONFIG_A=n", False),
    ],
)
def test_a_ccache_is_also_of_what_a_configuration_says_in_words(
    real: RealMake, store: Store, tree: Path, line: str, shared: bool
) -> None:
    inputs = build_inputs.plan_build(f"tree:{tree}", store, lambda line: None)
    more = replace(inputs, fragments={"more.config": line})
    assert (build_inputs.compiler_cache(inputs) == build_inputs.compiler_cache(more)) == shared


def test_a_commit_finds_what_another_has_compiled_that_runs_the_same(real: RealMake, store: Store, tree: Path) -> None:
    git(tree, "init", "-q")
    for number in range(3):
        (tree / "kernel/fork.c").write_text(f"{number}\n")
        _commit(tree)
    for ref in ("HEAD~1", "HEAD", "HEAD~2"):
        _built(f"tree:{tree}@{ref}", store)
    assert real.hits == 2


def test_a_repository_keeps_the_ccaches_that_were_used_last_whatever_time_they_are_given(
    real: RealMake, store: Store, tree: Path
) -> None:
    caches = []
    for number in range(build_inputs.CACHES_KEPT + 2):
        (tree / "Kconfig").write_text(f"{number}\n")
        caches.append(_cache_of(f"tree:{tree}", store))
        os.utime(caches[-1], (2_000_000_000, 2_000_000_000))
    assert [path for path in caches if path.exists()] == caches[-build_inputs.CACHES_KEPT :]


def _cache_of(spec: str, store: Store) -> Path:
    return build_inputs.compiler_cache(build_inputs.plan_build(spec, store, lambda line: None))


def test_files_of_a_checkout_that_was_killed_are_no_source(real: RealMake, store: Store, tree: Path) -> None:
    _built(f"tree:{tree}", store)
    [source] = store.cache("kernels").glob("*/source")
    (source / "fs/left.c").write_text("of another commit")
    (tree / "fs/inode.c").write_text("other\n")
    _built(f"tree:{tree}", store)
    assert not (source / "fs/left.c").exists()


def test_a_link_that_could_be_written_shorter_is_built_as_it_is(real: RealMake, store: Store, tree: Path) -> None:
    """Linux has one: tools/testing/selftests/powerpc/primitives/asm/asm-compat.h."""
    (tree / "fs/link.c").symlink_to("./.././fs//inode.c")
    assert _built(f"tree:{tree}", store) == f"object of {FILES['fs/inode.c']}"
