"""The files that a scenario brings into its guests: job files, programs, directories, unpacked packages.

They come with the plan of each boot, so no image is made for them, and nothing of a .deb is run but what a step runs:
it is unpacked, confined, and its scripts are left out.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from agelab.base import atomic, fileio
from agelab.base.errors import InputError
from agelab.base.places import HARNESS
from agelab.base.plain_path import temp_parent
from agelab.base.sanitize import require_utf_8
from agelab.debian import unpack
from agelab.runner.plan.cell_spec import Brought
from agelab.runner.plan.passes import KEEPER
from agelab.scenario.guest_places import BROUGHT, GUEST, JOBS
from agelab.scenario.workloads import CARRIED, Workload, guest_name

TOOLS = "tools"
"""The guest's directory of programs by themselves, which is in PATH."""
MOST_BYTES, MOST_FILES = 200 << 20, 10_000
"""What a scenario may bring at most."""
PATH = f"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:{GUEST}/{TOOLS}"
"""The steps' own PATH (harness/boot.py)."""
PROGRAMS = ("", "bin", "sbin", "usr/bin", "usr/sbin", "usr/local/bin", "usr/games")
LIBRARIES = ("lib", "lib/x86_64-linux-gnu", "usr/lib", "usr/lib/x86_64-linux-gnu", "usr/local/lib")
"""Where programs and libraries are looked for in a directory that was brought."""
OWN_TOOLS = (
    *("checkufs", "extents", "mkufs", "random-read", "record-blocks", "replay", "replay-blocks", "spool"),
    *("run-test", "step-profile", KEEPER),
)


def brought(workload: Workload, programs: Sequence[str] = ()) -> Brought:
    """Return the files that a scenario brings, and those ``programs`` of harness/output.

    Raises InputError for what cannot be brought, and as ``unpack``.
    """
    files = {f"{JOBS}/{name}": data for name, data in sorted(workload.jobs.items())}
    ours = [program.ours for program in workload.programs.values() if program.ours]
    for name in (*([KEEPER] if workload.keeps_output else []), *ours, *programs):
        files[f"{TOOLS}/{name}"] = fileio.read_bytes(HARNESS / "output" / name)
    total = 0
    for path in workload.bring:
        for name, data in _files(path) if workload.carried is None else ():
            total += len(data)
            files[name] = data
            if total > MOST_BYTES or len(files) > MOST_FILES:
                raise InputError(
                    f"bring: {path}: a scenario brings {MOST_BYTES >> 20} MiB and {MOST_FILES:,} files at most",
                    hint="data belong into the corpus: --corpus takes a directory",
                )
    files |= workload.carried or {}
    directories = [path for path in workload.bring if f"{TOOLS}/{path.name}" not in files]
    return Brought(files, _environment(files, directories))


def carried(files: Brought) -> dict[str, bytes]:
    """Return what of these files is the user's, under names by which a run and a capsule keep it."""
    ours = {f"{TOOLS}/{name}" for name in OWN_TOOLS}
    places = (f"{TOOLS}/", f"{BROUGHT}/")
    return {
        f"{CARRIED}{name}": data for name, data in files.files.items() if name.startswith(places) and name not in ours
    }


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield path in the guest and content of a file, of all files of a directory, or of a package."""
    if path.is_file() and path.suffix != ".deb":
        if path.name in OWN_TOOLS:
            raise InputError(f"bring: {path}: agelab has a program of that name in each guest: rename it")
        yield f"{TOOLS}/{path.name}", _content(path, path)
    elif path.suffix == ".deb":
        with atomic.temp_dir(temp_parent()) as directory:
            unpack(path, directory / "deb")
            yield from _tree(directory / "deb", f"{BROUGHT}/{guest_name(path)}", path)
    else:
        yield from _tree(path, f"{BROUGHT}/{guest_name(path)}", path)


def _tree(top: Path, place: str, named: Path) -> Iterator[tuple[str, bytes]]:
    """Yield all files below a directory in the order of their names; a link within it is the file that it leads to."""
    inside = top.resolve()
    any_file = False
    for directory, below, names in os.walk(top):
        below.sort()
        links = (name for name in below if Path(directory, name).is_symlink())
        for name in sorted([*names, *links]):
            path = Path(directory, name)
            where = path.relative_to(top)
            require_utf_8(str(where))
            target = path.resolve()
            if not target.is_relative_to(inside):
                raise InputError(f"bring: {named}: {where} leads out of it: copy what it leads to")
            if path.is_symlink() and (not target.exists() or target.is_dir()):
                continue  # what is missing in it is missing in the guest; a directory is there under its own name
            any_file = True
            yield f"{place}/{where}", _content(target, named)
    if not any_file:
        raise InputError(f"bring: {named}: there is no file in it")


def _content(path: Path, named: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"bring: {named}: {path.name} is neither a file nor a directory")
        return fileio.read_bytes(path, MOST_BYTES)
    except OSError as error:
        raise InputError(f"bring: {named}: {path.name}: cannot be read: {error.strerror or error}") from error


def _environment(files: dict[str, bytes], directories: list[Path]) -> dict[str, str]:
    """Return the variables by which steps find programs and libraries of directories that were brought."""
    if not directories:
        return {}
    tops = [f"{BROUGHT}/{guest_name(path)}" for path in directories]
    there = {str(Path(name).parent) for name in files}

    def existing(places: tuple[str, ...]) -> list[str]:
        named = (f"{top}/{place}".rstrip("/") for top in tops for place in places)
        return [f"{GUEST}/{path}" for path in named if path in there]

    libraries = existing(LIBRARIES)
    return {
        "BROUGHT": f"{GUEST}/{BROUGHT}",
        "PATH": ":".join([PATH, *existing(PROGRAMS)]),
        **({"LD_LIBRARY_PATH": ":".join(libraries)} if libraries else {}),
    }
