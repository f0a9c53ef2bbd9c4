"""A directory of executables becomes a scenario whose cells do one test each."""

from pathlib import Path

import pytest

from agelab.base.errors import InputError
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import resolve
from agelab.scenario import suite


def make(directory: Path, *names: str) -> Path:
    directory.mkdir(exist_ok=True)
    for name in names:
        (directory / name).write_text("#!/bin/sh\n")
        (directory / name).chmod(0o755)
    return directory


def test_each_cell_does_one_test_with_one_seed(tmp_path: Path) -> None:
    place = make(tmp_path / "My Suite".replace(" ", "_"), "Lost_Update.sh", "b")
    (place / "notes").write_text("no test")
    (place / "lib").mkdir()
    chosen = suite.read(place)
    assert [(test.file, test.case) for test in chosen.tests] == [("Lost_Update.sh", "lost_update-sh"), ("b", "b")]
    file = tmp_path / f"{chosen.name}.toml"
    file.write_text(chosen.scenario(["ext4", "xfs"], 30, 512, 256))
    cells = resolve(RunOptions(name=str(file), seeds=(3, 4))).planned()
    assert [(cell.variant.name, cell.run_seed) for cell in cells][:4] == [
        ("ext4-lost_update-sh", 3),
        ("ext4-lost_update-sh", 4),
        ("ext4-b", 3),
        ("ext4-b", 4),
    ]
    steps = [[step.name for step in cell.scenario.actions()] for cell in cells]
    assert steps == [["lost_update-sh"]] * 2 + [["b"]] * 2 + [["lost_update-sh"]] * 2 + [["b"]] * 2
    assert cells[0].scenario.actions()[0].run == 'exec run-test --timeout 30 "$BROUGHT"/My_Suite/Lost_Update.sh'


def test_a_program_is_a_suite_of_one_test(tmp_path: Path) -> None:
    program = make(tmp_path, "fsx") / "fsx"
    text = suite.read(program).scenario(["ext4"], 60, 512, 256)
    assert 'arguments = "--timeout 60 fsx"' in text and f'bring = ["{program}"]' in text


def test_only_some_tests(tmp_path: Path) -> None:
    chosen = suite.read(make(tmp_path, "a", "b"))
    assert [test.file for test in chosen.only(["b"]).tests] == ["b"]
    with pytest.raises(InputError, match="no test 'c'"):
        chosen.only(["c"])


@pytest.mark.parametrize(
    ("names", "executable", "why"),
    [
        ((), True, "no file directly in it is executable"),
        (("a",), False, "no file directly in it is executable"),
        (("A", "a"), True, "A and a would both be called a: rename one"),
    ],
)
def test_what_is_no_suite_is_told(tmp_path: Path, names: tuple[str, ...], executable: bool, why: str) -> None:
    place = make(tmp_path / "suite", *names)
    for name in names:
        (place / name).chmod(0o755 if executable else 0o644)
    with pytest.raises(InputError, match=why):
        suite.read(place)


def test_a_suite_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it is not there"):
        suite.read(tmp_path / "nothing")


def test_known_failures_are_read_by_name(tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    file.write_text('[expect]\n"lost-update" = "no lock"\n"xfs: generic/4*" = "no room"\n')
    known = suite.read_expected(file)
    assert [known.why(name) for name in ("lost-update", "xfs: generic/475", "xfs: generic/5")] == [
        "no lock",
        "no room",
        None,
    ]
    file.write_text('[expected]\n"a" = "b"\n')
    with pytest.raises(InputError, match=r"known.toml: expected"):
        suite.read_expected(file)
