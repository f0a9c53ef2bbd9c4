"""Build the laboratory's machine, and run commands in it."""

import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agelab import fileio, process, qemu
from agelab import image as images
from agelab import kernel as kernels
from agelab.cli.options import open_store
from agelab.image import root as roots
from agelab.image.root import RootDefinition
from agelab.kernel import Kernel, initramfs
from agelab.notify import silent
from agelab.scenario.toml_files import read
from agelab.store import Artefact, Store
from tests.lab.devices import Device, words_of

HERE = Path(__file__).parent
CODE = HERE.parents[1]
MEMORY_MIB = 4096
SECONDS = 3000.0
"""Seconds of the host for one machine; a busy host slows it as it does everything."""
ARGUMENTS = "console=ttyS0 panic=-1 mitigations=off no_timer_check quiet intel_iommu=on"
_VARIABLES = {"AGELAB_LAB": "1", "AGELAB_PATIENCE": "900", "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True)
class Laboratory:
    """A machine that does not run yet."""

    devices: tuple[Device, ...]
    suite: str = "bookworm"
    """Debian's release in it."""
    variables: dict[str, str] = field(default_factory=dict)
    """More of the job's environment."""

    def run(self, argv: Sequence[str], job: Path) -> "Finished":
        """Boot the machine, run a command in the project's directory, and power off.

        ``job`` is a directory that both sides write to; the machine sees it at the same path, and the project and the
        store, too, which it cannot change.
        """
        store = open_store()
        kernel = kernels.resolve(kernels.DEFAULT, store)
        image = images.build(kernel, store, roots.served(roots.definition(), ()))
        root = _root(self.suite, kernel, store) / roots.ROOT_FILE
        variables = {
            **_VARIABLES,
            "AGELAB_HOME": str(store.home),
            "AGELAB_LAB_JOB": str(job),
            **self.variables,
        }
        assigned = "".join(f"export {name}={shlex.quote(text)}\n" for name, text in variables.items())
        (job / "command").write_text(f"{assigned}exec {shlex.join(argv)}\n")
        places = f"CODE={shlex.quote(str(CODE))}\nSTORE={shlex.quote(str(store.home))}\nJOB={shlex.quote(str(job))}\n"
        with tempfile.TemporaryDirectory(prefix="agelab-lab-") as directory:
            work = Path(directory)
            archive = initramfs.cell(
                kernel.modules, (), {"places": places.encode()}, {"start": (HERE / "start").read_bytes()}
            )
            (work / "initramfs").write_bytes(image.initramfs.read_bytes() + archive)
            for device in self.devices:
                for name, size in device.images.items():
                    with (work / f"{name}.img").open("wb") as file:
                        file.truncate(size)
            console = job / "console"
            machine = [
                str(qemu.obtain(store).program), "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2",
                "-machine", "q35,nvdimm=on", "-m", f"{MEMORY_MIB}M,slots=2,maxmem=64G",
                "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", f"file:{console}",
                "-object", f"memory-backend-file,id=root,share=on,readonly=on,mem-path={root},size={root.stat().st_size}",
                "-device", "nvdimm,memdev=root,unarmed=on",
                "-kernel", str(image.boot_image), "-initrd", str(work / "initramfs"), "-append", ARGUMENTS,
                *_share("job", job), *_share("code", CODE, ",readonly=on"), *_share("store", store.home, ",readonly=on"),
                "-device", "intel-iommu,intremap=on,caching-mode=on",
                *words_of(self.devices, directory),
            ]  # fmt: skip
            process.run(machine, timeout=SECONDS)
        return Finished(job)


@dataclass(frozen=True)
class Finished:
    """What a machine has left in its job's directory."""

    job: Path

    @property
    def code(self) -> int | None:
        """Exit code of the command; None where the machine ended before it."""
        code = self.job / "code"
        return int(code.read_text()) if code.exists() else None

    @property
    def said(self) -> str:
        """The end of what the command and the machine's console said."""
        files = [self.job / name for name in ("console", "output")]
        return "\n".join(fileio.tail(file) for file in files if file.exists())


def _share(tag: str, path: Path, more: str = "") -> tuple[str, str]:
    return "-virtfs", f"local,path={path},mount_tag={tag},security_model=none,id={tag}{more}"


def _root(suite: str, kernel: Kernel, store: Store) -> Artefact:
    """Return the machine's root, made if the store does not have it."""
    asked = read(HERE / "root.toml", RootDefinition)
    packages = (*asked.packages, f"linux-image-{kernel.release}")
    definition = asked.model_copy(update={"suite": suite, "packages": packages})
    chosen = roots.resolve_packages(definition, (), store)
    return roots.obtain(definition, chosen, store, silent)
