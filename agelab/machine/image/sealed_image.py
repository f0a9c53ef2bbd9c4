"""Sealed images: a root, a kernel and an initramfs, with a proof of each filesystem that they support."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from agelab.base import fileio, places, process
from agelab.base.errors import HostError, Notify, silent
from agelab.base.hashing import file_code_hash, key_of
from agelab.base.process import SideBySide
from agelab.base.types import Defaults
from agelab.debian import Archive, Package, unpack
from agelab.kernel import Kernel, initramfs
from agelab.machine import qemu
from agelab.machine.image import packer, tools
from agelab.machine.image import root as roots
from agelab.machine.image.assemble import DESCRIPTION, INITRAMFS, ROOT, Assembly, Description, ImageKernel
from agelab.machine.image.proof import (
    PROVER,
    SCRATCH,
    PackageProof,
    Proof,
    ProofPlan,
    plan_package_proof,
    plan_proof,
    told_by_packer,
)
from agelab.scenario.filesystem import Filesystem
from agelab.store.artefacts import Artefact, DamagedArtefact, Store, damaged, file_hash

INIT = places.IMAGES / "init"
_PROVISIONING_FILES = (packer.TEMPLATE, places.PACKER / "start", places.PACKER / "prove.py", INIT)
_INITRAMFS_CODE = tuple(places.PACKAGE / "kernel" / name for name in ("initramfs.py", "elf.py", "modules.py"))
"""What writes the initramfs: what changes in it must not hide behind an image made before."""

RECIPE = 1
"""Raised whenever the same inputs would be assembled differently."""


@dataclass(frozen=True)
class Image:
    """A sealed image in the store, which cells boot."""

    kernel: Kernel
    artefact: Artefact
    description: Description

    @property
    def key(self) -> str:
        return self.artefact.key

    @property
    def content(self) -> str:
        """One hash over all that guests boot: equal packages and kernels give equal hashes on every host.

        It is of the files themselves, not of what the description says of them. Which filesystems were proved is no
        part of it: it shapes no result.
        """
        return key_of(_booted(self.artefact))

    @property
    def root(self) -> Path:
        """The squashfs for the first memory-backed disk; its size is a multiple of 2 MiB."""
        return self.artefact / ROOT

    @property
    def boot_image(self) -> Path:
        """The file for QEMU's -kernel."""
        return self.artefact / self.kernel.boot_image.name

    @property
    def initramfs(self) -> Path:
        """The base archive; a cell's own (``agelab.kernel.initramfs.cell``) is appended to a copy of it."""
        return self.artefact / INITRAMFS

    @property
    def proof(self) -> Mapping[tuple[str, Defaults], Proof]:
        """The proof of each filesystem with each set of defaults."""
        return MappingProxyType({(proof.filesystem, proof.defaults): proof for proof in self.description.proof})


def build(
    kernel: Kernel,
    store: Store,
    filesystems: Sequence[Filesystem],
    *,
    proved: Sequence[Filesystem] | None = None,
    packages: Sequence[str] = (),
    suite: str = "",
    programs: Mapping[str, Sequence[str]] = MappingProxyType({}),
    refresh: bool = False,
    progress: Notify = silent,
) -> Image:
    """Return the sealed image of a kernel for these filesystems, built if the store does not have it.

    ``proved`` limits the filesystems that the guest proves. ``packages`` and ``suite`` are those of a scenario, which
    then has an image of its own; the guest proves that what they install can be loaded, and that ``programs`` run: a
    command for each, by name. ``refresh`` asks the mirror for the newest packages;
    without it the cached resolution is used, and a second call needs no network. Raises HostError when a download,
    mmdebstrap or Packer fails.
    """
    definition = roots.own_definition(roots.definition(), packages, filesystems, suite)
    chosen = roots.resolve_packages(definition, filesystems, store, refresh=refresh)
    proved = filesystems if proved is None else proved
    proving = plan_proof(proved, kernel.modules)
    with SideBySide() as beside:
        if not roots.is_known(definition, chosen, store):
            beside.begin(partial(packer.obtain, store, progress))
            beside.begin(partial(qemu.obtain, store, progress))
        root = roots.identity(definition, chosen, store, progress)
    template = key_of([*map(file_hash, _PROVISIONING_FILES), *sorted(file_code_hash(path) for path in _INITRAMFS_CODE)])
    own_tools = tools.obtain_filesystem_tools(proving.tools, store, progress)
    hashes = {name: file_hash(path) for name, path in own_tools.items()}
    inputs: dict[str, Any] = {
        "root": {"key": root.key, "content": root.content},
        "kernel": kernel.key,
        "busybox": chosen.busybox.sha256,
        "template": template,
        "proof": {one.name: key_of([proving.of(one.name), [hashes.get(tool) for tool in one.tools]]) for one in proved},
        "recipe": RECIPE,
    }
    if kernel.built_modules:
        inputs["modules"] = {path.name: file_hash(path) for path in kernel.built_modules}
    load = plan_package_proof(packages, programs)
    if load:
        inputs["packages_proof"] = key_of([load.model_dump(mode="json"), file_hash(PROVER)])

    def make(directory: Path) -> None:
        work = directory / "work"
        work.mkdir()
        made = roots.obtain(definition, chosen, store, progress)
        if made.manifest.content != root.content:
            raise HostError("the guest's root was damaged, and building it again gave another one", hint="try again")
        progress(f"assembling the initramfs of {kernel.release}")
        busybox = _busybox(store, definition, chosen.busybox, work)
        base = initramfs.base(kernel.modules, busybox, fileio.read_bytes(INIT))
        (work / INITRAMFS).write_bytes(base)
        description = Description(
            kernel=ImageKernel(release=kernel.release, version=kernel.version, key=kernel.key),
            root=made.manifest.files[ROOT],
            template=template,
            packages=(*chosen.root, chosen.busybox),
        )
        kernels = {path.name: path for path in (kernel.vmlinuz, kernel.boot_image) if path.exists()}
        assembly = Assembly(
            target=directory,
            files={ROOT: made / ROOT, INITRAMFS: work / INITRAMFS, **kernels},
            description=description,
            unsupported=proving.unsupported,
        )
        (work / "assembly.json").write_text(assembly.model_dump_json(), encoding="utf-8")
        progress(f"proving {len(proving.items)} ways to make a filesystem on {kernel.release} (packer)")
        ours = {
            "busybox": busybox,
            **{f"tools/{name}": fileio.read_bytes(path, fileio.PROGRAM) for name, path in own_tools.items()},
        }
        _prove(kernel, proving, work, made / ROOT, base, load, ours, store, progress)
        shutil.rmtree(work)

    obtain = partial(store.obtain, "image", readable_by=kernel.artefact.readable_by, shared=kernel.kind == "debian")
    for more in _with_these_proofs(store, inputs):
        with suppress(DamagedArtefact):
            return _read(kernel, obtain(more, _refuse_to_make))
    return _read(kernel, obtain(inputs, make))


