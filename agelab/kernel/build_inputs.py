"""What a kernel is built from: source, patches, configuration and compiler, which together make its key."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agelab import buildroot
from agelab.buildroot import BuildRoot, Purpose
from agelab.debian import Archive, cached_resolution, host_suite
from agelab.errors import InputError
from agelab.kernel import config, recipes, source_tree
from agelab.kernel.source_tree import SourceTree
from agelab.notify import Notify
from agelab.store import Artefact, Store, key_of

RECIPE = 1
"""Raised whenever the same inputs would make another bundle."""
ROOT_RECIPE = 1
"""Raised whenever the same packages would make another build root."""

_PACKAGES = (
    *(
        "bash",
        "bc",
        "binutils",
        "bison",
        "bzip2",
        "ccache",
        "coreutils",
        "cpio",
        "dash",
        "diffutils",
        "findutils",
    ),
    *(
        "flex",
        "gcc",
        "grep",
        "gzip",
        "libc6-dev",
        "libelf-dev",
        "libssl-dev",
        "make",
        "mawk",
        "perl-base",
        "sed",
    ),
    *("python3-minimal", "tar", "xz-utils", "zstd"),
)
_UNUSED = (
    *("share/doc", "share/man", "share/info", "share/locale", "share/lintian", "games", "local"),
    *("lib/gcc/*/*/lto1", "lib/gcc/*/*/lto-wrapper", "libexec/gcc/*/*/lto1", "libexec/gcc/*/*/lto-wrapper"),
    *("lib/*/gconv", "lib/gcc/*/*/plugin", "bin/*lto-dump*", "bin/*gold", "bin/*-dwp", "bin/dwp"),
)


@dataclass(frozen=True)
class BuildInputs:
    """What a kernel is built from, to the last byte."""

    source: SourceTree
    base: str | None
    """A distribution's configuration; None for the small one."""
    fragments: Mapping[str, str]
    """Name to text of what the user has added, in order."""
    toolchain: Artefact

    @property
    def config_text(self) -> str:
        """The lines that the configuration is made of, the last of an option counting."""
        first = [config.NEEDED.read_text(), config.SMALL.read_text()]
        if self.base is not None:
            first = [self.base, config.DISTRIBUTION.read_text()]
        return "\n".join([*first, *self.fragments.values()])

    @property
    def options(self) -> dict[str, str]:
        """What the lines say: a comment makes no other kernel."""
        return config.options(self.config_text)

    @property
    def object_dir(self) -> Path:
        """Where its objects are: those of each configuration and compiler by themselves."""
        name = key_of({"options": self.options, "toolchain": self.toolchain.key})
        return self.source.cache_dir / f"objects-{name[:16]}"

    @property
    def key_inputs(self) -> dict[str, object]:
        """What its key is the hash of."""
        return {
            "tree": self.source.tree,
            "version": self.source.version,
            "options": self.options,
            "from": "small" if self.base is None else "base",
            "toolchain": self.toolchain.key,
            "recipe": RECIPE,
        }


def plan_build(spec: str, store: Store, progress: Notify, *, refresh: bool = False) -> BuildInputs:
    """What a spec asks to be built. Raises as ``resolve`` does."""
    wanted = recipes.parse(spec)
    kind, _, what = wanted.source.partition(":")
    if kind == "tree":
        path, _, ref = what.partition("@")
        found = source_tree.from_directory(Path(path).expanduser(), ref, store, progress)
    else:
        found = source_tree.from_package(what, store, progress, refresh=refresh)
    fragments = {str(path): _text(path) for path in wanted.fragments}
    if wanted.lines:
        fragments["the recipe"] = "\n".join(wanted.lines)
    base = _text(wanted.base) if wanted.base else None
    return BuildInputs(
        source_tree.apply_patches(found, wanted.patches), base, fragments, toolchain(store, progress)
    )


def _text(path: Path) -> str:
    """The text of a configuration. Raises InputError for what is none."""
    try:
        return path.read_text()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no text, as a .config is", hint="unpack it first: zcat") from error


def toolchain(store: Store, progress: Notify) -> Artefact:
    """The build root of kernels: the compiler of the host's suite and what kbuild runs beside it."""

    def ask(refresh: bool) -> BuildRoot:
        archive = Archive(store, host_suite())
        question = {"kernels": archive.suite, "packages": _PACKAGES}

        def answer() -> BuildRoot:
            archive.update(refresh=refresh)
            return BuildRoot(suite=archive.suite, packages=archive.resolve(_PACKAGES))

        return cached_resolution(store, question, BuildRoot, answer, refresh=refresh)

    purpose = Purpose("kernels", _UNUSED, {"recipe": ROOT_RECIPE})
    return buildroot.obtain(ask, purpose, store, progress, verify=False)
