"""What cannot be asked of agelab crash is one line, before any guest boots."""

from pathlib import Path

import pytest

from agelab import cli


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
        (["replay", "nothing", "first"], "'first' is no name of a state"),
    ],
)
def test_what_cannot_be_asked_is_said_in_one_line(
    argv: list[str],
    message: str,
    home: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["crash", *argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err.splitlines()[0]
    assert len(err.splitlines()) <= 2
    assert list(home.iterdir()) == []
