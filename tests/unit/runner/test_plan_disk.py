"""The plan disk: what the host writes there is what the harness takes from it, and its secret is gone then."""

import io
import os
import random
import tarfile
from pathlib import Path

import pytest

from agelab.base.errors import InputError
from agelab.runner.execute import disks as host
from agelab.runner.execute.disks import ModuleFile
from harness import plan_disk as guest

PROGRAMS = {"tools/extents": b"\x7fELF", "control/1": b"#!/bin/sh\n"}
MODULES = {"dm_mod": ModuleFile(b"one"), "crc32c": ModuleFile(b"two", optional=True)}


def test_the_harness_takes_what_was_written_and_erases_the_secret(tmp_path: Path) -> None:
    disk, secret = tmp_path / "plan", bytes(range(32))
    host.write_plan_disk(disk, secret, host.plan_archive(b"{}", PROGRAMS, MODULES))
    assert disk.stat().st_size == host.PLAN_DISK_BYTES and host.SECRET_BLOCK == guest.BLOCK
    assert guest.take(disk, tmp_path) == secret
    assert (tmp_path / "plan.json").read_bytes() == b"{}"
    assert (tmp_path / "modules/order").read_text() == "dm_mod.ko\ncrc32c.ko optional\n"
    assert (tmp_path / "modules/crc32c.ko").read_bytes() == b"two"
    for name, content in PROGRAMS.items():
        assert (tmp_path / name).read_bytes() == content and (tmp_path / name).stat().st_mode & 0o777 == 0o755
    assert secret not in disk.read_bytes()


def test_equal_content_gives_equal_bytes() -> None:
    assert host.plan_archive(b"{}", PROGRAMS, MODULES) == host.plan_archive(b"{}", dict(PROGRAMS), dict(MODULES))


def test_more_than_the_disk_holds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "PLAN_DISK_BYTES", 1 << 16)
    with pytest.raises(InputError, match=r"take \d+ bytes: there is room for 65536"):
        host.plan_archive(b"{}", {"tools/large": bytes(1 << 16)}, {})


def test_a_module_that_is_not_optional_and_not_taken_is_named(tmp_path: Path) -> None:
    disk = tmp_path / "plan"
    host.write_plan_disk(disk, b"", host.plan_archive(b"{}", {}, {"broken": ModuleFile(b"no module", optional=False)}))
    guest.take(disk, tmp_path)
    with pytest.raises(OSError, match=r"the kernel refuses the module broken\.ko"):
        guest.insert_modules(tmp_path)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["plan.json"], "such files lie below brought, control, jobs, tools"),
        (["modules/order"], "such files lie below"),
        (["harness/boot.py"], "such files lie below"),
        (["start"], "such files lie below"),
        (["/etc/passwd"], "such files lie below"),
        (["brought/../plan.json"], "its name is no plain relative path"),
        (["tools/"], "its name is no plain relative path"),
        (["tools//x"], "its name is no plain relative path"),
        (["tools/./x"], "its name is no plain relative path"),
        (["tools/x\0y"], "its name is no plain relative path"),
        (["tools/\ud800"], "its name is no plain relative path"),
        (["tools"], "another file has that place"),
        (["tools/x", "tools/x/y"], "another file has that place"),
        (["tools/x/y", "tools/x"], "another file has that place"),
    ],
)
def test_a_name_that_leads_to_another_place_is_refused(names: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        host.plan_archive(b"{}", dict.fromkeys((*names, "tools/other"), b""), MODULES)


PARTS = (
    "..", ".", "", "plan.json", "modules", "order", "dm_mod.ko", "harness", "boot.py", "start", "tools",
    "control", "jobs", "brought", "a", "A", "\u00fc", "u\u0308", "\uff0e\uff0e", "\0", "a\0b", "~", "-x", " ",
    "\n", "\ud800", "\udcff", "x" * 120, "\u202e",
)  # fmt: skip
"""Words of hostile names."""
HARNESS = {"start": b"start", "harness/boot.py": b"boot"}
"""What lies in the guest before its plan disk is unpacked."""


def unpacked(where: Path, packed: bytes) -> dict[str, bytes]:
    """Unpack it as the harness does, in a guest that is a directory. Return every file of the guest."""
    own = where / "1/2/3/4/5/run/agelab"
    for name, content in HARNESS.items():
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_bytes(content)
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        assert not [one.name for one in tar if one.name.startswith("/")], "not tried on the tests' own host"
        every = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}
        tar.extractall(own, **every)  # type: ignore[arg-type]
    found = (Path(top, name) for top, _, names in os.walk(where) for name in names)
    return {os.path.relpath(path, own): path.read_bytes() for path in found}


@pytest.mark.parametrize("seed", range(4))
def test_whatever_its_files_are_called_each_gets_to_its_own_place_and_no_other(tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)

    def name() -> str:
        first = drawn.choice(host.PLACES) if drawn.random() < 0.8 else drawn.choice(PARTS)
        return "/".join([first, *drawn.choices(PARTS, k=drawn.randrange(4))])

    taken = 0
    for number in range(400):
        programs = {name(): b"theirs" for _ in range(drawn.randint(1, 2))}
        modules = MODULES | ({drawn.choice(PARTS): ModuleFile(b"hostile")} if drawn.random() < 0.1 else {})
        try:
            packed = host.plan_archive(b"{}", programs, modules)
        except InputError:
            continue
        taken += 1
        order = "".join(f"{one}.ko{' optional' * module.optional}\n" for one, module in modules.items())
        own = {"plan.json": b"{}", "modules/order": order.encode()}
        own |= {f"modules/{one}.ko": module.image for one, module in modules.items()}
        assert unpacked(tmp_path / str(number), packed) == HARNESS | own | programs, programs
    assert taken >= 20
