"""Kernel specs, ``<kind>:<rest>``: the kind says which module resolves the rest."""

from functools import partial
from pathlib import Path
from typing import Protocol

from agelab.base.errors import InputError, Notify, silent, unknown
from agelab.base.sanitize import require_utf_8
from agelab.base.types import SUITES
from agelab.kernel import build, build_inputs, deb_files, debian_kernel, own_image, recipes, source_tree
from agelab.kernel.debian_kernel import is_version
from agelab.kernel.stored_kernel import DEFAULT, Kernel, NamedKernel
from agelab.store.artefacts import Store


class Resolver(Protocol):
    """Returns the kernel of a spec's text after ``<kind>:``, made or fetched if the store does not have it.

    Raises InputError when there is no such kernel, HostError when it cannot be fetched or built.
    """

    def __call__(self, name: str, store: Store, /, *, refresh: bool, progress: Notify) -> Kernel: ...


KINDS: dict[str, Resolver] = {
    "debian": debian_kernel.resolve,
    "deb": deb_files.resolve,
    "image": own_image.resolve,
    "tree": partial(build.resolve, "tree"),
    "source": partial(build.resolve, "source"),
    "recipe": partial(build.resolve, "recipe"),
}
"""Every kind of spec and its resolver."""

FILE_KINDS = ("deb", "image")
"""The kinds whose specs are paths separated by commas."""


def canonical(spec: str) -> str:
    """Return the spec as results record it: ``debian:`` before a bare version, and absolute paths."""
    if is_version(spec):
        return f"debian:{spec}"
    kind, _, name = spec.partition(":")
    if kind in FILE_KINDS and name:
        paths = (str(Path(word).expanduser().absolute()) if word else "" for word in name.split(","))
        return f"{kind}:{','.join(paths)}"
    if kind in recipes.KINDS and name:
        return recipes.canonical(spec)
    return spec


def resolve(spec: str, store: Store, *, refresh: bool = False, progress: Notify = silent) -> Kernel:
    """Return the kernel of a spec, fetched or built if the store does not have it.

    ``refresh`` asks again what the spec stands for. Raises InputError for a spec without a kernel,
    HostError when it cannot be fetched or built.
    """
    kind, _, name = require_spec(spec).partition(":")
    return KINDS[kind](name, store, refresh=refresh, progress=progress)


def require_spec(spec: str) -> str:
    """Return the spec as results record it. Raises InputError for one that no kernel could have."""
    spec = canonical(spec)
    require_utf_8(spec)
    kind, _, name = spec.partition(":")
    if kind not in recipes.KINDS and any(f",{option}=" in spec for option in recipes.OPTIONS):
        first = spec.partition(",")[0]
        raise InputError(
            f"kernel {spec!r}: {first} is taken as it is, without a patch and with its own configuration",
            hint="one that is built takes them: source:6.1,patches=mine.patch; see docs/kernels.md",
        )
    if kind not in KINDS or not name:
        raise _not_a_spec(spec, kind)
    return spec


def ask_packages(spec: str, store: Store, progress: Notify = silent) -> NamedKernel | None:
    """Resolve the packages that a kernel is made of, and make nothing. Raises as ``resolve`` does.

    Returns what its headers are asked for by; None for a kernel that is built here, or of the user's own image.
    """
    spec = canonical(spec)
    kind, _, name = spec.partition(":")
    if kind == "debian":
        resolved = debian_kernel.resolve_packages(name, store, progress=progress)
        return NamedKernel(spec, resolved.release, resolved.package.version, resolved.suite)
    if kind == "deb":
        first, *_ = deb_files.read(name)
        return NamedKernel(spec, first.release, first.version)
    if kind in recipes.KINDS:
        build_inputs.resolve_packages(store)
        source, _, version = recipes.parse(spec).source.partition(":")
        if source == "source":
            source_tree.find_package(version, store, progress)
    return None


def _not_a_spec(spec: str, kind: str) -> InputError:
    if kind in FILE_KINDS and ":" in spec:
        return InputError(f"kernel {spec!r} names no file", hint=f"{kind}:<path>; see docs/kernels.md")
    return unknown("kernel", spec, [DEFAULT, *(f"debian:{suite}" for suite in SUITES)])
