"""The operation log: what is one and what is none, and that the replayer does what it says."""

import os
import random
import subprocess
from pathlib import Path

import pytest

from agelab.base.errors import InputError
from agelab.data.history import operations
from agelab.data.history.operations import HEADER, LogChecker, check_log, escape_path
from tests.build.native_tools import compiled

EXAMPLE = r"""agelab-operations 1
# a directory, two files, one of them used
mkdir mail
create mail/first\040letter
write mail/first\040letter 0 10000
create note
append note 300
append note 300
fsync note
point 1
overwrite mail/first\040letter 4096 100
truncate note 100
mkdir mail/old
rename mail/first\040letter mail/old/letter

rename mail/old post
unlink note
create gone
unlink gone
rmdir mail
point 2
"""


def log(directory: Path, text: str) -> Path:
    path = directory / "history.log"
    path.write_bytes(text.encode("latin-1"))
    return path


def test_a_log_in_numbers(tmp_path: Path) -> None:
    found = check_log(log(tmp_path, EXAMPLE))
    assert (found.operations, found.points) == (16, (7, 16))
    assert (found.bytes_written, found.live_bytes, found.files, found.directories) == (10700, 10000, 1, 1)
    assert (found.peak_bytes, found.peak_files) == (10600, 2)
    assert found.counts["append"] == 2 and found.counts["point"] == 2
    assert check_log(log(tmp_path, "agelab-operations 1\ncreate f\nwrite f 1000 0\n")).live_bytes == 0
    name = escape_path(bytes(range(1, 256)).replace(b"/", b"")).decode("latin-1")
    assert check_log(log(tmp_path, f"agelab-operations 1\ncreate {name}\n")).files == 1


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("touch a", "no operation 'touch'; there are: allocate, append, create, fsync, link, mkdir, overwrite"),
        ("link a b", "there is no 'a'"),
        ("link d b", "'d' is a directory"),
        ("link f d/e", "'d/e' is there already"),
        ("allocate d 0 5", "'d' is a directory"),
        ("create", "create takes 1 field, not 0"),
        ("create a\r", r"it ends in CR and LF; a line ends in LF alone (a CR in a name is \015)"),
        ("create a b", r"create takes 1 field, not 2 (a space in a name is \040)"),
        ("create /a", "'/a' is not a plain path"),
        ("create ../a", "'../a' is not a plain path"),
        ("create d//a", "'d//a' is not a plain path"),
        ("create d/.", "'d/.' is not a plain path"),
        ("create a\\8", "a backslash without three octal digits"),
        ("create a\\000b", "no name has a zero byte"),
        ("create x/a", "there is no directory 'x' on the way to 'x/a'"),
        ("create f/a", "'f' on the way to 'f/a' is no directory"),
        ("create f", "'f' is there already"),
        ("mkdir d", "'d' is there already"),
        ("unlink a", "there is no 'a'"),
        ("unlink d", "'d' is a directory"),
        ("rmdir f", "'f' is no directory"),
        ("rmdir d", "'d' is not empty"),
        ("write f 0", "write takes 3 fields, not 2"),
        ("write f 0 x", "'x' is not a number of bytes"),
        ("write f -1 5", "'-1' is not a number of bytes"),
        ("write f 9223372036854775807 1", "no file is as large as that"),
        ("overwrite f 0 6", "it goes beyond the file's end at 5"),
        ("rename f d", "'d' is of another kind"),
        ("rename d d/e/x", "a directory cannot be moved into itself"),
        ("rename a b", "there is no 'a'"),
        ("point x", "'x' is not a number of bytes"),
    ],
)
def test_a_line_that_cannot_be_is_named_with_its_reason(tmp_path: Path, line: str, reason: str) -> None:
    path = log(tmp_path, f"{HEADER.decode()}\nmkdir d\nmkdir d/e\ncreate f\nappend f 5\n{line}\n")
    with pytest.raises(InputError) as error:
        check_log(path)
    assert str(error.value).startswith(f"{path}: line 6: ")
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "line 1: it is empty and not 'agelab-operations 1'"),
        ("agelab-operations 2\n", "line 1: it is 'agelab-operations 2'"),
        ("agelab-operations 1\n", "there is no operation in it"),
        ("agelab-operations 1\ncreate a\ncreate b", "line 3: no newline: the log is cut off"),
        ("agelab-operations 1\ncreate a" + "b" * 20000 + "\n", "line 2: too long"),
        ("agelab-operations 1\nmkdir a\nmkdir b\nrmdir b\nmkdir c\nmkdir d\nmkdir e\n", "line 7: more than 3"),
        ("agelab-operations 1\n" + "unlink a\n" * 20, "line 11: "),  # the tenth fault is the last that is told
    ],
)
def test_a_file_that_is_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str) -> None:
    monkeypatch.setattr(operations, "MAX_ENTRIES", 3)
    with pytest.raises(InputError, match=reason.replace("'", ".")) as error:
        check_log(log(tmp_path, text))
    assert len(str(error.value).splitlines()) <= 10


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("replay", tmp_path_factory.mktemp("tools"))


