"""docs/operations.md does what it says: its example is a log, and its programs make logs of real traces.

The samples are of strace 6.1 (some lines of other calls left out) and of fio 3.33; what was traced is job.sh.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from agelab.base import process
from agelab.data.history.operations import check_log
from tests import capabilities
from tests.build.native_tools import compiled

DOCS = Path(__file__).parents[3] / "docs"
PAGE, HOWTO = (DOCS / "operations.md").read_text(), DOCS / "howto"
SAMPLES = Path(__file__).parents[2] / "golden/operations"
TRACED = "/tmp/trace"


def block(name: str) -> str:
    """The block of the page that follows a line with the file's name."""
    match = re.search(rf"^`{re.escape(name)}`:\n```\w*\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert match, name
    return match[1]


def from_strace(trace: Path, directory: str, where: Path) -> Path:
    return made([sys.executable, str(HOWTO / "strace-to-log"), str(trace), directory], where)


def from_fio(trace: Path, where: Path) -> Path:
    return made(["awk", "-v", f"directory={TRACED}/fio", "-f", str(HOWTO / "fio-to-log.awk"), str(trace)], where)


def made(argv: list[str], where: Path) -> Path:
    with (where / "my.log").open("wb") as out:
        subprocess.run(argv, stdout=out, check=True)
    return where / "my.log"


def sizes(root: Path) -> dict[str, int]:
    """Return the files below a directory by their sizes, directories by -1."""
    return {str(path.relative_to(root)): path.stat().st_size if path.is_file() else -1 for path in root.rglob("*")}


def test_the_example_is_a_log(tmp_path: Path) -> None:
    (tmp_path / "my.log").write_text(block("my.log"))
    log = check_log(tmp_path / "my.log")
    assert (log.files, log.live_bytes, log.directories, len(log.points)) == (1, 15000, 0, 2)


def test_a_strace_log_becomes_one_of_operations(tmp_path: Path) -> None:
    log = check_log(from_strace(SAMPLES / "job.strace", f"{TRACED}/work", tmp_path))
    assert log.counts == {
        "append": 1, "create": 8, "fsync": 1, "mkdir": 5, "rename": 2, "rmdir": 1, "truncate": 4, "unlink": 3,
        "write": 29,
    }  # fmt: skip
    # a and copy/a, ä, y; b, cut to 5000.
    assert (log.files, log.live_bytes, log.directories) == (5, 6 + 6 + 10 + 2 + 5000, 4)


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        (r"\1 1795794454.075259 ", " <0.000125>"),
        (r"\1 12:34:56 ", ""),
        (r"\1      0.000123 ", ""),
        (r"[pid \1] 12:34:56.075259 (+     0.000123) ", " <0.000125>"),
    ],
)
def test_times_in_a_strace_log_change_nothing(before: str, behind: str, tmp_path: Path) -> None:
    plain = from_strace(SAMPLES / "job.strace", f"{TRACED}/work", tmp_path).read_text()
    text = (SAMPLES / "job.strace").read_text()
    timed = re.sub(r"^(\d+) +(.*)$", rf"{before}\2{behind}", text, flags=re.MULTILINE)
    (tmp_path / "timed").write_text(timed)
    assert from_strace(tmp_path / "timed", f"{TRACED}/work", tmp_path).read_text() == plain


def test_a_strace_log_without_paths_or_calls_is_not_taken_in_silence(tmp_path: Path) -> None:
    script, trace = tmp_path / "from_strace.py", tmp_path / "trace"
    script.write_text((HOWTO / "strace-to-log").read_text())
    for text, complaint in (
        ('1 creat("a", 0600) = 3\n1 write(3, "x", 1) = 1\n', "not as it was: 1 creat: the trace has no paths"),
        ("% time     seconds  usecs/call     calls    errors syscall\n", "no line of it is a call"),
    ):
        trace.write_text(text)
        argv = [sys.executable, str(script), str(trace), "/work"]
        assert complaint in subprocess.run(argv, capture_output=True, text=True, check=False).stderr


