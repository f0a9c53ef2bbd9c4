"""Build guest images without packages or a guest."""

import json
from pathlib import Path

import pytest

from agelab.debian import Package
from agelab.kernel import Kernel, initramfs
from agelab.kernel.elf import ModuleInfo
from agelab.kernel.modules import BUILTIN, INDEX, index
from agelab.machine.image import assemble, proof, sealed_image
from agelab.machine.image import root as roots
from agelab.scenario.filesystem import Filesystem
from agelab.store.artefacts import Store

PACKAGE = Package(name="busybox-static", version="1", filename="b.deb", size=1, sha256="0" * 64)


def kernel(store: Store, config: str = "# CONFIG_UFS_FS_WRITE is not set\n") -> Kernel:
    """A kernel with the modules of the root, of ext4 and of ufs, and no others."""
    names = (*initramfs.BASE_MODULES, "ext4", "ufs", "virtio_pci", "virtio_net")

    def build(directory: Path) -> None:
        (directory / "modules").mkdir()
        for name in names:
            (directory / f"modules/{name}.ko").write_bytes(name.encode())
        (directory / INDEX).write_bytes(index([ModuleInfo(name=name, path=f"modules/{name}.ko") for name in names]))
        (directory / BUILTIN).write_text("")
        (directory / "vmlinuz").write_bytes(b"kernel")
        (directory / "config").write_text(config)

    made = store.obtain("kernel", {"package": "test", "config": config}, build)
    return Kernel("debian:6.1", "6.1.0-1-amd64", "6.1.1-1", artefact=made)


def filesystem(name: str, module: str) -> Filesystem:
    tooling = {"mkfs": ("mkfs", "-U", "{uuid}", "{device}"), "fsck": ("fsck", "{device}")}
    return Filesystem.model_validate(
        {
            **{"name": name, "summary": "", "packages": (), "modules": (module,), "mount_type": name},
            "modules_why": "it needs a patch" if name == "reiser4" else "",
            **{"minimum_mib": 1, "extents": "none", "extents_why": "it is not real", "today": tooling},
            "free_space": {"why": "it is not real"},
            "period": {**tooling, "mount_options": ("strictatime", "barrier=0")},
        }
    )


FILESYSTEMS = [filesystem("ext4", "ext4"), filesystem("reiser4", "reiser4")]


def without_packages(made: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have roots of that store made at once, without packages."""

    def root(directory: Path) -> None:
        (directory / roots.ROOT_FILE).write_bytes(b"root")

    chosen = roots.RootPackages(root=(), busybox=PACKAGE)
    monkeypatch.setattr(roots, "resolve_packages", lambda *_, **__: chosen)
    monkeypatch.setattr(roots, "is_known", lambda *_: True)  # then nothing is made beside it
    monkeypatch.setattr(roots, "obtain", lambda *_, **__: made.obtain("root", {}, root))
    monkeypatch.setattr(sealed_image, "_busybox", lambda *_: b"busybox")


def proved(work: Path) -> None:
    """Do what Packer does in ``work``, with a guest that proves whatever it is asked."""
    items = json.loads((work / "plan.json").read_text())["items"]
    answers = [{"filesystem": one["filesystem"], "defaults": one["defaults"], "status": "ok"} for one in items]
    (work / "proof.json").write_text(json.dumps(answers))
    assemble.assemble(work)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store for which roots and proofs are made at once, without packages or a guest."""
    made = Store(tmp_path / "home")

    def prove(kernel: Kernel, proving: proof.ProofPlan, work: Path, *_: object) -> None:
        (work / "plan.json").write_bytes(proving.for_guest())
        proved(work)

    without_packages(made, monkeypatch)
    monkeypatch.setattr(sealed_image, "_prove", prove)
    return made
