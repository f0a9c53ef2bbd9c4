"""Kernels that are built here: source, patches and configuration become a bundle like a distribution's.

The compiler is Debian's of the host's suite, in a build root of its own (agelab/buildroot.py); what it is given has the
same paths and the same date each time. Objects are kept from one build to the next, and ccache keeps what they held:
a kernel that differs in one file costs that file and the links.
"""

import os
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agelab import atomic, buildroot
from agelab.buildroot import BuildRoot, DoesNotBuild, Purpose, Workshop
from agelab.debian import Archive, cached_resolution, host_suite
from agelab.errors import HostError, InputError
from agelab.kernel import config, provenance, recipes, source_tree, unpack
from agelab.kernel.source_tree import SourceTree
from agelab.kernel.unpack import Kernel, Progress, quiet
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
_ENVIRONMENT = {
    "HOME": "/tmp",
    "CCACHE_DIR": "/tmp/ccache",
    "CCACHE_MAXSIZE": "4G",
    "CCACHE_NOSTATS": "1",
    "KBUILD_BUILD_TIMESTAMP": "Wed Jan 1 00:00:00 UTC 2020",
    "KBUILD_BUILD_USER": "agelab",
    "KBUILD_BUILD_HOST": "agelab",
    "KBUILD_BUILD_VERSION": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}
MARK = "agelab-built"
"""The file among the objects that says of which tree they are, all of them."""
UNDER_WAY = "agelab-under-way"
"""The file among them while make works on them: one that was killed leaves files that it takes for whole."""
_PROGRESS_SECONDS = 20.0


@dataclass(frozen=True)
class Building:
    """What a kernel is built from, to the last byte."""

    source: SourceTree
    base: str | None
    """A distribution's configuration; None for the small one."""
    fragments: Mapping[str, str]
    """Name to text of what the user has added, in order."""
    toolchain: Artefact

    @property
    def settings(self) -> str:
        """The lines that the configuration is made of, the last of an option counting."""
        first = [config.NEEDED.read_text(), config.SMALL.read_text()]
        if self.base is not None:
            first = [self.base, config.DISTRIBUTION.read_text()]
        return "\n".join([*first, *self.fragments.values()])

    @property
    def options(self) -> dict[str, str]:
        """What the lines say: a comment makes no other kernel."""
        return config.options(self.settings)

    @property
    def objects(self) -> Path:
        """Where its objects are: those of each configuration and compiler by themselves."""
        name = key_of({"options": self.options, "toolchain": self.toolchain.key})
        return self.source.place / f"objects-{name[:16]}"

    @property
    def inputs(self) -> dict[str, object]:
        """What its key is the hash of."""
        return {
            "tree": self.source.tree,
            "version": self.source.version,
            "options": self.options,
            "from": "small" if self.base is None else "base",
            "toolchain": self.toolchain.key,
            "recipe": RECIPE,
        }


def resolve(
    kind: str, wanted: str, store: Store, *, refresh: bool = False, progress: Progress = quiet
) -> Kernel:
    """The kernel that a ``tree:``, ``source:`` or ``recipe:`` spec asks for, built if the store does not have it.

    Raises InputError for what cannot be built as it was asked, HostError where this host cannot, DoesNotBuild.
    """
    spec = f"{kind}:{wanted}"
    building = planned(spec, store, progress, refresh=refresh)

    def build(directory: Path) -> None:
        with live(building, store, progress) as shop:
            _collect(shop, building, directory)

    artefact = store.obtain("kernel", building.inputs, build)
    release = (artefact / unpack.RELEASE).read_text()
    return Kernel(spec, release, building.source.version, artefact, building=building)


def planned(spec: str, store: Store, progress: Progress, *, refresh: bool = False) -> Building:
    """What a spec asks to be built. Raises as ``resolve`` does."""
    wanted = recipes.of(spec)
    kind, _, what = wanted.source.partition(":")
    if kind == "tree":
        path, _, ref = what.partition("@")
        found = source_tree.of_tree(Path(path).expanduser(), ref, store, progress)
    else:
        found = source_tree.of_package(what, store, progress, refresh=refresh)
    fragments = {str(path): _text(path) for path in wanted.fragments}
    if wanted.lines:
        fragments["the recipe"] = "\n".join(wanted.lines)
    base = _text(wanted.base) if wanted.base else None
    return Building(source_tree.patched(found, wanted.patches), base, fragments, toolchain(store, progress))


def _text(path: Path) -> str:
    """The text of a configuration. Raises InputError for what is none."""
    try:
        return path.read_text()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no text, as a .config is", hint="unpack it first: zcat") from error


def toolchain(store: Store, progress: Progress) -> Artefact:
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


def check(spec: str, store: Store, progress: Progress = quiet) -> None:
    """See that a spec's source, patches and configuration will do, and compile nothing. Raises as ``resolve`` does."""
    building = planned(spec, store, progress)
    if store.find("kernel", key_of({"kind": "kernel", **building.inputs})) is None:
        progress(f"configuring Linux {building.source.version}")
        with _opened(building, store) as shop:
            (shop.build / MARK).unlink(missing_ok=True)
            with _at_work(shop):
                _configure(shop, building)


