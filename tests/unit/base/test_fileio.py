"""Whatever is in a file's place, a command ends at once, in one message, and takes no memory for it."""

import ast
import gzip
import os
import resource
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agelab.base import fileio
from agelab.base.errors import InputError
from agelab.kernel import recipes, source_tree
from agelab.kernel.source_tree import KernelPart
from agelab.scenario import control_file
from tests.build import run_builder
from tests.build.cli import Cli
from tests.capabilities import needs_root

PACKAGE = Path(__file__).parents[3] / "agelab"
SECONDS = 20
MEMORY = 3 << 30
"""Bytes of address space beyond what this process has: far less than a reader without a limit takes."""
IN_AN_IMAGES_KEY = {"kernel/initramfs.py"}
"""Modules whose text is an input of every image: they read what agelab has unpacked itself."""


@pytest.fixture(autouse=True)
def bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail what waits for a pipe or reads without an end, before it takes the host down."""
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    def late(number: int, frame: object) -> None:
        raise AssertionError("it waits, or reads without an end")

    before = signal.signal(signal.SIGALRM, late)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, limits[1]))
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    resource.setrlimit(resource.RLIMIT_AS, limits)
    signal.signal(signal.SIGALRM, before)


def pipe(path: Path) -> str:
    os.mkfifo(path)
    return "pipe"


def zeros(path: Path) -> str:
    path.symlink_to("/dev/zero")
    return "character device"


def unix_socket(path: Path) -> str:
    os.mknod(path, stat.S_IFSOCK | 0o600)
    return "socket"


def directory(path: Path) -> str:
    path.mkdir()
    return "directory"


def huge(path: Path) -> str:
    with path.open("wb") as file:
        file.truncate(24 << 30)
    return "the most that is read"


IN_PLACE = [pipe, zeros, unix_socket, directory, huge]


def _made(path: Path, text: str = "true\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _control(place: Path, wrong: str) -> list[str]:
    """A control directory; ``wrong`` is not yet there."""
    for name in {"filesystem-ext4.sh", "test-a-perform.sh"} - {wrong}:
        _made(place / name)
    if wrong != "control":
        _made(place / "control", "ext4 a 1\n")
    return ["run", "--control", "control"]


def _run(place: Path, wrong: str) -> list[str]:
    """A finished run without the file ``wrong``."""
    run = run_builder.begin(place / "home", run_builder.cells(["ext4"]))
    run_builder.end(run, 0, [run_builder.sample()], inputs={"a": 1})
    (run.path / wrong).unlink(missing_ok=True)
    (run.path / wrong).symlink_to(place / wrong.rpartition("/")[2])
    return ["show", run.name]


READERS: dict[str, Callable[[Path], list[str]]] = {
    "a.toml": lambda place: ["run", "a.toml"],
    "control": lambda place: _control(place, "control"),
    "test-a-perform.sh": lambda place: _control(place, "test-a-perform.sh"),
    "filesystem-ext4.sh": lambda place: _control(place, "filesystem-ext4.sh"),
    "log": lambda place: ["history", "check", "log"],
    "capsule": lambda place: ["capsule", "show", "capsule"],
    "bzImage": lambda place: ["kernel", "show", "image:bzImage"],
    "recipe.toml": lambda place: ["kernel", "show", "recipe:./recipe.toml"],
    "a.iso": lambda place: ["corpus", "make", "--from", "a.iso"],
    "plan.json": lambda place: _run(place, "plan.json"),
    "samples.jsonl": lambda place: _run(place, "samples.jsonl"),
    "end.json": lambda place: _run(place, "cells/0/end.json"),
    "inputs.json": lambda place: _run(place, "cells/0/inputs.json"),
}
MAY_BE_LARGE = ("a.iso", "capsule")
"""Files that are not taken into memory: what is no image, archive or capsule is refused by its beginning."""


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("put", IN_PLACE)
def test_a_command_refuses_what_is_no_file_of_a_sensible_size(
    tmp_path: Path, name: str, put: Callable[[Path], str], cli: Cli
) -> None:
    words = READERS[name](tmp_path)
    what = put(tmp_path / name)
    err = cli.err(*words)
    assert "Traceback" not in err
    if (name, what) == ("a.iso", "directory"):
        assert "directory holds no file" in err
    else:
        assert name in err
    if name not in MAY_BE_LARGE:
        assert what in err or "no file" in err


def test_a_patch_that_is_a_pipe_is_refused_before_git_reads_it(tmp_path: Path) -> None:
    source = source_tree.SourceTree(tmp_path, "0" * 40, "6.1", KernelPart(name="a"))
    pipe(tmp_path / "a.patch")
    with pytest.raises(fileio.RefusedFile, match="pipe"):
        source_tree.apply_patches(source, recipes._list_patches(tmp_path))


def test_a_socket_that_somebody_listens_on_is_not_opened(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        with pytest.raises(fileio.RefusedFile, match="socket"):
            fileio.opened(tmp_path / "s")


@needs_root
def test_a_device_is_not_read(tmp_path: Path) -> None:
    os.mknod(tmp_path / "zero", stat.S_IFCHR | 0o600, os.makedev(1, 5))
    with pytest.raises(fileio.RefusedFile, match="character device"):
        fileio.read_bytes(tmp_path / "zero")


def test_the_limit_is_of_what_is_read_not_of_what_was_promised(tmp_path: Path) -> None:
    """A file may grow while it is read; those of /proc say that they are empty."""
    path = tmp_path / "a"
    path.write_bytes(b"x" * 100)
    assert fileio.read_bytes(path, 100) == b"x" * 100
    with pytest.raises(fileio.RefusedFile, match="more than 0 MiB, the most") as caught:
        fileio.read_bytes(path, 99)
    assert caught.value.filename == str(path)
    assert fileio.read_text(Path("/proc/self/comm")).strip()
    with pytest.raises(fileio.RefusedFile):
        fileio.read_bytes(Path("/proc/self/maps"), 100)


def test_a_text_is_utf_8_and_its_lines_end_in_one_way(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes("grün\r\nrot\rblau\n".encode())
    assert fileio.read_text(path) == "grün\nrot\nblau\n" == path.read_text(encoding="utf-8")
    path.write_bytes("grün".encode("latin-1"))
    with pytest.raises(UnicodeDecodeError):
        fileio.read_text(path)
    assert fileio.read_text(path, errors="replace") == "gr\N{REPLACEMENT CHARACTER}n"


def test_of_a_log_the_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"a\xff" * 100 + b"the end")
    assert fileio.tail(path, 8) == "\N{REPLACEMENT CHARACTER}the end"
    assert fileio.tail(path).startswith("a")


def test_packed_data_is_unpacked_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"one") + gzip.compress(b"two"))
    assert b"".join(fileio.unpacked_pieces(path, 6)) == b"onetwo"
    path.write_bytes(gzip.compress(bytes(64 * fileio.MIB)))
    with pytest.raises(fileio.RefusedFile, match="more than 1 MiB"):
        list(fileio.unpacked_pieces(path, fileio.MIB))
    whole = path.read_bytes()
    for damaged in (whole[:-9], b"no gzip", whole[:100] + b"\xff" + whole[101:]):
        path.write_bytes(damaged)
        with pytest.raises(fileio.RefusedFile):
            list(fileio.unpacked_pieces(path, fileio.MAP))


def test_a_refused_file_that_nobody_expected_is_still_no_bug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    def check(*words: object) -> None:
        fileio.read_text(Path("/dev/zero"))

    monkeypatch.setattr("agelab.data.history.operations.check_log", check)
    assert cli.err("history", "check", "log").startswith("agelab: /dev/zero: it is a character device")


def test_every_file_is_read_through_the_one_door() -> None:
    """No module reads a whole file by itself, and every text has its encoding."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = str(path.relative_to(PACKAGE))
        if name in IN_AN_IMAGES_KEY or name == "fileio.py":
            continue
        found += [f"{name}:{line}: {what}" for line, what in _other_doors(ast.parse(path.read_text("utf-8")))]
    assert found == []


