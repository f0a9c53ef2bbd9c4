"""The plan disk: what the host writes there is what the harness takes from it, and its secret is gone then."""

from pathlib import Path

import pytest

from agelab.errors import InputError
from agelab.runner.execute import plan_disk as host
from agelab.runner.execute.plan_disk import ModuleFile
from harness import plan_disk as guest

PROGRAMS = {"tools/extents": b"\x7fELF", "control/1": b"#!/bin/sh\n"}
MODULES = {"dm_mod": ModuleFile(b"one"), "crc32c": ModuleFile(b"two", optional=True)}


def test_the_harness_takes_what_was_written_and_erases_the_secret(tmp_path: Path) -> None:
    disk, secret = tmp_path / "plan", bytes(range(32))
    host.write(disk, secret, host.archive(b"{}", PROGRAMS, MODULES))
    assert disk.stat().st_size == host.PLAN_DISK_BYTES and host.SECRET_BLOCK == guest.BLOCK
    assert guest.take(disk, tmp_path) == secret
    assert (tmp_path / "plan.json").read_bytes() == b"{}"
    assert (tmp_path / "modules/order").read_text() == "dm_mod.ko\ncrc32c.ko optional\n"
    assert (tmp_path / "modules/crc32c.ko").read_bytes() == b"two"
    for name, content in PROGRAMS.items():
        assert (tmp_path / name).read_bytes() == content and (tmp_path / name).stat().st_mode & 0o777 == 0o755
    assert secret not in disk.read_bytes()


def test_equal_content_gives_equal_bytes() -> None:
    assert host.archive(b"{}", PROGRAMS, MODULES) == host.archive(b"{}", dict(PROGRAMS), dict(MODULES))


def test_more_than_the_disk_holds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "PLAN_DISK_BYTES", 1 << 16)
    with pytest.raises(InputError, match=r"take \d+ bytes: there is room for 65536"):
        host.archive(b"{}", {"tools/large": bytes(1 << 16)}, {})


def test_a_module_that_is_not_optional_and_not_taken_is_named(tmp_path: Path) -> None:
    disk = tmp_path / "plan"
    host.write(disk, b"", host.archive(b"{}", {}, {"broken": ModuleFile(b"no module", optional=False)}))
    guest.take(disk, tmp_path)
    with pytest.raises(OSError, match=r"the kernel refuses the module broken\.ko"):
        guest.insert_modules(tmp_path)