def carried_out(program: Path, path: Path, where: Path, *options: str) -> subprocess.CompletedProcess[str]:
    where.mkdir(exist_ok=True)
    return subprocess.run([program, *options, path], cwd=where, capture_output=True, text=True, check=False)


def tree(root: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in sorted(root.rglob("*"))
    }


def test_the_replayer_leaves_what_the_log_says(replay: Path, tmp_path: Path) -> None:
    path = log(tmp_path, EXAMPLE)
    done = carried_out(replay, path, tmp_path / "one")
    assert done.stdout == "operations 16 bytes 10700 refused 0\n" and not done.stderr
    left = tree(tmp_path / "one")
    assert set(left) == {"post", "post/letter"} and len(left["post/letter"] or b"") == 10000
    carried_out(replay, path, tmp_path / "two")
    assert tree(tmp_path / "two") == left


def drawn(seed: int, count: int) -> str:
    """A log of lines that were possible when they were drawn, over a few names: whatever comes after whatever."""
    draws, names = random.Random(seed), ("a", "b", "a/a", "a/b", "b/a", "a/a/a")
    lines = [HEADER + b"\n"]
    while len(lines) <= count:
        one, other, number = draws.choice(names), draws.choice(names), draws.choice((0, 1, 4096, 9999))
        writes = (
            f"{draws.choice(('write', 'allocate'))} {one} {number} {draws.choice((0, 5))}",
            f"append {one} {number}",
        )
        moves = (f"rename {one} {other}", f"link {one} {other}", f"mkdir {one}", f"rmdir {one}")
        line = draws.choice((f"create {one}", f"unlink {one}", f"truncate {one} {number}", *moves, *writes))
        following = [*lines, line.encode() + b"\n"]
        found = LogChecker("drawn")
        try:
            for each in following:
                found.read(each)
            found.summary()
        except InputError:
            continue
        lines = following
    return b"".join(lines).decode()


@pytest.mark.parametrize("seed", range(8))
def test_the_check_and_the_replayer_say_the_same_of_drawn_logs(replay: Path, tmp_path: Path, seed: int) -> None:
    path = log(tmp_path, drawn(seed, 120))
    done = carried_out(replay, path, tmp_path / "tree")
    assert done.returncode == 0 and not done.stderr
    found, left = check_log(path), tree(tmp_path / "tree")
    names = [name for name, content in left.items() if content is not None]
    status = [(tmp_path / "tree" / name).stat() for name in names]
    assert found.files == len(names) and found.directories == len(left) - len(names)
    assert found.live_bytes == sum({file.st_ino: file.st_size for file in status}.values())


def test_names_of_one_file_share_it_and_what_is_allocated_is_not_written(replay: Path, tmp_path: Path) -> None:
    text = "create a\nappend a 10\nlink a b\nappend b 20\nallocate a 0 8192\nrename a b\nunlink a\n"
    path = log(tmp_path, f"agelab-operations 1\n{text}")
    found = check_log(path)
    assert (found.files, found.live_bytes, found.bytes_written) == (1, 8192, 30)
    done = carried_out(replay, path, tmp_path / "tree")
    assert done.stdout == "operations 7 bytes 30 refused 0\n" and not done.stderr
    left = (tmp_path / "tree/b").stat()
    assert (left.st_size, left.st_nlink) == (8192, 1) and 512 * left.st_blocks >= 8192


def test_a_file_is_not_taken_for_one_that_a_renamed_directory_brings(replay: Path, tmp_path: Path) -> None:
    text = "mkdir d\nmkdir g\ncreate g/f\ncreate d/f\nrename d e\nrename g d\nwrite d/f 0 100\n"
    carried_out(replay, log(tmp_path, f"agelab-operations 1\n{text}"), tmp_path / "tree")
    left = tree(tmp_path / "tree")
    assert (len(left["d/f"] or b""), left["e/f"]) == (100, b"")


