"""The inputs of a kernel that is built here: source, patches, configuration and compiler. They make its key."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agelab.base import atomic, fileio, git, readers
from agelab.base.errors import InputError, Notify, naming_disk_errors
from agelab.base.hashing import key_of
from agelab.debian import buildroot, first_suite
from agelab.debian.buildroot import BuildRoot, Purpose
from agelab.kernel import recipes, source_tree
from agelab.kernel.source_tree import SourceTree, git_output
from agelab.store.artefacts import Artefact, Store, artefact_key

RECIPE = 1
"""Raised whenever the same inputs would make another kernel."""
ROOT_RECIPE = 1
"""Raised whenever the same packages would make another build root."""

_PACKAGES = (
    *("bash", "bc", "binutils", "bison", "bzip2", "ccache", "coreutils", "cpio", "dash", "diffutils", "findutils"),
    *("flex", "gcc", "grep", "gzip", "libc6-dev", "libelf-dev", "libssl-dev", "make", "mawk", "perl-base", "sed"),
    *("python3-minimal", "tar", "xz-utils", "zstd"),
)
_UNUSED = (
    *("share/doc", "share/man", "share/info", "share/locale", "share/lintian", "games", "local"),
    *("lib/gcc/*/*/lto1", "lib/gcc/*/*/lto-wrapper", "libexec/gcc/*/*/lto1", "libexec/gcc/*/*/lto-wrapper"),
    *("lib/*/gconv", "lib/gcc/*/*/plugin", "bin/*lto-dump*", "bin/*gold", "bin/*-dwp", "bin/dwp"),
)


@dataclass(frozen=True)
class BuildInputs:
    """Everything that determines the bytes of a kernel that is built here."""

    source: SourceTree
    base: str | None
    """The text of a distribution's configuration; None for the small one."""
    fragments: Mapping[str, str]
    """Name to text of the configuration fragments that the user added, in order."""
    toolchain: Artefact
    readable_by: int = readers.EVERYBODY
    """Who may read the user's tree, patches and configuration (agelab.base.fileio)."""

    @property
    def config_text(self) -> str:
        """The lines of the configuration that conf is given: one of each option, so the key has all that counts."""
        return recipes.options_text(self.options)

    @property
    def options(self) -> dict[str, str]:
        """The options of all files; of one that is set twice the last line counts."""
        first = [fileio.read_text(recipes.NEEDED), fileio.read_text(recipes.SMALL)]
        if self.base is not None:
            first = [self.base, fileio.read_text(recipes.DISTRIBUTION)]
        return recipes.options("\n".join([*first, *self.fragments.values()]))

    @property
    def key_inputs(self) -> dict[str, object]:
        """The inputs that make the kernel's key."""
        return {
            "tree": self.source.tree,
            "version": self.source.version,
            "options": self.options,
            "from": "small" if self.base is None else "base",
            "toolchain": self.toolchain.key,
            "recipe": RECIPE,
        }

    @property
    def key(self) -> str:
        """The kernel's key in the store."""
        return artefact_key("kernel", self.key_inputs)


def plan_build(spec: str, store: Store, progress: Notify, *, refresh: bool = False) -> BuildInputs:
    """Read a spec's source, patches and configuration. Raises as ``kernel.build.resolve`` does."""
    build_spec = recipes.parse(spec)
    kind, _, what = build_spec.source.partition(":")
    own = [*build_spec.fragments, *build_spec.patches, *([build_spec.base] if build_spec.base else ())]
    if kind == "tree":
        path, _, ref = what.partition("@")
        tree = Path(path).expanduser()
        source = source_tree.from_directory(tree, ref, store, progress)
        readers.restrict(source.cache_dir, readers.of_files(tree))
        own.append(tree)
    else:
        source = source_tree.from_package(what, store, progress, refresh=refresh)
    fragments = {str(path): _text(path) for path in build_spec.fragments}
    if build_spec.lines:
        fragments[spec.partition(",")[0]] = "\n".join(build_spec.lines)
    base = _text(build_spec.base) if build_spec.base else None
    for name, text in {**fragments, **({str(build_spec.base): base} if base is not None else {})}.items():
        recipes.require_readable(name, text)
    return BuildInputs(
        source_tree.apply_patches(source, build_spec.patches),
        base,
        fragments,
        toolchain(store, progress),
        readers.of_files(*own),
    )


