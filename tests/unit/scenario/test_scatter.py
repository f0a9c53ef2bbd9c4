"""A companion disk that lies scattered: how its tree is copied, and what a scenario and ``--source`` may say of it."""

import filecmp
import itertools
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agelab.base.errors import InputError
from agelab.runner.execute import companion_disk
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import cell_requests, resolve
from agelab.scenario.disk_use import Scatter
from harness import scatter

FILES = {f"{top}/{number}": bytes([number]) * (number * 700) for top in ("a", "b/c") for number in range(6)}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    top = tmp_path / "source"
    for name, content in FILES.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(content)
        os.utime(top / name, (1_000_000_000, 1_000_000_000))
    (top / "empty").mkdir()
    (top / "link").symlink_to("a/1")
    (top / "there").symlink_to("b")
    os.utime(top / "b", (1_100_000_000, 1_100_000_000))
    return top


def copied(source: Path, name: str, seed: int = 1, at_a_time: int = 3) -> Path:
    target = source.parent / name
    target.mkdir()
    scatter.scatter(source, target, seed, places=4, at_a_time=at_a_time, piece=512)
    return target


def same(one: Path, other: Path) -> bool:
    found = filecmp.dircmp(one, other)
    return not (found.left_only or found.right_only or found.diff_files or found.funny_files) and all(
        same(one / name, other / name) for name in found.common_dirs
    )


def test_the_copy_is_the_tree_and_nothing_else(source: Path) -> None:
    target = copied(source, "copy")
    assert same(source, target)
    assert sorted(path.name for path in target.iterdir()) == ["a", "b", "empty", "link", "there"]
    assert [str((target / name).readlink()) for name in ("link", "there")] == ["a/1", "b"]
    assert (target / "a/3").stat().st_mtime == 1_000_000_000 and (target / "b").stat().st_mtime == 1_100_000_000


def written(source: Path, monkeypatch: pytest.MonkeyPatch, name: str, **how: int) -> list[str]:
    """Return which file each piece was synced of, by its descriptor's path."""
    order: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda file: order.append(str(Path(f"/proc/self/fd/{file}").readlink())))
    target = copied(source, name, **how)
    return [str(Path(path).relative_to(target)) for path in order]


def test_files_grow_side_by_side_in_an_order_that_the_seed_decides(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, again, other = (
        written(source, monkeypatch, name, seed=seed) for name, seed in (("x", 1), ("y", 1), ("z", 2))
    )
    assert first == again != other
    assert len(first) == sum(-(-len(content) // 512) for content in FILES.values())
    alone = written(source, monkeypatch, "w", at_a_time=1)
    assert changes(alone) == len(set(alone)) - 1 < changes(first)
    assert len({Path(path).parent for path in first}) == 4


def changes(order: list[str]) -> int:
    return sum(one != following for one, following in itertools.pairwise(order))


def cell(name: str, **more: Any) -> CellSpec:
    request = resolve(RunOptions(name=name, **more))
    return cell_requests(request, 16, (), None)[0].spec


def test_the_source_is_pristine_unless_it_is_asked_for() -> None:
    steps = {
        state: companion_disk.companion_scenario(cell("fedorchuk-2008", source=state).scenario).actions()
        for state in (None, "pristine", "scattered")
    }
    assert steps[None] == steps["pristine"] == [companion_disk.COPY]
    [step] = steps["scattered"]
    assert step.run.endswith("--places 64 --at-a-time 8 --piece 262144")


def test_a_scenario_without_a_companion_disk_has_no_source() -> None:
    with pytest.raises(InputError, match="--source: scenario aging has no companion disk"):
        cell("aging", source="scattered")


def test_every_figure_beyond_its_limits_is_told() -> None:
    wrong = {name: {"value": 0, "origin": "estimated"} for name in ("places", "at_a_time", "piece_kib")}
    with pytest.raises(ValidationError) as error:
        Scatter.model_validate(wrong)
    assert "places is 0, and not 1 to 4096; at_a_time is 0, and not 1 to 256; piece_kib" in str(error.value)
