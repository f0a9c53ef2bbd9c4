"""Build runs with all the parts of a capsule, and capsules of them, without a guest."""

import hashlib
import io
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agelab.base.hashing import key_of
from agelab.capsule import archive, schema
from agelab.capsule.schema import CapsuleManifest, PackedMember
from agelab.data.corpus.artefact import IMAGE_FILE, Corpus, CorpusDescription, obtain
from agelab.debian import Package
from agelab.debian.buildroot import BuildRoot
from agelab.kernel.debian_kernel import ResolvedKernel
from agelab.kernel.elf import ModuleInfo
from agelab.kernel.modules import index
from agelab.machine.image.assemble import DESCRIPTION, Description, ImageKernel
from agelab.machine.image.root import RootPackages
from agelab.results.checksummed import write
from agelab.results.result import RunKernel
from agelab.results.run_directory import RunDirectory
from agelab.runner.prepare import run_manifest
from agelab.runner.prepare.run_manifest import CorpusRecord, Profiles, RunManifest
from agelab.store.artefacts import Artefact, Store, file_hash
from tests.unit import run_builder

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
    packages = RootPackages(
        root=(package("coreutils"), package("libc6", "2:1.0~rc1+b1")), busybox=package("busybox")
    )
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
        ResolvedKernel(suite="bookworm", release=RELEASE, package=image_of)
        if spec.startswith("debian:")
        else None
    )
    of = RunManifest(
        agelab="0.1.0", programs={"xorriso": "1.5.4-4"}, kernel=resolved, guest=packages, suite="bookworm", drive=root,
        qemu=root, tools=root, sources=sources,
    )  # fmt: skip
    command = {"directory": "/home/somebody", "name": "small.toml", "words": dict(words), "more": {}}
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
    write(
        run.path / run_manifest.PROFILES, Profiles(filesystems={}, machines={}, drives={}).model_dump_json()
    )
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


def _corpus(store: Store, seed: int) -> Corpus:
    def build(directory: Path) -> CorpusDescription:
        (directory / IMAGE_FILE).write_bytes(b"data of the run" + b", another" * (seed > 1))
        return CorpusDescription(files=3, content_bytes=1000, description="some data")

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
    """Every member of a container, by name."""
    with path.open("rb") as file:
        return {one.name: archive.read(file, one, 1 << 30) for one in archive.members(file)}


def resealed(path: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """The capsule after ``change``, with a manifest and a seal that fit what it has become."""
    found = contents(path)
    change(found)
    manifest = CapsuleManifest.model_validate_json(found.pop(schema.MANIFEST))
    found.pop(schema.SEAL)
    members = {
        name: PackedMember(sha256=hashlib.sha256(found[name]).hexdigest(), size=len(found[name]))
        for name in sorted(found)
    }
    first = manifest.model_copy(update={"members": members}).model_dump_json(indent=1).encode() + b"\n"
    seal = hashlib.sha256(first).hexdigest().encode() + b"\n"
    whole = {schema.MANIFEST: first, schema.SEAL: seal, **{name: found[name] for name in sorted(found)}}
    target = path.with_name(f"changed-{path.name}")
    archive.write(target, whole)
    return target


def tar_of(*entries: tuple[tarfile.TarInfo, bytes], form: int = tarfile.USTAR_FORMAT) -> bytes:
    """A tar as any other program may write it."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as tar:
        for info, data in entries:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()