def _with_these_proofs(store: Store, inputs: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the inputs of each image that differs in more proofs alone, if in anything."""
    wanted = inputs["proof"].items()
    for artefact in store.all("image"):
        theirs = artefact.manifest.inputs
        proof = theirs["proof"]
        if isinstance(proof, dict) and wanted <= proof.items() and theirs == {**inputs, "proof": proof}:
            yield theirs


def _refuse_to_make(directory: Path) -> None:
    """Leave a damaged image to be made with the proofs that are asked for."""
    raise DamagedArtefact(f"the image {directory.name} is damaged")


def find(kernel: Kernel, store: Store) -> list[Image]:
    """List the finished images of a kernel, oldest first."""
    images = [artefact for artefact in store.all("image") if artefact.manifest.inputs.get("kernel") == kernel.key]
    return [_read(kernel, artefact) for artefact in images]


def describe(artefact: Artefact) -> Description:
    """Return what an image says of itself. Raises DamagedArtefact where its files say otherwise."""
    try:
        description = Description.model_validate_json(fileio.read_bytes(artefact / DESCRIPTION))
    except (OSError, ValidationError) as error:
        raise damaged(f"the image's {artefact / DESCRIPTION}", artefact.directory) from error
    booted = _booted(artefact)
    if description.files != booted or not {ROOT, INITRAMFS} <= set(booted):
        raise damaged(f"the image's {artefact / DESCRIPTION}", artefact.directory, "it is of other files")
    if description.kernel.key != artefact.manifest.inputs.get("kernel"):
        raise damaged(f"the image's {artefact / DESCRIPTION}", artefact.directory, "it is of another kernel")
    return description


def _read(kernel: Kernel, artefact: Artefact) -> Image:
    image = Image(kernel, artefact, describe(artefact))
    if not image.boot_image.exists():
        raise damaged(f"the image in {artefact.directory}", artefact.directory, "it has no kernel")
    return image


def _booted(artefact: Artefact) -> dict[str, str]:
    """Return the hashes of the files of an image, without its description."""
    return {name: sha256 for name, sha256 in artefact.manifest.files.items() if name != DESCRIPTION}


def _busybox(store: Store, definition: roots.RootDefinition, package: Package, work: Path) -> bytes:
    [deb] = Archive(store, definition.suite, definition.also_from).download([package])
    unpack(deb, work / "busybox")
    paths = [work / "busybox" / top / "busybox" for top in ("bin", "usr/bin")]
    return fileio.read_bytes(next(path for path in paths if path.is_file()), fileio.PROGRAM)


def _prove(
    kernel: Kernel,
    proving: ProofPlan,
    work: Path,
    root: Path,
    base: bytes,
    load: PackageProof | None,
    programs: Mapping[str, bytes],
    store: Store,
    progress: Notify,
) -> None:
    """Boot the root with the kernel under Packer, which writes ``proof.json`` and assembles the image.

    Raises HostError where the guest does not prove it, InputError for packages that do not run.
    """
    # QEMU without room for the scratch disk dies of SIGBUS, and Packer says that a script was disconnected.
    if (free := shutil.disk_usage(work).free) < SCRATCH:
        raise HostError(
            f"proving an image takes up to {SCRATCH / 1e6:.0f} MB of disk, and {work} has {free / 1e6:.0f} MB free",
            hint="free some space, or move the store with AGELAB_HOME=<directory>",
        )
    # Packer logs in with this key, which is for this build only.
    process.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(work / "key")])
    own = initramfs.cell(
        kernel.modules,
        ["virtio_pci", "virtio_net"],
        {
            "authorized_keys": fileio.read_bytes(work / "key.pub"),
            **proving.module_files(kernel.modules),
            **(load.files() if load else {}),
        },
        {"start": fileio.read_bytes(places.PACKER / "start"), **programs},
    )
    boot = work / "boot-initramfs"
    boot.write_bytes(base + own)
    (work / "plan.json").write_bytes(proving.for_guest())
    (work / "boot").symlink_to(kernel.boot_image)
    with (work / "scratch.raw").open("wb") as scratch:
        scratch.truncate(SCRATCH)
    with told_by_packer(load):
        packer.build(
            work,
            packer.obtain(store, progress),
            qemu.obtain(store, progress).program,
            {
                "root": str(root),
                "root_size": str(root.stat().st_size),
                "scratch_size": str(SCRATCH),
                "prover": str(PROVER if load else places.PACKER / "prove.py"),
                "initramfs": str(boot),
            },
        )
