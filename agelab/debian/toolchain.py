"""The compiler and C library of the guest's suite, in a build root: what they make is the same on every host."""

import re
from typing import Any

from agelab.debian import Archive, cached_resolution
from agelab.debian.buildroot import BuildRoot, Purpose
from agelab.store.artefacts import Store

ROOT_RECIPE = 1
"""Raised whenever the same packages would make another build root."""

_PACKAGES = ("gcc", "libc6-dev")
# Dependencies of libc and of the compiler (sanitizers) that these programs do not use.
_NOT_NEEDED = re.compile(
    r"libc-dev-bin|libcom-err2|libcrypt.*|libgssapi.*|libk5crypto3|libkeyutils1|libkrb5.*|libnsl.*|libssl3.*"
    r"|libtirpc.*|rpcsvc-proto|openssl-provider-legacy"
    r"|lib(asan|atomic|cc1-|gomp|gprofng|hwasan|itm|lsan|quadmath|tsan|ubsan)\d*"
)
# Removed from the unpacked tree; relative to /usr.
_UNUSED = (
    *("share", "games", "local", "lib/*/gconv", "lib/gcc/*/*/plugin", "lib/gcc/*/*/*san*"),
    *("lib/gcc/*/*/lto1", "libexec/gcc/*/*/lto1", "bin/*lto-dump*", "bin/*gcov*", "bin/*gprof*"),
    *("bin/*-dwp", "bin/dwp", "bin/*gold", "bin/*elfedit"),
)


def purpose(product: str) -> Purpose:
    """Return the purpose of the build root for a product that is named in messages: one root serves all products."""
    return Purpose(product, _UNUSED, {"programs": ROOT_RECIPE})


def resolve_packages(store: Store, suite: str, *, refresh: bool = False) -> BuildRoot:
    """Resolve the packages of a suite's compiler, from the cache unless ``refresh``."""

    def ask() -> BuildRoot:
        archive = Archive(store, suite)
        archive.update(refresh=refresh)
        found = archive.resolve(_PACKAGES)
        return BuildRoot(
            suite=suite,
            packages=tuple(package for package in found if not _NOT_NEEDED.fullmatch(package.name)),
        )

    return cached_resolution(store, question(suite), BuildRoot, ask, refresh=refresh)


def question(suite: str) -> dict[str, Any]:
    """Return the question under which the resolution of these packages is cached."""
    return {"buildroot": suite, "programs": _PACKAGES}
