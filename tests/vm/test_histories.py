"""One history on two filesystems, measured at each of its points, in real guests."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.vm.cells import agelab, newest, run, runs

pytestmark = pytest.mark.vm
SCENARIO = Path(__file__).with_name("small-history.toml")
LOG = f"""agelab-operations 1
mkdir d
create d/one
write d/one 0 5000
create d/with\\040blank
append d/with\\040blank 100000
point 1
unlink d/one
rename d/with\\040blank moved
truncate moved 70000
overwrite moved 4096 10
# There is no room for as much, and no name is as long: what is done to the file of that name is refused, too.
create large
write large 0 100000000
unlink large
create {"n" * 300}
append {"n" * 300} 1
create late
write late 1000000 1
fsync late
point 2
"""
LEFT = {1: {"/d/one": 5000, "/d/with\\040blank": 100_000}, 2: {"/moved": 70_000, "/late": 1_000_001}}
"""File to size at each point."""


def test_a_log_written_by_hand_runs_alike_on_two_filesystems(tmp_path: Path) -> None:
    log = tmp_path / "mine.log"
    log.write_text(LOG)
    cells = run(str(SCENARIO), "--log", str(log), "--jobs", "2")
    assert [(cell["variant"], cell["status"]) for cell in cells] == [("ext2-log", "ok"), ("reiserfs-log", "ok")]
    made = newest(SCENARIO)
    for number, cell in enumerate(cells):
        values = {(s["step"], s["metric"], s["repetition"]): s["value"] for s in cell["samples"]}
        assert ("replay", "refused", 1) not in values and values["replay", "refused", 2] == 3
        for point, left in LEFT.items():
            for kind in ("aged", "control"):
                found = _files(made / f"cells/{number}/maps/{kind}-{point}/extents.gz")
                assert found == left
            for test in ("scan", "search"):
                slower = [values[f"then/{kind}/{test}", "elapsed", point] for kind in ("aged", "control")]
                assert values[f"then/{test}", "slowdown", point] == round(slower[0] / slower[1], 6)
    shown = agelab("show", made.name).stdout
    assert "history log" in shown and "fullness" in shown and " point " in shown
    assert "<svg" in (made / "cells/0/maps/layout-score.svg").read_text()[:200]
    page = tmp_path / "report.html"
    assert agelab("report", made.name, "-o", str(page)).returncode == 0
    text = page.read_text()
    assert "1 seed cannot exclude chance, " in text and "As measured, " in text and "(drive then)" in text
    assert text.count('<figure class="blockmap">') == 2  # of each filesystem one,
    assert text.count("data:image/svg+xml;base64,") == 2  # and one curve


def test_a_malformed_log_is_refused_before_anything_runs(tmp_path: Path) -> None:
    log = tmp_path / "mine.log"
    log.write_text(LOG.replace("unlink d/one", "unlink d/two"))
    before = runs(SCENARIO)
    done = agelab("run", str(SCENARIO), "--log", str(log))
    assert done.returncode == 2 and f"{log}: line 8: there is no " in done.stderr
    assert runs(SCENARIO) == before


def _told(cell: dict[str, Any]) -> tuple[Any, ...]:
    return cell["inputs_key"], cell["digest"], cell["maps"]


def _files(extents: Path) -> dict[str, int]:
    """Path to size, as the extent mapper lists them."""
    lines = gzip.decompress(extents.read_bytes()).decode().splitlines()
    files = (line.split() for line in lines if line.startswith("F "))
    return {path if path.startswith("/") else f"/{path}": int(size) for _, _, size, _, _, path in files}


@pytest.mark.full
def test_the_same_history_gives_the_same_maps_on_every_filesystem(tmp_path: Path) -> None:
    """Seven filesystems twice, two at a time and one after the other."""
    path = _on(tmp_path, "ext2", "ext4", "xfs", "btrfs", "jfs", "reiserfs", "f2fs")
    together, alone = run(str(path), "--jobs", "2"), run(str(path))
    assert [cell["status"] for cell in together] == ["ok"] * 7
    assert [_told(cell) for cell in together] == [_told(cell) for cell in alone]


@pytest.mark.full
def test_two_kernels_carry_out_the_same_history(tmp_path: Path) -> None:
    """The files that are left are the same; where they lie is the kernels' own."""
    path = _on(tmp_path, "ext4", "jfs")
    sides = []
    for kernel in ("debian:6.1", "debian:6.12"):
        cells = run(str(path), "--kernel", kernel, "--jobs", "2")
        assert [cell["status"] for cell in cells] == ["ok", "ok"]
        last = newest(path)
        made = [json.loads((last / f"cells/{n}/inputs.json").read_text())["making"] for n in (0, 1)]
        sides.append(([_files(last / f"cells/{n}/maps/aged-2/extents.gz") for n in (0, 1)], made))
    (files, made), (other_files, other_made) = sides
    assert files == other_files and files[0] == files[1] and len(files[0]) > 100
    for one, other in zip(made, other_made, strict=True):
        differ = {name for name in one if one[name] != other[name]}
        assert one["corpus"] == other["corpus"]
        assert differ <= {"kernel", "image", "initramfs", "archive", "command", "drive_module"}, differ


def _on(directory: Path, *filesystems: str) -> Path:
    """The scenario on a disk that all of them take."""
    text = SCENARIO.read_text().replace("mib = { value = 64,", "mib = { value = 320,")
    head, _, rest = text.partition("[[variants]]")
    variants = "".join(f'[[variants]]\nname = "{name}"\nfilesystem = "{name}"\n\n' for name in filesystems)
    path = directory / SCENARIO.name
    path.write_text(head + variants + rest[rest.index("[[steps]]") :])
    return path
