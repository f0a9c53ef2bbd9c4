"""Which modules are inserted, in which order, from what the modules say of themselves."""

import lzma
import os
import struct
from pathlib import Path

import pytest

from agelab.base import fileio
from agelab.base.errors import HostError
from agelab.kernel import elf
from agelab.kernel.elf import ModuleInfo
from agelab.kernel.modules import MissingModule, MissingOption, Modules
from tests.build.kernel_builder import module_elf

TEXT = b"license=GPL\0depends=jbd2,mb-cache\0softdep=pre: crc32c foo post: bar\0alias=fs-ext3\0alias=pci:v*\0"


@pytest.mark.parametrize("name, packed", [("ext-4.ko", False), ("ext-4.ko.xz", True)])
def test_a_module_says_what_it_needs(tmp_path: Path, name: str, packed: bool) -> None:
    path = tmp_path / name
    path.write_bytes(lzma.compress(module_elf(TEXT)) if packed else module_elf(TEXT))
    assert elf.read_module(path, "modules/ext-4.ko") == ModuleInfo(
        name="ext_4",
        path="modules/ext-4.ko",
        depends=("jbd2", "mb_cache"),
        before=("crc32c", "foo"),
        aliases=("fs-ext3",),
    )
    assert elf.load(path) == module_elf(TEXT)


def test_a_signature_is_left_out() -> None:
    trailer = struct.pack(">5B3xI", 0, 0, 2, 0, 0, 9) + b"~Module signature appended~\n"
    assert elf.unsigned(module_elf(TEXT) + b"signature" + trailer) == module_elf(TEXT)
    assert elf.unsigned(module_elf(TEXT)) == module_elf(TEXT)


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x02 cut short", b"not a module at all"])
def test_a_damaged_module_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.ko"
    path.write_bytes(content)
    with pytest.raises(HostError, match=r"broken\.ko is not a kernel module"):
        elf.read_module(path, "broken.ko")


def test_a_module_has_a_limit_packed_and_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fileio, "PROGRAM", 4 * fileio.MIB)
    (tmp_path / "large.ko").write_bytes(module_elf(TEXT) + bytes(fileio.PROGRAM))
    (tmp_path / "small.ko.xz").write_bytes(lzma.compress(module_elf(TEXT) + bytes(fileio.PROGRAM)))
    (tmp_path / "cut.ko.xz").write_bytes(lzma.compress(module_elf(TEXT))[:-20])
    os.mkfifo(tmp_path / "pipe.ko")
    for name, why in (
        ("large.ko", "more than 4 MiB"),
        ("small.ko.xz", "more than 4 MiB"),
        ("cut.ko.xz", "damaged"),
        ("pipe.ko", "it is a pipe"),
    ):
        with pytest.raises(HostError, match=f"{name} is not a kernel module: .*{why}"):
            elf.read_module(tmp_path / name, name)


def info(name: str, depends: tuple[str, ...] = (), before: tuple[str, ...] = (), alias: str = "") -> ModuleInfo:
    return ModuleInfo(name=name, path=f"{name}.ko", depends=depends, before=before, aliases=(alias,) if alias else ())


KERNEL = Modules(
    "6.1.0-1-amd64",
    Path("/nowhere"),
    (
        info("btrfs", ("xor", "libcrc32c", "builtin_one"), before=("crc32c", "sha256", "absent")),
        info("xor"),
        info("libcrc32c", before=("crc32c",)),
        info("crc32c_generic", alias="crc32c"),
        info("crc32c_intel", alias="crc32c"),
        info("crc32c_other", alias="crc32c"),
        info("sha256_fast", alias="sha256"),
        info("broken", ("gone",)),
        info("ring", ("ring2",)),
        info("ring2", ("ring",)),
    ),
    frozenset({"builtin_one", "ext2"}),
)


def names(*modules: str) -> list[str]:
    return [module.name for module in KERNEL.closure(modules)]


@pytest.mark.parametrize(
    ("modules", "inserted"),
    [
        (("btrfs", "xor"), ["crc32c_generic", "crc32c_intel", "sha256_fast", "xor", "libcrc32c", "btrfs"]),
        (("ext2",), []),
        (("crc32c-generic",), ["crc32c_generic"]),
        (("ring",), ["ring2", "ring"]),
    ],
    ids=["dependencies first and once", "built in", "a dash", "a circle"],
)
def test_modules_are_inserted_with_what_they_depend_on(modules: tuple[str, ...], inserted: list[str]) -> None:
    assert names(*modules) == inserted


def test_what_only_a_soft_dependency_wants_is_optional() -> None:
    optional = {module.name: module.optional for module in KERNEL.closure(["btrfs"])}
    assert optional["crc32c_intel"] and optional["sha256_fast"]
    assert not optional["libcrc32c"] and not optional["btrfs"]


@pytest.mark.parametrize("wanted, missing", [("reiser4", "reiser4"), ("broken", "gone")])
def test_a_missing_module_is_named_with_its_kernel(wanted: str, missing: str) -> None:
    with pytest.raises(MissingModule, match=rf"kernel 6\.1\.0-1-amd64 has no module {missing}") as raised:
        names(wanted)
    assert (raised.value.module, raised.value.release) == (missing, "6.1.0-1-amd64")


def test_options_are_looked_up_in_what_the_kernel_was_built_with(tmp_path: Path) -> None:
    modules = Modules("6.1.0-1-amd64", tmp_path, (), frozenset())
    modules.require(())  # and no config is read
    (tmp_path / "config").write_text(
        "CONFIG_UFS_FS=m\n# CONFIG_UFS_FS_WRITE is not set\nCONFIG_UFS_DEBUG=n\nCONFIG_EXT4_FS=y\n"
    )
    modules.require(("UFS_FS", "EXT4_FS"))
    for option in ("UFS_FS_WRITE", "UFS_DEBUG", "UFS", "EXT4"):
        with pytest.raises(MissingOption, match=f"^kernel 6.1.0-1-amd64 was built without CONFIG_{option}$"):
            modules.require(("UFS_FS", option))
