"""Kernels of kind ``deb:``: the user's .deb files, of an own build or of a kernel that left the mirror."""

import re
from pathlib import Path

from agelab.base import fileio as readers
from agelab.base import process
from agelab.base.errors import InputError, Notify, silent
from agelab.base.types import Frozen
from agelab.debian import control_fields
from agelab.kernel import guest_needs
from agelab.kernel.debian_kernel import RECIPE
from agelab.kernel.stored_kernel import Kernel
from agelab.kernel.unpack import NotAKernel, unpack
from agelab.store.artefacts import Store, file_hash, require_unchanged

# Debian's packages of one kernel (in parts since Linux 7), Ubuntu's, and those of the kernel's own bindeb-pkg.
_PACKAGE = re.compile(
    r"linux-(image(-unsigned)?|base|binary|modules(-extra)?)-(?P<release>\d[\w.+~-]*?)(-unsigned)?"
)


class Deb(Frozen):
    """One .deb file and its control data."""

    path: Path
    name: str
    version: str
    release: str
    sha256: str


def resolve(wanted: str, store: Store, *, refresh: bool = False, progress: Notify = silent) -> Kernel:
    """Return the kernel in these files (paths separated by commas), unpacked if the store does not have it.

    Its key depends on the content alone: it equals the key of the ``debian:`` kernel with the same files. Raises
    InputError for files that are not one kernel.
    """
    spec, debs = f"deb:{wanted}", read(wanted)
    first = debs[0]

    def build(directory: Path) -> None:
        progress(f"unpacking the kernel {first.release}")
        try:
            unpack([deb.path for deb in debs], first.release, directory)
        except NotAKernel as error:
            raise InputError(
                str(error),
                hint="name all packages of a kernel that comes in parts: deb:<image>,<modules>,...",
            ) from error
        for deb in debs:
            require_unchanged(deb.path, deb.sha256)
        guest_needs.require_root_support(spec, first.release, directory, "choose another: agelab kernel list")

    readable_by = readers.of_files(*(deb.path for deb in debs))
    artefact = store.obtain("kernel", key_inputs(debs), build, readable_by=readable_by)
    return Kernel(spec, first.release, first.version, artefact)


def read(wanted: str) -> list[Deb]:
    """Read the control data of these files, sorted by package. Raises InputError for files that are not one kernel."""
    spec = f"deb:{wanted}"
    debs = sorted((_read(spec, Path(word)) for word in wanted.split(",")), key=lambda deb: deb.name)
    first = debs[0]
    for other in debs[1:]:
        if (other.release, other.version) != (first.release, first.version):
            raise InputError(
                f"kernel {spec!r}: the files are not of one kernel: {first.path.name} is of {first.release} "
                f"({first.version}), {other.path.name} of {other.release} ({other.version})"
            )
    return debs


def key_inputs(debs: list[Deb]) -> dict[str, object]:
    """Return the inputs of the kernel's key: for the files of a Debian kernel the same as that kernel's."""
    release, version = debs[0].release, debs[0].version
    image = next((deb for deb in debs if deb.name.startswith("linux-image-")), None)
    found: dict[str, object] = {"version": version, "recipe": RECIPE}
    found |= {"package": image.name, "sha256": image.sha256} if image else {}
    if image is None or image.name != f"linux-image-{release}":
        found["release"] = release
    if parts := [[deb.name, deb.sha256] for deb in debs if deb is not image]:
        found["parts"] = parts
    return found


def _read(spec: str, path: Path) -> Deb:
    if not path.is_file():
        raise InputError(f"kernel {spec!r}: no file {str(path)!r}", hint="deb:<path>, or deb:<path>,<path>")
    try:
        shown = control_fields(path, "${Package}\\n${Version}")
    except process.ProcessFailed as error:
        raise InputError(f"kernel {spec!r}: {path} is not a Debian package") from error
    name, _, version = shown.partition("\n")
    match = _PACKAGE.fullmatch(name)
    if not match:
        raise InputError(
            f"kernel {spec!r}: {path.name} holds the package {name}, which is no part of a kernel",
            hint="a kernel is linux-image-<release> or, in parts, also linux-base-, linux-binary- and "
            "linux-modules-<release>",
        )
    return Deb(path=path, name=name, version=version, release=match["release"], sha256=file_hash(path))
