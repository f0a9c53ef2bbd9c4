"""The libraries before QEMU: what they call, and which QEMU they refuse."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

from agelab import process
from agelab.store import Store
from agelab.vm import clock_library, host

LIBC = Path("/lib/x86_64-linux-gnu/libc.so.6")
SYMBOL = re.compile(r"^([0-9a-f]*) +\w (\w+)(@\S+)?$", re.M)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> clock_library.ClockLibraries:
    return clock_library.obtain(Store(tmp_path_factory.mktemp("home")))


def symbols(library: Path, *words: str) -> list[tuple[str, str]]:
    listed = process.run(["nm", "--dynamic", *words, str(library)]).stdout
    return [(address, name) for address, name, _ in SYMBOL.findall(listed)]


def test_they_call_nothing_that_the_c_library_has_twice(libraries: clock_library.ClockLibraries) -> None:
    """The linker takes the oldest version of a function, whose structures may be others."""
    versions: dict[str, set[str]] = defaultdict(set)
    for address, name in symbols(LIBC):
        versions[name].add(address)
    assert len(versions["pthread_cond_wait"]) == 2
    for library in (libraries.clock, libraries.main_loop):
        called = {name for _, name in symbols(library, "--undefined-only")}
        assert "pthread_mutex_lock" in called or library == libraries.clock
        assert {name for name in called if len(versions[name]) > 1} == set()


def test_guests_of_this_qemu_can_be_saved(libraries: clock_library.ClockLibraries) -> None:
    assert libraries.unfit == ""


def test_another_qemu_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "accel.so"
    other.write_bytes(LIBC.read_bytes())
    monkeypatch.setattr(clock_library, "MODULE", other)
    assert "does not call cpu_can_run, icount_handle_deadline" in clock_library.unfit()
    monkeypatch.setattr(clock_library, "MODULE", tmp_path / "none.so")
    assert clock_library.unfit() == f"{tmp_path}/none.so is missing"
    monkeypatch.setattr(host, "qemu_version", lambda: "QEMU emulator version 10.0.2")
    assert clock_library.unfit() == "QEMU emulator version 10.0.2 is not known"
