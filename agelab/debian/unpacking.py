"""Unpack packages and source archives, up to a limit of bytes and of names: a small file may hold terabytes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from signal import SIGXFSZ

from agelab.base import confine
from agelab.base.errors import InputError
from agelab.base.process import ProcessFailed

GIB = 1 << 30
PACKAGE_BYTES = 2 * GIB
"""Bytes of a package at most, unpacked: a kernel has 0.4 GiB."""
SOURCE_BYTES = 4 * GIB
"""Bytes of a source archive at most, unpacked: a kernel has 1.6 GiB."""
MOST_NAMES = 250_000
"""Files and directories in either at most: a kernel's source has 90,000."""
_MOST_MEMORY = 4 * GIB
_TOO_LARGE, _TOO_MANY = 7, 9
"""Exit codes of the script below."""
_SPARSE = 128 + SIGXFSZ
"""Its exit code for a file that is larger than all may be, though the archive has few bytes of it."""

# A directory counts where a name first goes through it, so that a name of a thousand parts counts as a thousand.
_COUNT = f"""
$most = shift;
while (<STDIN>) {{
  chomp; $name = "";
  for $part (split "/") {{ $name .= "/$part"; exit {_TOO_MANY} if !$seen{{$name}}++ && ++$count > $most }}
}}"""
# Whoever packed it owns nothing here: neither his user ids nor his setuid bits are taken over. What head leaves is
# more than there may be; a sparse file, of which the archive has little, has the limit of a file (ulimit -f).
_UNPACK = f"""
bytes=$1 names=$2 memory=$3 count=$4 target=$5 strip=$6
shift 6
ulimit -f "$((bytes / 1024))" -v "$((memory / 1024))"
"$@" | (head -c "$bytes"; test "$(head -c 1 | wc -c)" -eq 0 || exit {_TOO_LARGE}) |
  tar -C "$target" --strip-components="$strip" --no-same-owner --no-same-permissions -xvf - |
  perl -e "$count" "$names"
ended=("${{PIPESTATUS[@]}}")
for number in 3 1 2 0; do
  test "${{ended[number]}}" -eq 0 || exit "${{ended[number]}}"
done
"""
_UNPACK_SOME = """
dpkg-deb --fsys-tarfile "$1" |
  tar -C "$2" --no-same-owner --no-same-permissions --wildcards --warning=none -xf - "${@:3}"
"""
_WEIGH = f"""
bytes=$1
shift
"$@" | (head -c "$bytes" >/dev/null; test "$(head -c 1 | wc -c)" -eq 0 || exit {_TOO_LARGE})
ended=("${{PIPESTATUS[@]}}")
test "${{ended[1]}}" -eq 0 && exit "${{ended[0]}}"
exit "${{ended[1]}}"
"""


def unpack(deb: Path, directory: Path) -> None:
    """Unpack a package below ``directory`` as files of this user, confined.

    Raises InputError for one that holds more than the limits, and as ``confine.run`` does.
    """
    _unpack(["dpkg-deb", "--fsys-tarfile", str(deb.resolve())], deb, directory, PACKAGE_BYTES)


def unpack_some(deb: Path, directory: Path, patterns: Sequence[str]) -> None:
    """Unpack the files of a package that match below ``directory``, confined: of one that is larger than the limits."""
    directory.mkdir(parents=True, exist_ok=True)
    inside, packed = directory.resolve(), deb.resolve()
    argv = ["bash", "-o", "pipefail", "-c", _UNPACK_SOME, "bash", str(packed), str(inside), *patterns]
    confine.run(argv, read=[packed], write=[inside])


def unpack_source(archive: Path, directory: Path) -> None:
    """Unpack a .tar.xz below ``directory``, without its top directory. Raises as ``unpack`` does."""
    _unpack(["xz", "-dc", "--", str(archive.resolve())], archive, directory, SOURCE_BYTES, strip=1)


def unpack_zstd(files: Sequence[Path], directory: Path, most: int) -> None:
    """Unpack ``.zst`` files of a directory in place, as ``unpack`` does, ``most`` bytes together."""
    names = [str(path.parent.resolve() / path.name) for path in files]
    weigh = ["bash", "-c", _WEIGH, "bash", str(most), "zstd", "-dcq", "--", *names]
    with _refusing(directory, most):
        confine.run(weigh, read=[directory.resolve()])
    confine.run(["zstd", "-dq", "--rm", "--", *names], write=[directory.resolve()])


def _unpack(producer: Sequence[str], packed: Path, directory: Path, most: int, strip: int = 0) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    inside = directory.resolve()
    limits = map(str, (most, MOST_NAMES, _MOST_MEMORY))
    argv = ["bash", "-c", _UNPACK, "bash", *limits, _COUNT, str(inside), str(strip), *producer]
    with _refusing(packed, most):
        confine.run(argv, read=[packed.resolve()], write=[inside])


@contextmanager
def _refusing(packed: Path, most: int) -> Iterator[None]:
    """Turn the scripts' own exit codes into the limit that was passed."""
    try:
        yield
    except ProcessFailed as error:
        if error.returncode in (_TOO_LARGE, _SPARSE):
            raise _refused(packed, f"{most / GIB:g} GiB") from error
        if error.returncode == _TOO_MANY:
            raise _refused(packed, f"{MOST_NAMES:,} files and directories") from error
        raise


def _refused(packed: Path, most: str) -> InputError:
    return InputError(
        f"{packed} is too large: it unpacks to more than {most}",
        hint="is it the file that you mean? docs/reliability.md lists the limits",
    )
