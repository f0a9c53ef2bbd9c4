"""OpenZFS, whose modules are built here, and bcachefs, whose tools are in experimental: in real guests."""

import json
from pathlib import Path

import pytest

from tests.vm.cells import agelab, newest, run, scenario, step

pytestmark = [pytest.mark.vm, pytest.mark.full]

STEPS = step("copy", 'for n in 1 2 3; do cp -r "$SOURCE/." copy-$n; done', "sync = true") + step(
    "delete", 'find . -type f | sort | awk "NR % 3" | xargs rm -f', "sync = true"
)


@pytest.mark.parametrize("name", ["openzfs", "bcachefs"])
def test_it_ages_and_its_free_space_is_read_with_one_digest(name: str, tmp_path: Path) -> None:
    path = scenario(tmp_path, STEPS, name, head='measures = ["extents", "free_space"]')
    [first] = run(str(path), "--kernel", "6.12")
    assert first["status"] == "ok", first["reason"]
    inputs = json.loads((newest(path) / "cells/0/inputs.json").read_text())
    modules = inputs["making"]["kernel"].get("modules")
    assert modules is None if name == "bcachefs" else set(modules) == {"spl.ko", "zfs.ko"}
    free = [one["value"] for one in first["samples"] if one["metric"] == "free_bytes"]
    assert free and None not in free
    [again] = run(str(path), "--kernel", "6.12", "--fresh")
    assert (again["inputs_key"], again["digest"]) == (first["inputs_key"], first["digest"])


def test_a_run_with_built_modules_is_packed_without_its_image_alone(tmp_path: Path) -> None:
    path = scenario(tmp_path, STEPS, "openzfs")
    run(str(path), "--kernel", "6.12")
    made = str(newest(path))
    done = agelab("capsule", "pack", made, "-o", str(tmp_path / "a.capsule"), "--with-image")
    assert done.returncode == 2 and "openzfs are built on each host, and not passed on" in done.stderr
    done = agelab("capsule", "pack", made, "-o", str(tmp_path / "a.capsule"))
    assert done.returncode == 0, done.stderr