SPECIAL = """
import mmap, os
f = os.open("a b", os.O_RDWR | os.O_CREAT)
os.pwrite(f, b"x" * 5000, 4096)
os.posix_fallocate(f, 0, 10000)
os.posix_fallocate(f, 0, 100)
os.rename("a b", "renamed")
os.write(f, b"y" * 300)
os.write(f, b"y" * 300)
os.link("renamed", "linked")
os.symlink("renamed", "symbolic")
os.rename("symbolic", "moved")
log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(log, b"z" * 10)
os.rename("log", "log.1")
os.write(log, b"z" * 10)
with open("mapped", "w+b") as mapped:
    mapped.truncate(8192)
    mmap.mmap(mapped.fileno(), 8192)[0:4] = b"abcd"
os.rename("linked", "../elsewhere")
"""


def test_links_allocations_and_what_a_log_cannot_have_leave_the_same_sizes(tmp_path: Path) -> None:
    work, again, trace = tmp_path / "work", tmp_path / "again", tmp_path / "trace"
    work.mkdir()
    again.mkdir()
    argv = ["strace", "-ttt", "-T", "-f", "-y", "-o", str(trace), sys.executable, "-c", SPECIAL]
    traced = subprocess.run(argv, cwd=work, capture_output=True, check=False)
    if traced.returncode:
        capabilities.skip("tracing", traced.stderr.decode()[-200:])
    (work / "moved").unlink()
    log = from_strace(trace, str(work), tmp_path)
    assert {"allocate": 2, "link": 1}.items() <= check_log(log).counts.items()
    process.run([str(compiled("replay", tmp_path)), str(log)], cwd=again)
    assert sizes(again) == sizes(work) == {"renamed": 10000, "log.1": 20, "mapped": 8192}


def test_what_is_traced_now_is_left_by_a_replay(tmp_path: Path) -> None:
    sources = tmp_path / "in"
    (sources / "sub").mkdir(parents=True)
    for name, size in (("a", 6), ("sub/b", 200_000), ("sub/c d", 10)):
        (sources / name).write_bytes(b"x" * size)
    subprocess.run(["tar", "cf", "in.tar", "in"], cwd=tmp_path, check=True)
    work, again = tmp_path / "work", tmp_path / "again"
    work.mkdir()
    again.mkdir()
    trace = ["strace", "-f", "-y", "-e", "trace=%file,%desc", "-o", str(tmp_path / "trace")]
    done = subprocess.run([*trace, "sh", str(SAMPLES / "job.sh")], cwd=work, capture_output=True, check=False)
    if done.returncode:
        capabilities.skip("tracing", done.stderr.decode()[-200:])
    log = from_strace(tmp_path / "trace", str(work), tmp_path)
    check_log(log)
    process.run([str(compiled("replay", tmp_path)), str(log)], cwd=again)
    assert sizes(again) == sizes(work) and len(sizes(work)) == 9


@pytest.mark.parametrize("version", [2, 3])
def test_an_iolog_of_fio_becomes_one_of_operations(version: int, tmp_path: Path) -> None:
    trace = tmp_path / "mail.iolog"
    text = (SAMPLES / "mail.iolog").read_text().replace("/box/a", "/box/a b\\c")
    text += f"240 {TRACED}/fio/none wait 5 0\n"
    if version == 2:  # the same without times
        text = re.sub(r"^\d+ ", "", text.replace("version 3", "version 2"), flags=re.MULTILINE)
    trace.write_text(text)
    log = check_log(from_fio(trace, tmp_path))
    assert log.counts == {"create": 2, "fsync": 1, "mkdir": 1, "write": 8}
    assert (log.bytes_written, log.live_bytes) == (65536, 65536)
    assert b"create box/a\\040b\\134c\n" in (tmp_path / "my.log").read_bytes()
