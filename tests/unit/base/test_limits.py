"""A host that holds something back (memory, address space, threads, files, /proc) is told in one line."""

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from agelab.base import limits, orphans, places
from agelab.base.errors import HostError
from tests.build import aging_runs
from tests.capabilities import needs_root

AGELAB = Path(sys.executable).with_name("agelab")
RUN = "run aging-ext4"
VERBS = (
    "doctor", "show latest", "report latest -o r.html", RUN, "list disks",
    "disk import /etc/passwd --filesystem ext4", "history make profile -o a.log --disk 40M",
)  # fmt: skip
MORE_VERBS = (
    "list", "compare latest:ext4 latest:xfs", "export latest -o samples.csv", "replicate latest",
    "sweep latest --plots plots", "store", "plan aging-ext4", "list kernels", "schema scenario",
)  # fmt: skip
"""They do no more with processes than those."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("limits")
    aging_runs.make(made, {"ext4": 1.3, "xfs": 1.2})
    return made


def ended(words: list[str], home: Path, place: Path) -> tuple[int, str]:
    told = {**os.environ, "AGELAB_HOME": str(home), "PYTHONPATH": str(places.PACKAGE.parent)}
    done = subprocess.run(
        words, env=told, cwd=place, capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL
    )  # fmt: skip
    return done.returncode, done.stderr


@needs_root
@pytest.mark.parametrize("verb", [*VERBS, *(pytest.param(verb, marks=pytest.mark.full) for verb in MORE_VERBS)])
def test_a_verb_without_proc_works_or_says_what_is_missing(verb: str, home: Path, tmp_path: Path) -> None:
    without = ["unshare", "--mount", "sh", "-euc", 'mount -t tmpfs none /proc; exec "$@"', "sh"]
    code, said = ended([*without, str(AGELAB), *verb.split()], home, tmp_path)
    assert "Traceback" not in said and code in ((3,) if verb == RUN else (0, 1, 3))
    if code == 3:
        assert "agelab: /proc is not mounted" in said and "mount -t proc proc /proc" in said


@pytest.mark.parametrize("mb", [350, 650, 20_000, *(pytest.param(mb, marks=pytest.mark.full) for mb in (100, 550))])
@pytest.mark.parametrize("verb", ["report latest -o r.html", "compare latest:ext4 latest:xfs", "show latest"])
def test_a_verb_with_little_address_space_works_or_says_so(mb: int, verb: str, home: Path, tmp_path: Path) -> None:
    """Without this OpenBLAS looped for ever, ended the process or interrupted it."""
    small = ["sh", "-euc", f'ulimit -v {mb * 1000}; exec "$@"', "sh"]
    code, said = ended([*small, str(AGELAB), *verb.split()], home, tmp_path)
    assert (code, "Traceback" in said) in ((0, False), (3, False))
    if mb < 600:
        assert code == 3 and "address space is limited to" in said and "ulimit -v unlimited" in said
        assert not (tmp_path / "r.html").exists()
    if mb == 20_000:
        assert code == 0


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "no more memory"),
        (ImportError("vl_convert.abi3.so: failed to map segment from shared object"), "no more memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "no more memory"),
        (RuntimeError("can't start new thread"), "no more threads or processes"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "no more threads or processes"),
        (OSError(errno.EMFILE, "Too many open files", "f"), "no more open files"),
    ],
)
def test_what_the_host_holds_back_is_known_by_its_error(error: Exception, said: str) -> None:
    found = limits.of_error(error)
    assert found and said in str(found) and found.exit_code == 3 and found.hint


def test_any_other_error_stays_a_bug() -> None:
    of_a_pipe = BlockingIOError(errno.EAGAIN, "write could not complete without blocking", 10)
    for error in (AssertionError(), ImportError("no module"), RuntimeError("x"), OSError(errno.EIO, "x"), of_a_pipe):
        assert limits.of_error(error) is None


@pytest.mark.parametrize(
    ("group", "file", "limit"),
    [
        ("0::/a/b", "a/memory.max", "100000000"),
        ("0::/", "memory.max", "100000000"),
        ("5:memory:/a\n0::/", "memory/a/memory.limit_in_bytes", "100000000"),
        ("0::/a", "other/memory.max", None),
        ("0::/a", "a/memory.max", "max"),
    ],
)
def test_charts_take_memory_of_their_control_group(
    group: str, file: str, limit: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY, "the tests begin without a limit"
    (tmp_path / "self").mkdir()
    (tmp_path / "self/cgroup").write_text(group + "\n")
    (tmp_path / "groups" / file).parent.mkdir(parents=True)
    (tmp_path / "groups" / file).write_text(f"{limit or 10**8}\n")
    found = limits.memory_limit(tmp_path, tmp_path / "groups")
    assert found == (10**8 if limit == "100000000" else None)
    monkeypatch.setattr(limits, "memory_limit", lambda: found)
    if found is None:
        limits.require_to_draw()
    else:
        with pytest.raises(HostError, match="control group has 100 MB of memory, drawing charts takes 350"):
            limits.require_to_draw()


def test_a_process_has_no_tag_without_proc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(orphans, "PROC", tmp_path)
    orphans.tag.cache_clear()
    with pytest.raises(HostError, match="/proc is not mounted"):
        orphans.tag()
