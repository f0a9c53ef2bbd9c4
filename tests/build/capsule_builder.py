"""Build runs with all the parts of a capsule, and capsules of them, without a guest."""

import hashlib
import io
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

from agelab.base.hashing import key_of
from agelab.capsule.verify import CapsuleManifest
from agelab.data.corpus.artefact import IMAGE_FILE, Corpus, CorpusDescription, obtain
from agelab.debian import Package, buildroot
from agelab.debian.buildroot import BuildRoot
from agelab.kernel import debian_kernel
from agelab.kernel.debian_kernel import ResolvedKernel
from agelab.kernel.elf import ModuleInfo
from agelab.kernel.modules import index
from agelab.kernel.stored_kernel import NamedKernel
from agelab.machine import qemu
from agelab.machine.drive import module as modules
from agelab.machine.image import root as roots
from agelab.machine.image.assemble import DESCRIPTION, Description, ImageKernel
from agelab.machine.image.root import RootPackages
from agelab.results.checksummed import write
from agelab.results.result import RunKernel
from agelab.results.run_directory import RunDirectory
from agelab.runner.prepare import run_manifest
from agelab.runner.prepare.run_manifest import CorpusRecord, Profiles, RunManifest
from agelab.store import parcel
from agelab.store.artefacts import Artefact, Store, file_hash
from agelab.store.parcel import PackedFile, Parcel
from tests.build import run_builder

SMALL = Path(__file__).parents[1] / "vm" / "small.toml"
RELEASE, VERSION = "6.1.0-1-amd64", "6.1.1-1"
VARIANTS = ("ext4", "xfs")


def package(name: str, version: str = "1.2-3") -> Package:
    sha = hashlib.sha256(f"{name} {version}".encode()).hexdigest()
    filename = f"{name}_{quote(version)}_amd64.deb"
    return Package(name=name, version=version, filename=filename, size=1000, sha256=sha)


def made_run(
    store: Store,
    *,
    spec: str = "debian:6.1",
    own: bool = False,
    words: Mapping[str, Any] = {},
    corpora: Sequence[int] = (1,),
) -> RunDirectory:
    """A run of two variants on each corpus, as if it had been carried out in that store."""
    image_of = package(f"linux-image-{RELEASE}", VERSION)
    kernel = _kernel(store, image_of)
    packages = RootPackages(root=(package("coreutils"), package("libc6", "2:1.0~rc1+b1")), busybox=package("busybox"))
    image = _image(store, kernel, packages)
    content = key_of({name: text for name, text in image.manifest.files.items() if name != DESCRIPTION})

    sources = {}
    for seed in corpora:
        data = _corpus(store, seed)
        name = "" if seed == corpora[0] else f"@{seed}"
        sources[name] = CorpusRecord(sha256=data.sha256, size=data.size, description="some data", own=own)
    module = store.obtain("drive", {"made": "up"}, lambda d: _wrote(d / "agedrive.ko", b"a module"))
    tools = store.obtain("tools", {"made": "up"}, lambda d: _wrote(d / "extents", b"a program"))
    root = BuildRoot(suite="bookworm", packages=(package("gcc-12"),))
    resolved = (
        ResolvedKernel(suite="bookworm", release=RELEASE, package=image_of) if spec.startswith("debian:") else None
    )
    of = RunManifest(
        agelab="0.1.0", programs={"xorriso": "1.5.4-4"}, kernel=resolved, guest=packages, suite="bookworm", drive=root,
        qemu=root, tools=root, sources=sources,
    )  # fmt: skip
    command = {"directory": "/home/somebody", "name": "small.toml", "options": dict(words)}
    of = of.model_copy(update={"resolutions": answers_of(of, spec)})
    cells = tuple(
        run_builder.cell(variant, kernel=RELEASE, machine="pentium4-2800", corpus_seed=seed)
        for variant in VARIANTS
        for seed in corpora
    )
    run = run_builder.begin(
        store.home, cells, scenario="small",
        kernel=RunKernel(spec=spec, release=RELEASE, version=VERSION), command=command,
        provenance={"image": image.key, "image_content": content},
    )  # fmt: skip
    write(run.path / run_manifest.MADE_OF, of.model_dump_json())
    write(run.path / run_manifest.PROFILES, Profiles(filesystems={}, machines={}, drives={}).model_dump_json())
    (run.path / run_manifest.SCENARIO).write_text(SMALL.read_text())
    around = {
        "image": content,
        "drive_module": {"module": file_hash(module / "agedrive.ko")},
        "tools": {"extents": file_hash(tools / "extents")},
    }
    for number, cell in enumerate(cells):
        seeds = {"run": 1, **({"corpus": cell.corpus_seed} if cell.corpus_seed > 1 else {})}
        found = {"making": {**around, "seeds": seeds, "variant": cell.variant}, "measuring": None}
        samples = [run_builder.sample(step, 1.25 + number) for step in ("copy", "read")]
        run_builder.end(run, number, samples, inputs=found, host_seconds=1.5)
    return run


