"""How a filesystem's modules are built from a package with their source, without a compiler or a network."""

import struct
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from agelab.base.errors import AgelabError, HostError, InputError
from agelab.debian import Archive, buildroot
from agelab.debian.buildroot import BuildFailed, BuildRoot, Workshop
from agelab.kernel import Kernel
from agelab.kernel.modules import BUILTIN, INDEX
from agelab.machine import dkms
from agelab.machine.drive import module
from agelab.machine.drive.module import NoHeaders
from agelab.machine.image import root as roots
from agelab.runner.plan import cell_inputs
from agelab.scenario import selection
from agelab.scenario.filesystem import Filesystem
from agelab.store.artefacts import Artefact, Manifest, Store
from tests.build.deb_builder import package

OPENZFS = selection.filesystem("openzfs")


def elf(name: str, depends: str = "") -> bytes:
    """A module that says what it needs: an ELF file with one section, .modinfo."""
    said = f"depends={depends}\0name={name}\0".encode()
    names = b"\0.modinfo\0.shstrtab\0"
    at = 64 + len(said)
    table = at + len(names)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    head = struct.pack("<16sHHIQQQIHHHHHH", header, 1, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, 3, 2)
    sections = bytes(64)
    sections += struct.pack("<IIQQQQIIQQ", 1, 1, 0, 0, 64, len(said), 0, 0, 1, 0)
    sections += struct.pack("<IIQQQQIIQQ", 10, 3, 0, 0, at, len(names), 0, 0, 1, 0)
    return head + said + names + sections


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    place = tmp_path / "kernel"
    (place / "modules").mkdir(parents=True)
    (place / INDEX).write_text("[]")
    (place / BUILTIN).write_text("")
    made = Artefact("key", place, Manifest(kind="kernel", inputs={}, files={}))
    return Kernel("debian:6.12", "6.12.1-amd64", "6.12.1-1", "bookworm", artefact=made)


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands of builds that make zfs.ko, which needs spl.ko; a file of the source called broken makes them fail."""
    asked: list[list[str]] = []

    def resolve(of: Kernel, *_: object, **__: object) -> BuildRoot:
        if not of.suite:
            raise NoHeaders("there are no headers")
        return BuildRoot(suite="bookworm", packages=(package("gcc-12"),))

    def unpack(_: Path, tree: Path) -> None:
        source = tree / "usr/src/zfs-2.3"
        (source / "module").mkdir(parents=True)
        (source / "configure").write_text("")

    def run(shop: Workshop, argv: list[str]) -> str:
        asked.append(argv)
        if argv[0] != "x86_64-linux-gnu-strip":
            assert (shop.build / "configure").exists()
            (shop.build / "module/spl.ko").write_bytes(elf("spl"))
            (shop.build / "module/zfs.ko").write_bytes(elf("zfs", "spl"))
        return ""

    def of_packages(*_: object, **__: object) -> Artefact:
        return Artefact("root", Path("/nowhere"), Manifest(kind="buildroot", inputs={}, files={}))

    monkeypatch.setattr(module, "resolve_packages", resolve)
    monkeypatch.setattr(Archive, "require", lambda *_: None)
    monkeypatch.setattr(Archive, "package", lambda _, name: package(name, "2.3"))
    monkeypatch.setattr(Archive, "download", lambda _, wanted: [Path(one.filename) for one in wanted])
    monkeypatch.setattr(dkms, "unpack", unpack)
    monkeypatch.setattr(buildroot, "of_packages", of_packages)
    monkeypatch.setattr(buildroot, "_unpack", lambda tar, root: root)
    monkeypatch.setattr(Workshop, "run", run)
    return asked


def test_a_kernel_has_the_modules_that_were_built_for_it(kernel: Kernel, store: Store, builds: list[list[str]]) -> None:
    found = dkms.with_modules(kernel, [selection.filesystem("ext4"), OPENZFS], store)
    assert [one.name for one in found.modules.closure(["zfs"])] == ["spl", "zfs"]
    assert found.modules.closure(["zfs"])[0].read() == elf("spl")
    assert "/usr/src/linux-headers-6.12.1-amd64" in builds[0]
    assert [argv[-1] for argv in builds[1:]] == ["/build/module/spl.ko", "/build/module/zfs.ko"]
    again = dkms.with_modules(kernel, [OPENZFS], store)
    assert again == found and len(builds) == 3
    other = dkms.with_modules(replace(kernel, release="6.12.2-amd64"), [OPENZFS], store)
    assert other.built_modules != found.built_modules


def test_their_hashes_are_in_the_keys_of_their_own_cells_alone(
    kernel: Kernel, store: Store, builds: list[list[str]]
) -> None:
    found = dkms.with_modules(kernel, [OPENZFS], store)
    ext4 = selection.filesystem("ext4")
    told = [
        cell_inputs._kernel(found, SimpleNamespace(filesystem=one, companion=None))  # type: ignore[arg-type]
        for one in (OPENZFS, ext4)
    ]
    assert set(told[0]["modules"]) == {"spl.ko", "zfs.ko"}
    assert told[1] == {"release": "6.12.1-amd64", "package": "6.12.1-1", "key": "key"}


def test_no_cache_gets_them(kernel: Kernel, tmp_path: Path, builds: list[list[str]]) -> None:
    class Refusing:
        def __getattr__(self, name: str) -> object:
            raise AssertionError(f"the cache was asked: {name}")

    sharing = Store(tmp_path / "sharing", shared=Refusing())  # type: ignore[arg-type]
    assert dkms.with_modules(kernel, [OPENZFS], sharing).built_modules


@pytest.mark.parametrize("why", ["there are no headers", "openzfs's modules does not build"])
def test_modules_that_cannot_be_built_are_one_line(
    kernel: Kernel, store: Store, builds: list[list[str]], monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    def fail(*_: object) -> str:
        raise BuildFailed(why)

    monkeypatch.setattr(Workshop, "run", fail)
    lines: list[str] = []
    own = replace(kernel, suite="") if "headers" in why else kernel
    assert dkms.with_modules(own, [OPENZFS], store, lines.append) == own
    assert lines[-1] == f"openzfs: {why}; {OPENZFS.modules_why}" and not builds


def test_a_package_without_one_source_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dkms, "unpack", lambda deb, tree: (tree / "usr/src").mkdir(parents=True))
    with pytest.raises(AgelabError, match="holds no source of kernel modules: its /usr/src has 0"):
        dkms._unpack_source(Path("a.deb"), tmp_path / "unpacked", tmp_path / "build")


def test_a_root_with_it_is_of_its_suite_and_of_the_runs_filesystems_alone() -> None:
    aging = selection.select("aging", filesystem="openzfs,ext4").scenario
    definition, served = roots.of_scenario(aging, (), ["ext4", "openzfs"])
    assert (definition.suite, definition.also_from) == ("trixie", ("contrib",))
    assert [one.name for one in served] == ["ext4", "openzfs"]
    assert "dmsetup" in definition.packages  # bare memory-backed disks take it, trixie's packages do not bring it
    assert "/etc/hostid" in definition.remove  # drawn anew in each build: no two hosts would have one root
    assert roots.question(definition, served)["also_from"] == ("contrib",)
    plain, all_of_them = roots.of_scenario(selection.select("aging").scenario, (), ["ext4"])
    assert plain == roots.definition() and len(all_of_them) == len(plain.filesystems)
    assert "also_from" not in roots.question(plain, all_of_them)
    chosen = roots.RootPackages(root=(), busybox=package("busybox"))
    assert "also_from" not in roots._inputs(plain, chosen)["definition"]  # nor in the key of any root before
    assert roots._inputs(definition, chosen)["definition"]["also_from"] == ["contrib"]


def test_filesystems_whose_packages_exclude_each_other_are_told_apart(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise HostError("Debian trixie: you have held broken packages.")

    monkeypatch.setattr(Archive, "require", lambda *_: None)
    monkeypatch.setattr(Archive, "resolve", refuse)
    served = roots.served(roots.definition(), ["openzfs", "zfs"])
    definition = roots.own_definition(roots.definition(), (), served)
    with pytest.raises(InputError, match="packages of openzfs, zfs cannot be in one root of Debian trixie"):
        roots.resolve_packages(definition, served, store)
    with pytest.raises(HostError, match=r"^Debian trixie: you have held broken packages\.$"):
        roots.resolve_packages(definition, served[:1], store)


def test_packages_from_two_places_are_in_one_root() -> None:
    served = roots.served(roots.definition(), ["openzfs", "bcachefs"])
    assert roots.own_definition(roots.definition(), (), served).also_from == ("contrib", "experimental")


@pytest.mark.parametrize(
    "change, said",
    [({"suite": ""}, "module_source needs the suite"), ({"build": ["make"]}, r"does not name \{headers\}")],
    ids=["no suite", "no headers"],
)
def test_a_source_without_what_it_takes_is_refused(change: Mapping[str, object], said: str) -> None:
    found = OPENZFS.model_dump()
    for name, value in change.items():
        (found if name in found else found["module_source"])[name] = value
    with pytest.raises(ValueError, match=said):
        Filesystem.model_validate(found)


def test_the_lists_of_an_archive_are_of_what_its_packages_are_from(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agelab.debian.archive.mirrors", lambda: ("http://mirror", None))
    monkeypatch.setattr(Archive, "_fetch", lambda *_: None)
    for also_from, wanted in (
        ((), [("trixie", "main"), ("trixie-updates", "main")]),
        (("contrib",), [("trixie", "main contrib"), ("trixie-updates", "main contrib")]),
        (("experimental",), [("trixie", "main"), ("experimental", "main"), ("trixie-updates", "main")]),
    ):
        archive = Archive(store, "trixie", also_from)  # type: ignore[arg-type]
        archive.update()
        text = (archive._root / "debian.sources").read_text()
        fields = [line.partition(": ")[2] for line in text.splitlines() if line[:5] in ("Suite", "Compo")]
        assert list(zip(fields[::2], fields[1::2], strict=True)) == wanted