def _text(path: Path) -> str:
    """Read a configuration file. Raises InputError when it is not text."""
    try:
        return fileio.read_text(path)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a text file, as a .config is", hint="unpack it first: zcat") from error


def resolve_packages(store: Store, suite: str = "", *, refresh: bool = False) -> BuildRoot:
    """Resolve the compiler of a suite and the programs that kbuild runs, from the cache unless ``refresh``.

    Without ``suite`` it is the host's, or that of a snapshot.
    """
    suite = suite or first_suite()
    question = {"kernels": suite, "packages": _PACKAGES}
    return buildroot.resolve(store, suite, question, lambda archive: archive.resolve(_PACKAGES), refresh=refresh)


def toolchain(store: Store, progress: Notify) -> Artefact:
    """Return the build root for kernels."""
    purpose = Purpose("kernels", _UNUSED, {"recipe": ROOT_RECIPE})
    return buildroot.with_packages(
        lambda refresh: resolve_packages(store, refresh=refresh),
        lambda chosen: buildroot.of_packages(chosen, purpose, store, progress, verify=False),
    )


CACHES_KEPT = 4
"""Caches that a repository keeps: those that were used last."""
_PLACES = ("block", "drivers/block", "drivers/md", "drivers/nvdimm", "drivers/nvme", "fs", "io_uring", "kernel", "mm")
"""Directories whose code is compiled into the kernel, and is not a part of a program that is run while it is built."""
_CODE = re.compile(rf"100644 blob [0-9a-f]+\t(?P<path>({'|'.join(_PLACES)})/[\w/+.-]+\.[ch])")
_RUNS = ("hostprogs", "hostcc", "hostcxx", "hostlibs", "userprogs", "bpftool")
"""Words of a makefile for programs that are run, whatever lies below it."""
_BPF = "kernel/bpf/"
"""It lends bpftool its disassembler."""
_SWITCH = re.compile(r"\s*(#.*)?|CONFIG_\w+=([ymn]|\d+)")
"""A line of configuration that no makefile could take for a command."""


def compiler_cache(inputs: BuildInputs) -> Path:
    """Return the ccache directory of a build. The caller holds the lock of its repository.

    Whatever is built can write anything into the ccache that it is given, so it decides what is found there later. So
    trees share one that differ in nothing but code which is compiled into the kernel and not run here: they have the
    same makefiles, scripts, programs and shared headers, and the same words in their configurations.
    """
    source = inputs.source
    lines = [line for line in inputs.config_text.split("\n") if not _SWITCH.fullmatch(line)]
    top = source.cache_dir / "ccaches"
    own = top / key_of([_what_may_run(source), lines])[:16]
    directory = own / "ccache"  # what is built can give it any time, and not to the one around it
    with naming_disk_errors(source.cache_dir):
        directory.mkdir(parents=True, exist_ok=True)
    os.utime(own)
    for old in sorted(top.iterdir(), key=lambda path: path.stat().st_mtime_ns)[:-CACHES_KEPT]:
        atomic.remove(old)
    return directory


def _what_may_run(source: SourceTree) -> list[str]:
    """List the files of a tree that may have a command run in a build, with mode and content."""
    words = [word for run in _RUNS for word in ("-e", run)]
    argv = ["grep", "-a", "-i", "-l", "-z", *words, source.tree, "--", *_PLACES, ":!*.c", ":!*.h"]
    named = git.run(source.cache_dir / "git", argv, ok=(0, 1)).stdout.split("\0")
    run = (_BPF, *(f"{name.partition(':')[2].rpartition('/')[0]}/" for name in named if name))
    entries = []
    for line in git_output(source.cache_dir, ["ls-tree", "-r", "-z", source.tree]).split("\0"):
        code = _CODE.fullmatch(line)
        if not code or code["path"].startswith(run):
            entries.append(line)
    return entries
