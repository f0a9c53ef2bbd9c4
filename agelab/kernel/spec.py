"""Kernel specs: what comes before the colon says which kind of kernel it is, and who resolves the rest."""

from functools import partial
from pathlib import Path
from typing import Protocol

from agelab.debian import SUITES
from agelab.errors import InputError, unknown
from agelab.kernel import build, deb_files, debian_kernel, own_image, recipes
from agelab.kernel.stored_kernel import DEFAULT, Kernel
from agelab.kernel.versions import is_version
from agelab.notify import Notify, silent
from agelab.store import Store


class Resolver(Protocol):
    """What a kind of kernels is: it makes a kernel in the store of what comes after ``<kind>:``.

    Raises InputError for what nothing answers to, HostError when it cannot be had.
    """

    def __call__(self, wanted: str, store: Store, *, refresh: bool, progress: Notify) -> Kernel: ...


KINDS: dict[str, Resolver | None] = {
    "debian": debian_kernel.resolve,
    "deb": deb_files.resolve,
    "image": own_image.resolve,
    "tree": partial(build.resolve, "tree"),
    "source": partial(build.resolve, "source"),
    "recipe": partial(build.resolve, "recipe"),
}
"""Every kind of spec; None for one that is still to come."""


OF_FILES = ("deb", "image")
"""The kinds whose specs are paths with commas between them."""


def canonical(spec: str) -> str:
    """The spec as results and errors have it: a bare version is Debian's, and paths are whole ones."""
    if is_version(spec):
        return f"debian:{spec}"
    kind, _, wanted = spec.partition(":")
    if kind in OF_FILES and wanted:
        paths = (str(Path(word).expanduser().absolute()) if word else "" for word in wanted.split(","))
        return f"{kind}:{','.join(paths)}"
    if kind in recipes.KINDS and wanted:
        return recipes.canonical(spec)
    return spec


def resolve(spec: str, store: Store, *, refresh: bool = False, progress: Notify = silent) -> Kernel:
    """The kernel of a spec, fetched or made if the store does not have it.

    ``refresh`` asks again what the spec stands for. Raises InputError for a spec that nothing answers to,
    HostError when it cannot be had.
    """
    spec = canonical(spec)
    kind, _, wanted = spec.partition(":")
    resolver = KINDS.get(kind)
    if resolver is None or not wanted:
        raise _not_a_spec(spec, kind)
    return resolver(wanted, store, refresh=refresh, progress=progress)


def _not_a_spec(spec: str, kind: str) -> InputError:
    if kind in KINDS and KINDS[kind] is None and ":" in spec:
        return InputError(
            f"kernel {spec!r}: {kind}: kernels are not supported yet", hint=f"for example: {DEFAULT}"
        )
    if kind in OF_FILES and ":" in spec:
        return InputError(f"kernel {spec!r} names no file", hint=f"{kind}:<path>; see docs/kernels.md")
    return unknown("kernel", spec, [DEFAULT, *(f"debian:{suite}" for suite in SUITES)])