def answers_of(of: RunManifest, spec: str) -> dict[str, Any]:
    """What the questions about the packages of a run are answered."""
    kernel = NamedKernel("debian:6.1", RELEASE, VERSION, "bookworm")
    usual = roots.definition()
    asked: list[tuple[Callable[[Store], object], BaseModel | None]] = [
        (lambda store: roots.resolve_packages(usual, roots.served(usual, ()), store), of.guest),
        (lambda store: debian_kernel.resolve_packages(spec.partition(":")[2], store), of.kernel),
        (lambda store: modules.resolve_packages(kernel, store), of.drive),
        (qemu.resolve_packages, of.qemu),
        (lambda store: buildroot.resolve_compiler(store, "bookworm"), of.tools),
    ]
    return {key_asked(ask): answer.model_dump(mode="json") for ask, answer in asked if answer}


def key_asked(ask: Callable[[Store], object]) -> str:
    """The key of the question about packages that is asked."""
    keys: list[str] = []

    class Asked(dict[str, Any]):
        def __contains__(self, key: object) -> bool:
            keys.append(str(key))
            raise LookupError

    with tempfile.TemporaryDirectory() as home, suppress(LookupError):
        ask(Store(Path(home), resolutions=Asked()))
    return keys[0]


def _corpus(store: Store, seed: int) -> Corpus:
    def build(directory: Path) -> CorpusDescription:
        (directory / IMAGE_FILE).write_bytes(b"data of the run" + b", another" * (seed > 1))
        return CorpusDescription(files=3, content_bytes=64 << 20, description="some data")

    return obtain(store, {"source": "made up", **({"seed": seed} if seed > 1 else {})}, build)


def _kernel(store: Store, image_of: Package) -> Artefact:
    def build(directory: Path) -> None:
        for name in ("vmlinuz", "config"):
            _wrote(directory / name, name.encode())
        infos = [ModuleInfo(name=name, path=f"modules/kernel/{name}.ko") for name in ("ext4", "xfs")]
        for info in infos:
            _wrote(directory / info.path, f"module {info.name}".encode())
        _wrote(directory / "modules" / "modules.builtin", b"kernel/fs/ext2.ko\n")
        _wrote(directory / "modules.json", index(infos))

    inputs = {"package": image_of.name, "version": image_of.version, "sha256": image_of.sha256, "recipe": 1}
    return store.obtain("kernel", inputs, build)


def _image(store: Store, kernel: Artefact, packages: RootPackages) -> Artefact:
    def build(directory: Path) -> None:
        files = {name: name.encode() for name in ("initramfs", "root.squashfs", "vmlinuz")}
        for name, data in files.items():
            _wrote(directory / name, data)
        description = Description(
            kernel=ImageKernel(release=RELEASE, version=VERSION, key=kernel.key),
            root=hashlib.sha256(files["root.squashfs"]).hexdigest(),
            template="0" * 64,
            packages=(*packages.root, packages.busybox),
            files={name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
        )
        _wrote(directory / DESCRIPTION, description.model_dump_json(indent=1).encode())

    return store.obtain("image", {"kernel": kernel.key}, build)


def _wrote(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def contents(path: Path) -> dict[str, bytes]:
    """Every member of a capsule, by name."""
    with tarfile.open(path) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


def resealed(path: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """The capsule after ``change``, with a list that fits what it has become."""
    found = contents(path)
    change(found)
    target = path.with_name(f"changed-{path.name}")
    before = parcel.parse(found.pop(parcel.LIST), Parcel[CapsuleManifest])
    write_capsule(target, before.manifest, found)
    return target


def write_capsule(path: Path, manifest: CapsuleManifest, members: Mapping[str, bytes]) -> None:
    files = {name: PackedFile.of(data) for name, data in members.items()}
    with path.open("wb") as file:
        parcel.write(file, Parcel[CapsuleManifest](manifest=manifest, files=files), members)


def tar_of(*entries: tuple[tarfile.TarInfo, bytes], form: int = tarfile.USTAR_FORMAT) -> bytes:
    """A tar as any other program may write it."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as tar:
        for info, data in entries:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()