NO_FILES = ("os", "tarfile", "libvirt", "self._opener")
"""Owners of an ``open`` that gives no text of a file; the last asks servers."""


def _other_doors(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        keywords = {keyword.arg for keyword in node.keywords}
        if called in ("read_text", "read_bytes") and owner not in ("", "fileio", "toml_files"):
            yield node.lineno, f"{called} is not agelab.base.fileio's"
        elif called == "write_text" and "encoding" not in keywords:
            yield node.lineno, "write_text has no encoding"
        elif called == "open" and owner not in NO_FILES and "encoding" not in keywords:
            modes = [one.value for one in node.args if isinstance(one, ast.Constant)]
            if not any("b" in str(mode) for mode in modes):
                yield node.lineno, "open has no encoding"


def test_the_rule_would_find_another_door() -> None:
    bad = "p.read_text()\np.write_text(a)\np.open()\nopen(p, 'w')\np.open('rb')\nfileio.read_text(p)\n"
    assert [line for line, _ in _other_doors(ast.parse(bad))] == [1, 2, 3, 4]


def test_an_error_of_a_scripts_size_names_it_and_the_limit(tmp_path: Path) -> None:
    _control(tmp_path, "test-a-perform.sh")
    huge(tmp_path / "test-a-perform.sh")
    with pytest.raises(InputError, match=r"test-a-perform\.sh: cannot be read: it has more than 16 MiB"):
        control_file.read(tmp_path / "control")
