"""What cannot be asked of agelab crash is one line, before any guest boots."""

from pathlib import Path

import pytest

from agelab.base.errors import InputError
from agelab.cli import crash
from agelab.runner.crash.crash import ANSWER, find
from agelab.runner.crash.oracle import Kind
from agelab.store.artefacts import Store
from tests.build.cli import Cli


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["one"], "Missing option '--filesystem'"),
        (["one", "--filesystem", "ext5"], "no filesystem 'ext5'; did you mean"),
        (["one", "--filesystem", "xfs", "--mib", "64"], "--mib 64: xfs needs a disk of 300 MiB at least"),
        (["one", "--filesystem", "zfs"], "agelab crash cannot take zfs: the kernel alone does not mount it"),
        (["creat x", "--filesystem", "ext4"], "'creat x' is no call that agelab makes"),
        (["missing.c", "--filesystem", "ext4"], "'missing.c' is no call that agelab makes"),
        (["replay", "nothing", "0:1"], "no crash run 'nothing'; there are none"),
        (["report", "latest"], "no crash run 'latest'; there are none"),
        (["sync", "--filesystem", "ext4", "--check", "no.c"], "--check no.c: there is no such file"),
    ],
)
def test_what_cannot_be_asked_is_said_in_one_line(argv: list[str], message: str, home: Path, cli: Cli) -> None:
    out, err = cli.run("crash", *argv, code=2)
    assert out == ""
    assert message in err.splitlines()[0]
    assert len(err.splitlines()) <= 2
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("kinds", "code"), [([], 0), ([Kind.MOUNT], 4), ([Kind.FSCK, Kind.CHECK], 1), ([Kind.MISSING], 1)]
)
def test_the_exit_code_says_whose_loss_it_is(kinds: list[Kind], code: int) -> None:
    assert crash._code(kinds) == code


def test_a_run_is_known_by_its_beginning_and_latest(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for name in ("20261128-010203-ext4", "20261128-020304-xfs"):
        (store.crashes / name).mkdir(parents=True)
        (store.crashes / name / ANSWER).touch()
    (store.crashes / "20261128-030405-xfs").mkdir()  # it has not ended
    assert find(store, "latest") == find(store, "20261128-02") == "20261128-020304-xfs"
    with pytest.raises(InputError, match="several crash runs '20261128'"):
        find(store, "20261128")


def test_a_run_is_known_by_its_name_where_another_was_begun_in_the_same_second(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for name in ("20261128-010203-ext4", "20261128-010203-ext4-1"):
        (store.crashes / name).mkdir(parents=True)
        (store.crashes / name / ANSWER).touch()
    assert find(store, "20261128-010203-ext4") == "20261128-010203-ext4"
    assert find(store, "20261128-010203-ext4-") == "20261128-010203-ext4-1"
