"""Options of a matrix are tried with mkfs before the first cell: what it refuses is said in its own words."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agelab.base import process
from agelab.base.errors import InputError, silent
from agelab.machine.image import Image
from agelab.runner.plan.cell_spec import CellSpec
from agelab.runner.plan.guest_plan import unsupported
from agelab.runner.prepare import mkfs_trial
from agelab.runner.prepare.mkfs_trial import try_options
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import planned_cells
from agelab.store.artefacts import Store

IMAGE = cast(Image, SimpleNamespace(root=Path("root.squashfs")))


@pytest.fixture(autouse=True)
def this_hosts_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host's own root, and with it its mke2fs, in place of an image's."""

    def run(argv: list[str], **how: Any) -> process.Completed:
        if argv[0] == "unsquashfs":
            Path(argv[argv.index("-d") + 1]).symlink_to("/")
            return process.Completed(0, "", "")
        return process.run(argv, **how)

    monkeypatch.setattr(mkfs_trial, "process", SimpleNamespace(run=run))


def tried(tmp_path: Path, options: str, name: str = "aging-ext4") -> dict[str, str]:
    """Variant to what mkfs said against it."""
    cells = planned_cells(RunOptions(name=name, options=options))
    return {one.variant.name: one.refused for one in try_options(cells, IMAGE, Store(tmp_path), silent)}


def test_options_that_mkfs_takes_are_no_news(tmp_path: Path) -> None:
    assert set(tried(tmp_path, "ext4:-O ^has_journal,-b 1024,noatime").values()) == {""}
    assert not list((tmp_path / "cache" / "trials").iterdir())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("ext4:-O ^has_jurnal", "options of ext4-no-has_jurnal: mkfs refuses them: Invalid filesystem"),
        ("ext4:-b 1000", "options of ext4-b-1000: mkfs refuses them: mke2fs: invalid block size - 1000"),
        ("ext4:-y 7", "mkfs refuses them: mke2fs: invalid option -- 'y'"),
    ],
)
def test_an_option_that_mkfs_never_takes_is_one_line_before_any_cell(tmp_path: Path, options: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        tried(tmp_path, options)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_each_option_that_mkfs_never_takes_has_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        tried(tmp_path, "ext4:-b 1000|-b 500,-O ^has_journal,-O ^has_jurnal")
    lines = str(error.value).splitlines()
    assert [line.split(":")[0] for line in lines] == [
        f"options of ext4-{one}" for one in ("no-has_jurnal", "b-1000", "b-500")
    ]


def test_a_combination_of_options_that_are_taken_apart_is_unsupported_and_the_others_run(tmp_path: Path) -> None:
    cells = planned_cells(RunOptions(name="aging-ext4", options="ext4:-O ^extent,-O +64bit"))
    found = {one.variant.name: one for one in try_options(cells, IMAGE, Store(tmp_path), silent)}
    refused = [one for one in found.values() if one.refused]
    assert len(found) == 4 and [one.variant.name for one in refused] == ["ext4-no-extent-o-64bit"]
    why = "mkfs refuses its options: Extents MUST be enabled for a 64-bit filesystem."
    assert (unsupported(refused[0], IMAGE) or "").startswith(why)


def test_without_a_matrix_no_mkfs_is_tried(tmp_path: Path) -> None:
    assert tried(tmp_path, "ext4:noatime") == {"ext4": "", "ext4-noatime": ""}
    assert not (tmp_path / "cache" / "trials").exists()


def test_an_mkfs_that_makes_nothing_on_a_file_refuses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mkfs_trial, "mkfs", lambda spec, made_by: ["false"])
    assert set(tried(tmp_path, "ext4:-b 1000").values()) == {""}


def test_an_mkfs_that_is_told_to_be_quiet_is_asked_what_was_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def quiet(spec: CellSpec, made_by: str) -> list[str]:
        script = 'case "$*" in *none*) [ "$1" = -q ] || echo wrong features: none; exit 1; esac'
        return ["sh", "-c", script, "mkfs", "-q", *spec.variant.chosen_mkfs_options]

    monkeypatch.setattr(mkfs_trial, "mkfs", quiet)
    with pytest.raises(InputError, match="mkfs refuses them: wrong features: none"):
        tried(tmp_path, "ext4:-O none")
