"""Build the laboratory's machine, and run commands in it."""

import re
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agelab import kernel as kernels
from agelab.base import atomic, fileio, places, process
from agelab.base.errors import silent
from agelab.cli.options import open_store
from agelab.kernel import Kernel, initramfs
from agelab.machine import qemu
from agelab.machine.image import root as roots
from agelab.machine.image.root import RootDefinition
from agelab.scenario.toml_files import read
from agelab.store.artefacts import Artefact, Store
from tests.lab.devices import Device, words_of

HERE = Path(__file__).parent
CODE = HERE.parents[1]
MEMORY_MIB = 4096
SECONDS = 3000.0
"""Seconds of the host for one machine; a busy host slows it as it does everything."""
ARGUMENTS = "console=ttyS0 panic=-1 mitigations=off no_timer_check quiet intel_iommu=on"
KERNELS = {"bookworm": kernels.DEFAULT, "trixie": "debian:trixie"}
"""The machine's own kernel in each release of Debian."""
_VARIABLES = {"AGELAB_LAB": "1", "AGELAB_PATIENCE": "900", "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True)
class Laboratory:
    """A machine that does not run yet."""

    devices: tuple[Device, ...]
    suite: str = "bookworm"
    """Debian's release in it."""
    prepared: tuple[tuple[str, ...], ...] = ()
    """Runs of agelab on the host beforehand: the machine has no network, and builds nothing."""

    def run(self, argv: Sequence[str], job: Path) -> str:
        """Boot the machine, run a command in the project's directory, and power off.

        ``job`` is a directory that both sides write to; the machine sees it at the same path, and the project and the
        store, too, which it cannot change. Returns the end of what the machine and the command said.

        Raises AgelabError where the machine cannot be made, or does not end.
        """
        store = open_store()
        kernel = kernels.resolve(KERNELS[self.suite], store)
        root = _root(self.suite, kernel, store) / roots.ROOT_FILE
        variables = {**_VARIABLES, "AGELAB_HOME": str(store.home), "AGELAB_LAB_JOB": str(job)}
        for words in self.prepared:
            process.run([str(CODE / ".venv/bin/agelab"), *words], env={"AGELAB_HOME": str(store.home)})
        assigned = "".join(f"export {name}={shlex.quote(text)}\n" for name, text in variables.items())
        own_python = "" if self.suite == "bookworm" else _own_python(store)
        (job / "command").write_text(f"{assigned}{own_python}exec {shlex.join(argv)}\n")
        where = f"CODE={shlex.quote(str(CODE))}\nSTORE={shlex.quote(str(store.home))}\nJOB={shlex.quote(str(job))}\n"
        with tempfile.TemporaryDirectory(prefix="agelab-lab-") as directory:
            work = Path(directory)
            archive = initramfs.cell(
                kernel.modules, (), {"places": where.encode()}, {"start": (HERE / "start").read_bytes()}
            )
            process.run(["unsquashfs", "-cat", str(root), "usr/bin/busybox"], stdout=work / "busybox")
            init = fileio.read_bytes(places.IMAGES / "init")
            base = initramfs.base(kernel.modules, fileio.read_bytes(work / "busybox"), init)
            (work / "initramfs").write_bytes(base + archive)
            for device in self.devices:
                for name, size in device.images.items():
                    with (work / f"{name}.img").open("wb") as file:
                        file.truncate(size)
            console, root_bytes = job / "console", root.stat().st_size
            machine = [
                str(qemu.obtain(store).program), "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2",
                "-machine", "q35,nvdimm=on", "-m", f"{MEMORY_MIB}M,slots=2,maxmem=64G",
                "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", f"file:{console}",
                "-object", f"memory-backend-file,id=root,share=on,readonly=on,mem-path={root},size={root_bytes}",
                "-device", "nvdimm,memdev=root,unarmed=on",
                "-kernel", str(kernel.boot_image), "-initrd", str(work / "initramfs"), "-append", ARGUMENTS,
                *_share("job", job), *_share("code", CODE, ",readonly=on"),
                *_share("store", store.home, ",readonly=on"),
                # The machine's second serial line leads to its own monitor: it can pull out a device.
                "-chardev", f"socket,id=monitor,path={directory}/monitor,server=on,wait=off",
                "-mon", "chardev=monitor,mode=control",
                "-chardev", f"socket,id=line,path={directory}/monitor", "-serial", "chardev:line",
                "-device", "intel-iommu,intremap=on,caching-mode=on",
                *words_of(self.devices, directory),
            ]  # fmt: skip
            process.run(machine, timeout=SECONDS)
        return last_words(job)


def last_words(job: Path) -> str:
    """Return the end of what the machine's console and the command have said."""
    files = [job / name for name in ("console", "output")]
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


def _own_python(store: Store) -> str:
    """Return shell commands that put Python packages for another release's Python in the place of the host's .venv.

    They are the same versions, from wherever the host's pip takes packages.
    """
    version = "3.13"
    kept = store.cache("lab") / f"python{version}"
    if not kept.exists():
        with atomic.locked_directory(kept.with_suffix(".partial")) as partial:
            wanted = partial / "requirements.txt"
            wanted.write_text((CODE / "requirements.txt").read_text() + _locked(("pytest", "iniconfig")))
            words = f"--no-deps --no-compile --only-binary=:all: --require-hashes --python-version {version}"
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install"]
            process.run([*pip, *words.split(), "--target", str(partial), "--requirement", str(wanted)])
            partial.rename(kept)
    site = f"/tmp/venv/lib/python{version}/site-packages"
    program = "#!/tmp/venv/bin/python\\nimport sys\\nfrom agelab.cli import main\\nsys.exit(main())\\n"
    return (
        "python3 -m venv --without-pip --system-site-packages /tmp/venv || exit 1\n"
        f"printf '%s\\n' {shlex.quote(str(kept))} {shlex.quote(str(CODE))} > {site}/laboratory.pth\n"
        f"printf '{program}' > /tmp/venv/bin/agelab; chmod +x /tmp/venv/bin/agelab\n"
        f"cp -r .venv/lib/python3*/site-packages/agelab-*.dist-info {site} || exit 1\n"
        f"mount --bind /tmp/venv {shlex.quote(str(CODE))}/.venv || exit 1\n"
    )


def _locked(names: Sequence[str]) -> str:
    """Return the lines of requirements-test.txt that lock these packages."""
    entries = re.split(r"\n(?=[a-z])", (CODE / "requirements-test.txt").read_text())
    return "".join(f"{entry}\n" for entry in entries if entry.partition("==")[0] in names)
