"""A host with little memory, little processor, huge pages or none, and another year: a guest does not notice."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import capabilities
from tests.capabilities import needs_root
from tests.vm import taken_hold
from tests.vm.chaos import Chaos, wait_until
from tests.vm.taken_hold import GUEST, guests, interrupted, resumed

pytestmark = [pytest.mark.vm, pytest.mark.full, needs_root]

CGROUPS = Path("/sys/fs/cgroup")
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
LITTLE, TOO_LITTLE = 128 << 20, 64 << 20
"""Bytes of memory for a QEMU that takes 250 million."""
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

#define LATER (4L * 365 * 86400)

/* Every clock that tells the date shows one four years later. */
int clock_gettime(clockid_t id, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    int failed;

    if (!real)
        real = dlsym(RTLD_NEXT, "clock_gettime");
    failed = real(id, now);
    if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        now->tv_sec += LATER;
    return failed;
}

time_t time(time_t *out)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""


@pytest.fixture(scope="module")
def chaos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chaos]:
    with taken_hold.undisturbed(tmp_path_factory.mktemp("pressure")) as made:
        yield made


def set_limit(pid: int, controller: str, old: dict[str, str], new: dict[str, str]) -> None:
    """Set limits of the cgroup that libvirt has made for a guest: of the old interface, or of the new one."""
    lines = [line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    named = {name: path for _, names, path in lines for name in names.split(",")}
    path, values = (controller + named[controller], old) if controller in named else (named[""].lstrip("/"), new)
    place = CGROUPS / path
    if "agelab" not in place.name and "agelab" not in place.parent.name:
        capabilities.skip("cgroup limits", f"process {pid} has no cgroup of its own: {place}")
    for name, value in values.items():
        (place / name).write_text(value)


def limit_memory(pid: int, size: int) -> None:
    set_limit(pid, "memory", {"memory.limit_in_bytes": str(size)}, {"memory.max": str(size)})


def limit_processor(pid: int) -> None:
    set_limit(pid, "cpu", {"cpu.cfs_quota_us": "20000"}, {"cpu.max": "20000 100000"})


@contextmanager
def swap(directory: Path) -> Iterator[None]:
    """Swap space on the host."""
    file = directory / "swap"
    with file.open("wb") as opened:
        for _ in range(1024):
            opened.write(bytes(1 << 20))
    file.chmod(0o600)
    subprocess.run(["mkswap", str(file)], check=True, capture_output=True)
    done = subprocess.run(["swapon", str(file)], capture_output=True, text=True, check=False)
    if done.returncode:
        capabilities.skip("swap", done.stderr.strip())
    try:
        yield
    finally:
        subprocess.run(["swapoff", str(file)], check=True)


def swapped(pid: int) -> int:
    """Bytes of a process that are in swap."""
    fields = dict(line.split(":") for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return int(fields["VmSwap"].split()[0]) << 10


def test_a_guest_that_the_host_swaps_out_has_the_same_digests(
    chaos: Chaos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGELAB_DISKS", "files")  # what is in memory counts for the guest that wrote it
    with swap(tmp_path), taken_hold.begun(chaos, early=True) as (child, run):
        [guest] = guests(chaos)
        limit_memory(guest, LITTLE)
        assert wait_until(lambda: swapped(guest) > 16 << 20, GUEST)
        assert child.wait(4 * GUEST) == 0, chaos.said()
        assert chaos.results(run) == chaos.results(chaos.plans()[0])


def test_a_guest_that_the_host_ends_for_its_memory_is_interrupted(chaos: Chaos) -> None:
    with taken_hold.begun(chaos, early=True) as (child, run):
        [guest] = guests(chaos)
        limit_memory(guest, TOO_LITTLE)
        interrupted(chaos, run, child, "QEMU was killed, or ended by itself; a full host filesystem does that")
        resumed(chaos, run)


def test_a_guest_with_a_fifth_of_a_processor_has_the_same_digests(chaos: Chaos) -> None:
    with taken_hold.begun(chaos) as (child, run):
        [guest] = guests(chaos)
        limit_processor(guest)
        assert child.wait(4 * GUEST) == 0, chaos.said()
        assert chaos.results(run) == chaos.results(chaos.plans()[0])


@pytest.mark.parametrize("when", ["always", "never"])
def test_huge_pages_change_no_digest(chaos: Chaos, when: str) -> None:
    try:
        before = HUGE_PAGES.read_text().partition("[")[2].partition("]")[0]
        HUGE_PAGES.write_text(when)
    except OSError as error:
        capabilities.skip("huge pages", str(error))
    try:
        with taken_hold.begun(chaos) as (child, run):
            [guest] = guests(chaos)
            rolled = Path(f"/proc/{guest}/smaps_rollup").read_text()
            [huge] = [int(line.split()[1]) for line in rolled.splitlines() if line.startswith("AnonHugePages:")]
            assert (huge > 0) is (when == "always")
            assert child.wait(GUEST) == 0, chaos.said()
    finally:
        HUGE_PAGES.write_text(before)
    assert chaos.results(run) == chaos.results(chaos.plans()[0])


def test_a_host_in_another_year_has_the_same_digests(chaos: Chaos, tmp_path: Path) -> None:
    """Every program there sees the year 2030 and later: agelab, libvirt's daemon, QEMU."""
    (tmp_path / "clock.c").write_text(CLOCK)
    library = tmp_path / "clock.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, tmp_path / "clock.c"], check=True)
    (tmp_path / "etc").mkdir()
    subprocess.run(["cp", "-a", "/etc/.", str(tmp_path / "etc")], check=True)
    (tmp_path / "etc/ld.so.preload").write_text(f"{library}\n")

    def there(*words: str) -> str:
        done = subprocess.run([*chaos.before, *words], check=True, capture_output=True, text=True)
        return done.stdout

    there("mount", "--bind", str(tmp_path / "etc"), "/etc")
    try:
        assert int(there("date", "+%Y")) >= 2030
        chaos.run(*chaos.words)
        run = chaos.plans()[-1]
        assert int(run.name[:4]) >= 2030
    finally:
        there("umount", "/etc")
    assert chaos.results(run) == chaos.results(chaos.plans()[0])
