"""Whatever the locale says, agelab reads and writes UTF-8, and output that cannot be shown ends nothing."""

import fcntl
import os
import pty
import shlex
import struct
import subprocess
import sys
import termios
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from agelab.results.result import Status
from tests.build import run_builder
from tests.build.cli import AGELAB
from tests.locales import LATIN_1, compile_latin_1

LOCALES = {
    "C without UTF-8": {"LC_ALL": "C", "PYTHONUTF8": "0"},
    "POSIX": {"LC_ALL": "POSIX"},
    "ISO-8859-1": {"LC_ALL": LATIN_1},
    "ISO-8859-1 of LANG": {"LANG": LATIN_1, "LC_ALL": ""},
    "output in ISO-8859-1": {"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "latin-1:strict"},
    "no such locale": {"LC_ALL": "xx_XX.UTF-8", "PYTHONIOENCODING": "ascii"},
}
RARE = ("POSIX", "ISO-8859-1 of LANG", "output in ISO-8859-1")
"""Others name the same encodings in other words."""
TEXT = "grün → \N{SNOWMAN}"
SCENARIO = f"""
name = "grün"
summary = "{TEXT}"
"""


@pytest.fixture(scope="module")
def locales(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a locale that is not UTF-8."""
    place = tmp_path_factory.mktemp("locales")
    compile_latin_1(place)
    return place


@pytest.fixture(
    params=[pytest.param(name, marks=[pytest.mark.full] if name in RARE else [], id=name) for name in LOCALES]
)
def environment(request: pytest.FixtureRequest, locales: Path, tmp_path: Path) -> dict[str, str]:
    there = {**os.environ, "LOCPATH": str(locales), "AGELAB_HOME": str(tmp_path / "home")}
    return {**there, **LOCALES[request.param]}


def agelab(environment: dict[str, str], cwd: Path, *words: str | bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*AGELAB, *words], env=environment, cwd=cwd, capture_output=True, check=False)


def made_run(home: Path) -> str:
    run = run_builder.begin(home, run_builder.cells(["ext4"]))
    run_builder.end(run, 0, [run_builder.sample()], status=Status.FAILED, reason=TEXT)
    return run.name


def test_the_locale_of_the_test_is_none_of_utf_8(locales: Path) -> None:
    code = "import locale, sys; print(locale.getencoding(), sys.getfilesystemencoding())"
    environment = {**os.environ, "LOCPATH": str(locales), "LC_ALL": LATIN_1}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert said.stdout.split() == [b"ISO-8859-1", b"iso8859-1"]


@pytest.mark.parametrize("verb", [("show",), ("export", "--format", "junit")])
def test_results_are_shown_and_written_as_utf_8(
    environment: dict[str, str], tmp_path: Path, verb: tuple[str, ...]
) -> None:
    done = agelab(environment, tmp_path, *verb, made_run(tmp_path / "home"))
    assert (done.returncode, done.stderr) == (0, b"")
    said = done.stdout.decode("utf-8")
    if "junit" in verb:
        ElementTree.fromstring(done.stdout)
    assert TEXT in said


def test_a_scenario_is_the_same_text_and_its_name_the_same_name(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "grün.toml").write_text(SCENARIO, encoding="utf-8")
    (tmp_path / "x.toml").write_text('name = "x"\n' + f'"kürzel" = "{TEXT}"\n', encoding="utf-8")
    for name in ("grün.toml", "x.toml"):
        done = agelab(environment, tmp_path, "run", name.encode())
        said = done.stderr.decode("utf-8")
        assert done.returncode == 2 and "Traceback" not in said
        assert f"agelab: {name}: " in said
    assert "x.toml: kürzel: is not a known key" in said


def test_a_name_of_any_bytes_is_a_name(environment: dict[str, str], tmp_path: Path) -> None:
    """They are no UTF-8 at all: shown escaped, found on the disk."""
    raw = b"gr\xfcn\xff.toml"
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + raw)).write_bytes(b"x = 1\n")
    done = agelab(environment, tmp_path, "history", "check", raw)
    assert done.returncode == 2 and b"gr\\udcfcn\\udcff.toml: line 1: it is 'x = 1'" in done.stderr
    other = tmp_path / "other.toml"
    other.symlink_to(os.fsdecode(raw))
    done = agelab(environment, tmp_path, "run", "other.toml")
    assert b"other.toml: x: is not a known key" in done.stderr
    done = agelab(environment, tmp_path, "history", "check", b"\xff\xfe")
    assert done.returncode == 2 and b"No such file" in done.stderr


def test_the_library_reads_utf_8(environment: dict[str, str], tmp_path: Path) -> None:
    """A program that uses agelab has the encoding of its own locale, and keeps it."""
    (tmp_path / "a").write_text(TEXT, encoding="utf-8")
    code = (
        "from pathlib import Path; from agelab.base import fileio;"
        f"assert fileio.read_text(Path('a')) == {TEXT!a}; import agelab; assert len(agelab.load()) == 1"
    )
    made_run(tmp_path / "home")
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("locale", "shown"),
    [
        ({"LC_ALL": LATIN_1}, "grün ? ?".encode("latin-1")),
        ({"LC_ALL": "C.UTF-8"}, TEXT.encode()),
        ({"LC_ALL": "C", "PYTHONUTF8": "0"}, TEXT.encode()),
    ],
    ids=["ISO-8859-1", "UTF-8", "C"],
)
def test_a_terminal_gets_what_its_locale_has(
    locales: Path, tmp_path: Path, locale: dict[str, str], shown: bytes
) -> None:
    name = made_run(tmp_path / "home")
    environment = {**os.environ, "LOCPATH": str(locales), "AGELAB_HOME": str(tmp_path / "home"), **locale}
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    words = [*AGELAB, "show", name]
    child = subprocess.Popen(words, env=environment, stdout=theirs, stderr=theirs, stdin=theirs)
    os.close(theirs)
    said = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:
            break
        if not piece:
            break
        said += piece
    os.close(ours)
    assert child.wait() == 0, said
    assert shown in said


def test_a_program_of_the_host_is_given_utf_8(environment: dict[str, str], tmp_path: Path) -> None:
    """What agelab starts runs in C.UTF-8, whatever it was itself started in."""
    code = "from agelab.base import process; print(ascii(process.run(['sh', '-c', 'echo grün $LC_ALL']).stdout))"
    line = f"exec {shlex.quote(sys.executable)} -X utf8 -c {shlex.quote(code)}"
    said = subprocess.run(["sh", "-c", line], env=environment, cwd=tmp_path, capture_output=True, check=True)
    assert said.stdout.strip() == b"'gr\\xfcn C.UTF-8\\n'"


@pytest.mark.parametrize(
    "words",
    [
        (b"run", b"--control", b"\xff/control"),
        (b"run", b"aging-ext4", b"--corpus", b"\xff"),
        (b"age", b"aging-ext4", b"--log", b"\xff"),
        (b"kernel", b"show", b"tree:\xff"),
        (b"kernel", b"show", b"image:\xff"),
        (b"disk", b"import", b"\xff", b"--filesystem", b"ext4"),
    ],
)
def test_a_name_that_results_hold_is_utf_8(tmp_path: Path, words: tuple[bytes, ...]) -> None:
    """It is refused before anything is done, with what to do."""
    environment = {**os.environ, "AGELAB_HOME": str(tmp_path / "home")}
    done = agelab(environment, tmp_path, *words)
    said = done.stderr.decode()
    assert done.returncode == 2 and "bytes that are no UTF-8" in said and "symbolic link" in said


def test_a_directory_of_any_bytes_is_no_place_for_runs(tmp_path: Path) -> None:
    place = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    place.mkdir()
    environment = {**os.environ, "AGELAB_HOME": str(tmp_path / "home")}
    done = agelab(environment, place, "run", "aging-ext4")
    assert done.returncode == 2 and b"bytes that are no UTF-8" in done.stderr


JOURNAL = f"""
from pathlib import Path
from agelab.results.result import End
from agelab.runner.prepare.control_journal import ControlJournal
from agelab.scenario import control_file

control = control_file.read(Path("control"))
journal = ControlJournal(Path.cwd())
with journal.opened(proceed=False):
    journal.begin(control.lines[0], 1)
    journal.end(control.lines[0], 1, End(status="failed", reason={TEXT!a}, host_seconds=1), [])
with journal.opened(proceed=True) as ended:
    assert ended == {{("ext4", "a", 1): "failed"}}, ended
"""


def test_a_control_file_is_read_and_its_journal_written(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "control").write_text(f"# {TEXT}\next4 a 1\n", encoding="utf-8")
    for name in ("filesystem-ext4.sh", "test-a-perform.sh"):
        (tmp_path / name).write_text(f"echo {TEXT}\n", encoding="utf-8")
    words = [sys.executable, "-c", JOURNAL]
    done = subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert f"end failed: {ascii(TEXT)[1:-1]}\n" in (tmp_path / "journal.log").read_text("ascii")
