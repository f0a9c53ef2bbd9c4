"""Kernels of the user's own: .deb files, and a bzImage with its modules."""

import os
from pathlib import Path

import pytest

from agelab.base import process
from agelab.base.errors import InputError
from agelab.kernel import Kernel, deb_files, guest_needs, source_tree, stored_kernel
from agelab.kernel import spec as specs
from agelab.kernel.elf import canonical_name
from agelab.kernel.initramfs import BASE_MODULES
from agelab.runner.plan import cell_spec as cells
from agelab.scenario.block_layer import MODULES as SCHEDULER_MODULES
from agelab.scenario.filesystem import Filesystem
from agelab.scenario.layout import Layout
from agelab.scenario.toml_files import read_all
from agelab.store.artefacts import Store, file_hash
from tests.build.kernel_builder import (
    BUILT_IN,
    CONFIG,
    RELEASE,
    bzimage,
    gzip,
    image,
    kernel,
    linux,
    module,
    modules,
    package,
)


def show(found: Kernel) -> list[str]:
    return sorted(path.name for path in found.directory.iterdir())


def test_a_deb_file_is_a_kernel(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = package(tmp_path, f"linux-image-{RELEASE}", linux())
    monkeypatch.chdir(tmp_path)
    found = specs.resolve(f"deb:{file.name}", store)
    assert (found.spec, found.kind, found.release, found.version) == (f"deb:{file}", "deb", RELEASE, "6.6-1")
    assert show(found) == ["config", "manifest.json", "modules", "modules.json", "vmlinuz"]
    assert found.modules.has("squashfs") and found.suite == ""
    same = {"package": f"linux-image-{RELEASE}", "version": "6.6-1", "sha256": file_hash(file), "recipe": 1}
    assert found.artefact.manifest.inputs == same, "as debian: has it, so that one kernel has one key"


def test_a_kernel_in_parts_is_all_of_its_files_in_any_order(store: Store, tmp_path: Path) -> None:
    whole = linux()
    parts = {
        name: package(tmp_path, f"linux-{name}-{RELEASE}", {path: data for path, data in whole.items() if of in path})
        for name, of in (("binary", "vmlinuz"), ("modules", "lib/"), ("base", "config"), ("image", "nothing"))
    }
    given = ",".join(map(str, parts.values()))
    found = specs.resolve(f"deb:{given}", store)
    assert specs.resolve(f"deb:{','.join(map(str, reversed(parts.values())))}", store).key == found.key
    assert found.artefact.manifest.inputs["parts"] == [
        [f"linux-{name}-{RELEASE}", file_hash(parts[name])] for name in ("base", "binary", "modules")
    ]
    came = stored_kernel.provenance_of(found)
    assert (came.kind, came.compiler) == ("packages", "gcc-12 (Debian 12.2.0-14) 12.2.0")
    assert came.sources[0].name == f"linux-image-{RELEASE}"
    assert stored_kernel.release_and_version(found.artefact) == (RELEASE, "6.6-1")


def test_an_unsigned_package_has_the_release_of_its_kernel(store: Store, tmp_path: Path) -> None:
    found = specs.resolve(f"deb:{package(tmp_path, f'linux-image-{RELEASE}-unsigned', linux())}", store)
    assert found.release == RELEASE
    assert stored_kernel.release_and_version(found.artefact) == (RELEASE, "6.6-1")
    strange = {f"lib/modules/{RELEASE}/kernel/fs/{os.fsdecode(bytes([255]))}.ko": module()}
    file = package(tmp_path, f"linux-image-{RELEASE}", linux() | strange)
    with pytest.raises(InputError, match="is a name with bytes that are no UTF-8"):
        specs.resolve(f"deb:{file}", store)


def test_files_that_are_no_kernel_are_one_clear_error(store: Store, tmp_path: Path) -> None:
    good = package(tmp_path, f"linux-image-{RELEASE}", linux())
    other = package(tmp_path, "linux-modules-6.7.0-own", {}, version="6.7-1")
    stub = package(tmp_path, "linux-image-7.0.0-own", {}, version="7.0-1")
    bare = package(tmp_path, "linux-image-8.0.0-own", linux("", "8.0.0-own", ("squashfs",)), version="8.0-1")
    strange = package(tmp_path, "hello", {})
    text = tmp_path / "text.deb"
    text.write_text("no archive")
    for spec, said in {
        f"deb:{good},{other}": r"not of one kernel: .*6\.6\.0-own \(6\.6-1\), .*6\.7\.0-own \(6\.7-1\)",
        f"deb:{stub}": "no kernel in a layout that agelab knows",
        f"deb:{bare}": r"libnvdimm \(CONFIG_LIBNVDIMM\), .*CONFIG_ACPI=y",
        f"deb:{strange}": "holds the package hello, which is no part of a kernel",
        f"deb:{text}": "not a Debian package",
        f"deb:{tmp_path}/none.deb": "no file",
        f"deb:{good},": "no file",
        "deb:": "names no file",
    }.items():
        with pytest.raises(InputError, match=said):
            specs.resolve(spec, store)
    assert store.all("kernel") == []


@pytest.mark.parametrize("kind", ["deb", "image"])
def test_files_that_change_once_they_are_hashed_are_no_kernel(store: Store, tmp_path: Path, kind: str) -> None:
    """Its key says what they were: the debian: kernel of that key would be this one."""
    file, tree = package(tmp_path, f"linux-image-{RELEASE}", linux()), modules(tmp_path / "modules")

    def change(line: str) -> None:
        package(tmp_path, f"linux-image-{RELEASE}", linux(f"{CONFIG}CONFIG_OTHER=y\n"))
        (tree / "kernel" / "fs" / "ext4.ko").write_bytes(module() + b"other")

    spec = {"deb": f"deb:{file}", "image": f"image:{image(tmp_path)},{tree}"}[kind]
    with pytest.raises(InputError, match="changed while it was being read"):
        specs.resolve(spec, store, progress=change)
    assert store.all("kernel") == []


@pytest.mark.parametrize("given", ["modules", "parent", "root"])
def test_an_image_has_the_modules_of_its_release(store: Store, tmp_path: Path, given: str) -> None:
    tree = modules(tmp_path / "lib" / "modules" / RELEASE)
    (tree / "build").symlink_to("/")
    where = {"modules": tree, "parent": tree.parent, "root": tmp_path}[given]
    found = specs.resolve(f"image:{image(tmp_path)},{where}", store)
    assert (found.release, found.version, found.config) == (RELEASE, "#1 SMP today", None)
    assert show(found) == ["manifest.json", "modules", "modules.json", "vmlinux", "vmlinuz"]
    assert found.modules.has("btrfs") and found.modules.has("ext4") and not found.modules.has("xfs")
    assert (tree / "modules.builtin").exists(), "what is the user's stays as it is"
    came = stored_kernel.provenance_of(found)
    assert [one.name for one in came.sources] == ["bzImage", "modules"]
    assert (came.kind, came.config) == ("files", None)
    assert came.compiler == "gcc-12 (Debian 12.2.0-14) 12.2.0"
    assert stored_kernel.release_and_version(found.artefact) == (RELEASE, "#1 SMP today")


def test_an_image_is_known_by_its_content(store: Store, tmp_path: Path) -> None:
    tree = modules(tmp_path / "one")
    first = specs.resolve(f"image:{image(tmp_path)},{tree}", store)
    moved = specs.resolve(f"image:{image(tmp_path / 'else')},{modules(tmp_path / 'other')}", store)
    assert moved.key == first.key
    (tree / "kernel" / "fs" / "more.ko").write_bytes(module())
    assert specs.resolve(f"image:{tmp_path}/bzImage,{tree}", store).key != first.key


@pytest.mark.parametrize("where", ["embedded", "config", ".config", f"config-{RELEASE}", "tree"])
def test_without_modules_the_configuration_says_what_is_built_in(store: Store, tmp_path: Path, where: str) -> None:
    path = image(tmp_path / "arch" / "x86" / "boot", BUILT_IN if where == "embedded" else "")
    if where != "embedded":
        path.with_name(f"config-{RELEASE}").write_text("[core]\nbare = false\n")
        (tmp_path / ".config" if where == "tree" else path.with_name(where)).write_text(BUILT_IN)
    found = specs.resolve(f"image:{path}", store)
    assert found.config == BUILT_IN
    assert found.modules.has("squashfs") and not found.modules.has("ext4")
    assert found.boot_image.name == "vmlinux"
    assert guest_needs.describe_support(found.modules, ("squashfs",)) == "built in"
    assert guest_needs.describe_support(found.modules, ("ext4",)) == "no module ext4"


def test_modules_may_be_compressed_as_others_do(store: Store, tmp_path: Path) -> None:
    tree = modules(tmp_path / "modules")
    process.run(["zstd", "-q", "--rm", *map(str, tree.rglob("*.ko"))])
    found = specs.resolve(f"image:{image(tmp_path)},{tree}", store)
    assert guest_needs.describe_support(found.modules, ("ext4",)) == "module"
    assert [one.read() for one in found.modules.closure(["ext4"])] == [module()]


def test_images_that_cannot_serve_are_one_clear_error(store: Store, tmp_path: Path) -> None:
    path, tree = image(tmp_path / "boot"), modules(tmp_path / "mine" / RELEASE)
    lean = image(tmp_path / "lean", CONFIG.replace("CONFIG_TMPFS=y", "CONFIG_TMPFS=n"))
    (tmp_path / "text").write_text("no kernel")
    (tmp_path / "32").write_bytes(bzimage(gzip(kernel()), flags=0))
    (tmp_path / "empty").mkdir()
    modules(tmp_path / "others" / "5.0.0", release="5.0.0")
    for spec, said in {
        f"image:{path}": r"root: libnvdimm \(CONFIG_LIBNVDIMM\), .*what it has built in is not known",
        f"image:{lean}": r"squashfs \(CONFIG_SQUASHFS\), .*CONFIG_TMPFS=y$",
        f"image:{path},{tmp_path}/others": rf"holds no modules of {RELEASE}; it holds those of 5\.0\.0",
        f"image:{path},{tmp_path}/others/5.0.0": rf"the modules are of 5\.0\.0, the image is {RELEASE}",
        f"image:{path},{tmp_path}/empty": "holds no modules",
        f"image:{path},{tmp_path}/nowhere": "no directory",
        f"image:{path},{tree},{tree}": "one path, or two",
        f"image:{path},": "one path, or two",
        f"image:{tmp_path}/text": "not an x86 bzImage",
        f"image:{tmp_path}/32": "32-bit",
        f"image:{tmp_path}/nowhere": "cannot read .*No such file",
        "image:/dev/zero": "not a regular file",
        "image:": "names no file",
    }.items():
        with pytest.raises(InputError, match=said):
            specs.resolve(spec, store)
    assert store.all("kernel") == []


def test_every_module_that_a_guest_is_given_has_its_option() -> None:
    given = [one for one in read_all("filesystems", Filesystem) if not one.module_source]  # those are in no kernel
    named = {name for one in given for name in one.modules}
    named |= {name for one in read_all("layouts", Layout) for name in one.modules}
    named |= {*BASE_MODULES, *cells.BASE_MODULES, "virtio_net", "virtio_pci"}
    named |= {name for names in (*cells.REAL_MODULES.values(), *SCHEDULER_MODULES.values()) for name in names}
    assert set(map(canonical_name, named)) == set(guest_needs.MODULE_OPTIONS)


def test_what_a_maker_wrote_beside_a_kernel_is_its_provenance(store: Store, tmp_path: Path) -> None:
    found = specs.resolve(f"image:{image(tmp_path, BUILT_IN)}", store)
    patch = source_tree.KernelPart(name="reiser4.patch", sha256="1" * 64)
    written = source_tree.BuildRecord(commit="abc123", patches=(patch,))
    (found.directory / source_tree.PROVENANCE_FILE).write_text(written.model_dump_json())
    came = stored_kernel.provenance_of(found)
    assert (came.commit, came.patches, came.highlights["HZ"]) == ("abc123", (patch,), "250")


def test_debs_are_told_by_what_they_hold() -> None:
    one = deb_files.Deb(path=Path("x"), name="linux-modules-6", version="1", release="6", sha256="0")
    assert deb_files.key_inputs([one]) == {
        "version": "1",
        "recipe": 1,
        "release": "6",
        "parts": [["linux-modules-6", "0"]],
    }


def test_a_kernel_without_kprobes_is_refused_for_a_machine_whose_bytes_have_a_price() -> None:
    for config in (None, "CONFIG_KPROBES=y\n"):
        guest_needs.require_probes("6.6.0", config, "core2duo-3000")
    for config in ("", "# CONFIG_KPROBES is not set\n"):
        with pytest.raises(
            InputError, match=r"kernel 6\.6\.0 was built without CONFIG_KPROBES, which the byte_price of"
        ):
            guest_needs.require_probes("6.6.0", config, "core2duo-3000")
