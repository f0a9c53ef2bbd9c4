"""Capsules of real runs: they come out the same here, on a machine that has nothing, and not with another harness."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agelab.cli.options import open_store
from tests.vm.cells import PROGRAM, agelab, newest, run, scenario, step, store_of_parts

pytestmark = pytest.mark.vm
PROJECT = Path(__file__).parents[2]
STEPS = step("copy", "cp -r $SOURCE/. .") + step("read", "find . -type f | xargs cat > /dev/null", "caches = 'remount'")
PARTS = ("agelab", "harness", "images", "packer", "scenarios")


def _packed(directory: Path, *words: str) -> tuple[Path, dict[str, Any]]:
    """A run of one cell, packed; and the cell as the run has it."""
    path = scenario(directory, STEPS, mib=8)
    [cell] = run(path.name, cwd=directory)
    capsule = directory / "run.capsule"
    done = agelab("capsule", "pack", newest(path).name, "-o", str(capsule), *words)
    assert done.returncode == 0, done.stderr
    path.unlink()  # whoever replays it has no such file
    return capsule, cell


def _replayed(capsule: Path, home: Path, code: Path = PROJECT, *words: str) -> tuple[int, dict[str, Any]]:
    """Exit code and result of a replay in a store, by the agelab in ``code``."""
    env = {**os.environ, "AGELAB_HOME": str(home), "PYTHONPATH": str(code)}
    command = [PROGRAM, "capsule", "replay", str(capsule), "--json", *words]
    done = subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def _same(found: dict[str, Any], home: Path, cell: dict[str, Any]) -> None:
    """The one cell is called identical, and it is."""
    assert [one["verdict"] for one in found["cells"]] == ["identical"], found
    end = json.loads((home / "runs" / found["run"] / "cells" / "0" / "end.json").read_text())
    assert (end["inputs_key"], end["digest"]) == (cell["inputs_key"], cell["digest"])


def test_a_packed_run_comes_out_the_same(tmp_path: Path) -> None:
    capsule, cell = _packed(tmp_path)
    home = open_store().home
    code, found = _replayed(capsule, home)
    assert code == 0
    _same(found, home, cell)
    assert not list((home / "cache" / "capsules").iterdir())


@pytest.mark.full
def test_an_artefact_comes_out_the_same_elsewhere_but_for_the_capsule_that_was_tampered_with(tmp_path: Path) -> None:
    names = []
    for place in (tmp_path / "one", tmp_path / "two"):
        place.mkdir()
        path = scenario(place, STEPS, mib=8)
        run(path.name, cwd=place)
        names.append(newest(path).name)
    made = tmp_path / "made"
    done = agelab("capsule", "pack", *names, "--artifact", str(made))
    assert done.returncode == 0, done.stderr
    home = store_of_parts(tmp_path / "elsewhere")
    code, found = _replayed(made, home)
    assert (code, [one["reproduced"] for one in found["capsules"]]) == (0, [True, True]), found
    tampered = made / "capsules" / f"{names[0]}.capsule"
    tampered.write_bytes(tampered.read_bytes().replace(b'"metric":"elapsed"', b'"metric":"elapseD"', 1))
    code, found = _replayed(made, home)
    problems = {Path(one["file"]).stem: one["problem"] for one in found["capsules"]}
    assert code == 1 and problems[names[1]] is None
    assert "cells/0/samples.jsonl does not match the hash" in problems[names[0]]
    assert [one["reproduced"] for one in found["capsules"]] == [False, True], found


@pytest.mark.full
def test_a_capsule_with_its_image_takes_qemu_alone_from_the_mirror(tmp_path: Path) -> None:
    capsule, cell = _packed(tmp_path, "--with-image")
    home = tmp_path / "elsewhere"
    code, found = _replayed(capsule, home)
    assert code == 0
    _same(found, home, cell)
    # Nothing that came with it may ever be taken for something that was made here.
    assert {path.name for path in (home / "store").iterdir()} == {"qemu", "buildroot"}
    assert not [*(home / "cache" / "capsules").iterdir()]


@pytest.mark.full
def test_an_empty_store_rebuilds_what_a_capsule_names(tmp_path: Path) -> None:
    capsule, cell = _packed(tmp_path)
    home = tmp_path / "elsewhere"
    code, found = _replayed(capsule, home)
    assert code == 0
    _same(found, home, cell)


@pytest.mark.full
def test_another_harness_is_named_as_the_input_that_differs(tmp_path: Path) -> None:
    capsule, _ = _packed(tmp_path)
    other = tmp_path / "other"
    for name in PARTS:
        shutil.copytree(PROJECT / name, other / name, ignore=shutil.ignore_patterns("__pycache__"))
    main = other / "harness" / "main.py"
    main.write_text(main.read_text() + "# one line more\n")
    code, found = _replayed(capsule, open_store().home, other)
    [cell] = found["cells"]
    assert (code, cell["verdict"]) == (1, "differs")
    assert "making.harness" in {one["place"] for one in cell["inputs"]}


@pytest.mark.full
def test_what_only_the_other_machine_had_is_said_to_be_missing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "file").write_bytes(os.urandom(24 << 20))
    path = scenario(tmp_path, step("copy", "cp -r $SOURCE/. ."))
    run(path.name, "--corpus", str(data), cwd=tmp_path)
    capsule = tmp_path / "run.capsule"
    assert agelab("capsule", "pack", newest(path).name, "-o", str(capsule)).returncode == 0
    home = open_store().home
    code, found = _replayed(capsule, home)
    [cell] = found["cells"]
    assert (code, cell["verdict"]) == (3, "could not be rebuilt")
    assert cell["why"].startswith("the corpus is missing (the user's directory: 1 files")
    code, found = _replayed(capsule, home, PROJECT, "--corpus", str(data))
    assert code == 0, found