@contextmanager
def live(building: Building, store: Store, progress: Progress) -> Iterator[Workshop]:
    """A workshop whose /build holds the objects of this kernel, up to date, until it is left.

    Raises InputError for a configuration that will not do, DoesNotBuild.
    """
    with _opened(building, store) as shop:
        mark = shop.build / MARK
        if not mark.exists() or mark.read_text() != building.source.tree:
            mark.unlink(missing_ok=True)
            with _at_work(shop):
                _configure(shop, building)
                with _counted(shop, building, progress):
                    shop.run(make("vmlinux", "modules"))
            mark.write_text(building.source.tree)
        yield shop


@contextmanager
def _opened(building: Building, store: Store) -> Iterator[Workshop]:
    """A workshop with a kernel's source and what objects there are of its configuration, until it is left."""
    objects, place = building.objects, building.source.place
    with store.lock(f"kernels-{place.name}"):
        building.source.check_out()
        if (objects / UNDER_WAY).exists() or _of_the_future(objects):
            atomic.remove(objects)  # ccache has what was compiled
        objects.mkdir(exist_ok=True)
        yield Workshop(
            buildroot.kept(building.toolchain, store),
            objects,
            f"Linux {building.source.version}",
            read={"source": building.source.files},
            write={"ccache": store.cache("ccache")},
            environment=_ENVIRONMENT,
        )


def _of_the_future(objects: Path) -> bool:
    """Whether the host's clock has gone back since the last build: make would take sources that are new for old."""
    probe = objects / "agelab-now"
    built = [mark.stat().st_mtime for name in (MARK, ".config") if (mark := objects / name).exists()]
    if not built:
        return False
    probe.touch()
    return max(built) > probe.stat().st_mtime


@contextmanager
def _at_work(shop: Workshop) -> Iterator[None]:
    """Mark the objects until make has come to its end, be it that it failed: then it removes what is not whole."""
    mark = shop.build / UNDER_WAY
    mark.touch()
    try:
        yield
    except (DoesNotBuild, InputError):
        mark.unlink()
        raise
    mark.unlink()


def make(*targets: str) -> list[str]:
    """The command that makes targets of a kernel whose objects are in /build."""
    ccache = ["CC=ccache gcc", "HOSTCC=ccache gcc"]
    return [
        "make",
        "-C",
        "/tmp/source",
        "O=/build",
        f"-j{os.cpu_count() or 1}",
        *ccache,
        "LOCALVERSION=",
        *targets,
    ]


def _configure(shop: Workshop, building: Building) -> None:
    """Write .config. Raises InputError where it will not do."""
    if building.base is None:
        (shop.build / "agelab.config").write_text(building.settings)
        shop.run(make("KCONFIG_ALLCONFIG=/build/agelab.config", "allnoconfig"))
    else:
        (shop.build / ".config").write_text(building.settings)
        shop.run(make("olddefconfig"))
    config.check((shop.build / ".config").read_text(), building.fragments, building.source.version)


@contextmanager
def _counted(shop: Workshop, building: Building, progress: Progress) -> Iterator[None]:
    """Tell from time to time how many files have been compiled."""
    over = threading.Event()

    def tell() -> None:
        while not over.wait(_PROGRESS_SECONDS):
            lines = shop.log.read_text(errors="replace").splitlines() if shop.log.exists() else []
            done = sum(line.startswith("  CC ") for line in lines)
            progress(f"building Linux {building.source.version}: {done} files compiled")

    progress(f"building Linux {building.source.version}")
    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def _collect(shop: Workshop, building: Building, directory: Path) -> None:
    """Make a bundle of a built kernel, and say what it was made of."""
    release = (shop.build / "include/config/kernel.release").read_text().strip()
    shop.run(["x86_64-linux-gnu-strip", "-s", "-o", "/build/vmlinux.stripped", "/build/vmlinux"])
    shutil.move(shop.build / "vmlinux.stripped", directory / "vmlinux")
    shop.run(
        make("INSTALL_MOD_PATH=/build/installed", "INSTALL_MOD_STRIP=1", "DEPMOD=true", "modules_install")
    )
    text = (shop.build / ".config").read_text()
    (directory / "config").write_text(text)
    tree = shop.build / "installed" / "lib" / "modules" / release
    if not (tree / "modules.builtin").is_file():
        raise HostError(
            f"Linux {building.source.version} installed its modules in a way that is not known here"
        )
    unpack.prune_modules(tree, directory)
    buildroot.remove(shop.build / "installed")
    (directory / unpack.RELEASE).write_text(release)
    recorded = provenance.Recorded(
        sources=(building.source.came,),
        commit=building.source.commit,
        patches=building.source.patches,
    )
    (directory / provenance.FILE).write_text(recorded.model_dump_json(indent=1) + "\n")