@pytest.mark.parametrize("words", [["--alocate"], ["another.log"]])
def test_the_replayer_takes_one_log_and_the_options_that_it_knows(
    replay: Path, tmp_path: Path, words: list[str]
) -> None:
    done = carried_out(replay, log(tmp_path, EXAMPLE), tmp_path / "tree", *words)
    assert done.returncode == 2 and done.stderr.startswith("usage: ") and tree(tmp_path / "tree") == {}


def test_what_is_written_differs_from_line_to_line_and_does_not_compress(replay: Path, tmp_path: Path) -> None:
    text = "agelab-operations 1\n" + "".join(f"create {name}\nwrite {name} 0 3000000\n" for name in ("a", "b"))
    carried_out(replay, log(tmp_path, text), tmp_path / "tree")
    one, other = tree(tmp_path / "tree").values()
    assert one and other and one[:4096] != other[:4096] and len(set(one[:4096])) == 256


def test_what_was_read_of_a_file_is_dry_or_allocated_or_written(replay: Path, tmp_path: Path) -> None:
    path = log(tmp_path, EXAMPLE)
    assert carried_out(replay, path, tmp_path / "dry", "--dry").stdout == "operations 16 bytes 0 refused 0\n"
    assert tree(tmp_path / "dry") == {}
    assert "bytes 10700" in carried_out(replay, path, tmp_path / "allocated", "--allocate").stdout
    assert tree(tmp_path / "allocated")["post/letter"] == bytes(10000)
    assert (tmp_path / "allocated/post/letter").stat().st_blocks * 512 >= 10000


def test_each_refusal_is_a_line_and_ends_it_or_not(replay: Path, tmp_path: Path) -> None:
    """The name is longer than any filesystem takes; what follows on the file is refused as well."""
    name = "n" * 300
    text = f"agelab-operations 1\ncreate a\ncreate {name}\nwrite {name} 0 5\nunlink {name}\nappend a 7\n"
    refusals = [
        f"replay: line {number}: {line}: File name too long"
        for number, line in ((3, f"create {name}"), (4, f"write {name} 0 5"), (5, f"unlink {name}"))
    ]
    stopped = carried_out(replay, log(tmp_path, text), tmp_path / "stopped")
    assert (stopped.returncode, stopped.stderr.splitlines()) == (1, refusals[:1])
    assert stopped.stdout == "operations 2 bytes 0 refused 1\n"
    skipped = carried_out(replay, log(tmp_path, text), tmp_path / "skipped", "--skip")
    assert (skipped.returncode, skipped.stderr.splitlines()) == (1, refusals)
    assert skipped.stdout == "operations 5 bytes 7 refused 3\n"
    left = tree(tmp_path / "skipped")
    assert list(left) == ["a"] and len(left["a"] or b"") == 7


@pytest.mark.parametrize("text", ["agelab-operations 1\ncreate", "agelab-operations 1\nwrite a 0 x\n", "x\n"])
def test_the_replayer_refuses_what_is_no_log(replay: Path, tmp_path: Path, text: str) -> None:
    assert carried_out(replay, log(tmp_path, text), tmp_path / "tree").returncode == 2


def test_many_files_take_no_memory(tmp_path: Path) -> None:
    """The replayer keeps no table of files: a million of them cost what ten thousand do.

    The log comes through a pipe, so that the replayer is still there, at its peak, when it is asked.
    """
    program, pipe = tmp_path / "replay", tmp_path / "pipe"
    source = str(Path(__file__).parents[3] / "harness/tools/replay.c")
    subprocess.run(["gcc", "-O2", "-o", program, source], check=True)
    os.mkfifo(pipe)
    peaks = []
    for count in (10_000, 1_000_000):
        argv = [str(program), "--dry", str(pipe)]
        with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as child, pipe.open("wb") as file:
            file.write(b"agelab-operations 1\n")
            file.writelines(b"create f%d\n" % number for number in range(count))
            file.flush()
            status = Path(f"/proc/{child.pid}/status").read_text()
        assert child.returncode == 0
        peaks.append(int(status.partition("VmHWM:")[2].split()[0]))
    assert 0 < peaks[0] < 10_000 and peaks[1] - peaks[0] < 200 * 990_000 / 1024 / 100
