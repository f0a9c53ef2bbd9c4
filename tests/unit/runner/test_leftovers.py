"""Leftovers of killed agelabs are found and removed; files in use stay."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agelab.base import atomic, orphans, process
from agelab.machine.vm import libvirt_daemon
from agelab.results import run_lookup
from agelab.results.run_directory import RunDirectory
from agelab.runner.doctor import leftovers
from agelab.store.artefacts import Store
from tests.build.waiting import until
from tests.capabilities import needs_root

START = """
import sys, time
from pathlib import Path
from agelab.base import process
process.run(["sh", "-c", sys.argv[1]])
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("agelab.runner.doctor.leftovers.gettempdir", lambda: str(tmp_path / "tmp"))
    # Processes are the whole host's, and other tests kill agelabs meanwhile.
    monkeypatch.setattr(orphans, "find_orphans", lambda: iter(()))
    monkeypatch.setattr(libvirt_daemon, "unused_pid", lambda: None)
    return Store(tmp_path / "home")


@pytest.fixture
def owned(tmp_path: Path) -> Iterator["tuple[subprocess.Popen[bytes], int]"]:
    """An agelab that has started a program, and what that program has left behind: a process of its own."""
    mark = tmp_path / "pid"
    script = f"setsid sh -c 'echo $$ > {mark}.new; mv {mark}.new {mark}; exec sleep 60' & wait"
    agelab = subprocess.Popen([sys.executable, "-c", START, script])
    until(mark.exists)
    pid = int(mark.read_text())
    # The shell tells its number before it becomes the program.
    until(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n")
    yield agelab, pid
    agelab.kill()
    agelab.wait()
    if Path(f"/proc/{pid}").exists():
        os.kill(pid, signal.SIGKILL)


def said(store: Store) -> list[str]:
    lines: list[str] = []
    assert leftovers.clean(store, lines.append)
    return lines


def test_a_process_is_nobody_s_once_its_owner_has_been_killed(owned: "tuple[subprocess.Popen[bytes], int]") -> None:
    agelab, pid = owned
    name = orphans.owner_of(pid)
    assert name and not orphans.is_dead(name)
    assert pid not in [one.pid for one in orphans.find_orphans()]
    agelab.kill()
    agelab.wait()
    found = [one for one in orphans.find_orphans() if one.pid == pid]
    assert [one.command for one in found] == ["sleep"]
    assert orphans.terminate([replace(found[0], started="1")]) == [], "one that had the number before"
    assert orphans.terminate(found) == found
    assert pid not in [one.pid for one in orphans.find_orphans()]


def test_a_container_s_daemon_is_none_of_ours(tmp_path: Path) -> None:
    word = f"{tmp_path}/conf"
    own = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    inside = ["unshare", *own, "--pid", "--fork", "--kill-child", "sh", "-c", "echo ready; sleep 60; :", word]
    env = {**os.environ, orphans.VARIABLE: orphans.DAEMON}
    with subprocess.Popen(inside, env=env, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None and child.stdout.readline() == "ready\n"
            assert [one.command for one in orphans.tagged(orphans.DAEMON, word)] == ["unshare"]
        finally:
            child.kill()


@needs_root
@pytest.mark.parametrize(
    "apart",
    [
        ("--pid", "--fork", "--kill-child", "--"),
        ("--mount", "--", "sh", "-ec", 'mount -t tmpfs none /proc; exec "$@"', "sh"),
    ],
    ids=["another's", "none"],
)
def test_agelab_ends_nothing_by_numbers_that_are_not_its_own(tmp_path: Path, apart: tuple[str, ...]) -> None:
    agelab = Path(sys.executable).with_name("agelab")
    env = {**os.environ, "AGELAB_HOME": str(tmp_path)}
    done = subprocess.run(
        ["unshare", *apart, agelab, "doctor", "--clean"], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3 and "mount -t proc proc /proc" in done.stderr
    assert done.stderr.startswith("agelab: /proc is not mounted, or shows other processes")


def test_a_number_that_another_process_has_now_is_no_owner() -> None:
    pid, began = orphans.tag().split(":")
    assert not orphans.is_dead(orphans.tag())
    assert orphans.is_dead(f"{pid}:{int(began) + 1}")
    assert not orphans.is_dead(orphans.DAEMON)
    assert orphans.owner_of(1 << 30) is None
    assert (
        orphans.terminate([orphans.TaggedProcess(os.getpid(), began, f"{pid}:{int(began) + 1}", "not this one")]) == []
    )


def test_a_program_ends_with_the_agelab_that_started_it(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    agelab = subprocess.Popen(
        [sys.executable, "-c", START, f"echo $$ > {mark}.new; mv {mark}.new {mark}; exec sleep 60"]
    )
    until(mark.exists)
    handle = os.pidfd_open(int(mark.read_text()))
    agelab.kill()
    agelab.wait()
    assert select.select([handle], [], [], 20)[0]
    os.close(handle)


def test_nothing_is_left_over_where_nothing_was_killed(store: Store) -> None:
    assert said(store) == ["nothing was left over"]
    assert leftovers.finding(store).found == "none"


def test_what_is_not_finished_is_removed_unless_somebody_is_at_work_on_it(store: Store, tmp_path: Path) -> None:
    places = [
        "store/kernel/.k.partial",
        "cache/debs/.agelab.1.partial",
        "bisects/b/.q.1.partial",
        "floors/.f.json.1.partial",
    ]
    left = [store.home / place for place in places]
    for path in left:
        path.mkdir(parents=True)
        (path / "half").write_bytes(b"x" * 5000)
    with (
        atomic.temp_dir(tmp_path / "tmp") as alive,
        atomic.locked_directory(store.root / "image" / ".i.partial") as other,
    ):
        finding = leftovers.finding(store)
        assert finding.found.startswith("4, ") and finding.fix == "agelab doctor --clean"
        lines = said(store)
        assert alive.exists() and other.exists()
    assert [any(str(path) in line for line in lines) for path in left] == [True] * 4
    assert not any(path.exists() for path in left)
    assert not alive.exists() and not other.exists()


def test_a_run_without_a_plan_goes_unless_it_is_being_begun(store: Store) -> None:
    with run_lookup.creation_lock(store.runs):
        begun = RunDirectory.create(store.runs, "begun")
        with begun.lock():
            left = RunDirectory.create(store.runs, "left")
            assert [run.name for run in run_lookup.without_plan(store.runs)] == [left.name]
    with begun.lock():
        assert any(left.name in line for line in said(store))
        assert begun.path.exists() and not left.path.exists()


def test_disks_of_a_run_that_nobody_carries_out_go_and_its_records_stay(store: Store) -> None:
    run = RunDirectory.create(store.runs, "small")
    cell = run.cell_directory(0)
    (cell / "fork-aged").mkdir()
    gone = [
        cell / name for name in ("disk-2", "aged-disk-2", "fork-aged/disk-0", "results", "initramfs", "map-initramfs")
    ]
    kept = [cell / name for name in ("events-0.jsonl", "console-0.log", "inputs.json")]
    for path in (*gone, *kept):
        path.write_bytes(b"x" * 10000)
    (run.path / "plan.json").write_text("{}")
    with run.lock():
        assert said(store) == ["nothing was left over"]
    [line] = said(store)
    assert line.startswith(f"removed: disks of cells that have not ended in {run.path}, 0.")
    assert not any(path.exists() for path in gone) and all(path.exists() for path in kept)


@needs_root
def test_what_is_mounted_in_a_leftover_is_unmounted_not_emptied(store: Store, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    left = store.root / "root" / ".r.partial"
    (left / "on").mkdir(parents=True)
    process.run(["mount", "--bind", str(kept), str(left / "on")])
    assert [line[:8] for line in said(store)] == ["removed:"]
    assert (kept / "file").exists() and not left.exists()


def test_a_directory_that_is_removed_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "disk"
    path.mkdir()
    (path / "content").touch()
    atomic.remove(path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        atomic.remove(path)


def test_writers_of_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = tmp_path / "answer"
    one = "import sys\nfrom pathlib import Path\nfrom agelab.base import atomic\n"
    one += "for _ in range(100): atomic.write(Path(sys.argv[1]), sys.argv[2].encode() * 50_000)"
    writers = [subprocess.Popen([sys.executable, "-c", one, str(path), letter]) for letter in "abc"]
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            assert len(set(path.read_bytes())) == 1
        assert all(line != path.name for line in said(Store(tmp_path)))
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert [entry.name for entry in tmp_path.iterdir()] == ["answer"]


def test_links_in_a_run_of_somebody_else_lead_to_nothing_that_is_removed(store: Store, tmp_path: Path) -> None:
    """Such a run was unpacked into runs/: a lock is made, and disks are removed, there and nowhere else."""
    mine = tmp_path / "mine"
    names = ("0/empty", "0/results", "empty", "1-disk-1", "download.partial")
    for name in names:
        (mine / name).parent.mkdir(parents=True, exist_ok=True)
        (mine / name).write_text("mine")
    for number, made in enumerate(("cells", "cells/0", "cells/0/profile", "lock", "")):
        run = store.runs / f"2026010{number}-aging"
        link = run / made
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(mine / "empty" if made == "lock" else mine)
        if made == "lock":
            (run / "cells" / "0").mkdir(parents=True)
            (run / "cells" / "0" / "empty").touch()
        if made:
            (run / "plan.json").touch()
    lines: list[str] = []
    leftovers.clean(store, lines.append)
    assert {str(path.relative_to(mine)) for path in mine.rglob("*") if path.is_file()} == {*names}
    assert all((mine / name).read_text() == "mine" for name in names), lines
