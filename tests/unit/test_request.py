"""Options of run and age that do not go together are refused before anything is done."""

from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from agelab.cli.age import age
from agelab.cli.options import open_store
from agelab.cli.request import request
from agelab.cli.run import run
from agelab.errors import InputError
from agelab.image import DoesNotBoot
from agelab.runner.execute import runner
from agelab.runner.progress import Progress
from agelab.runner.request.run_request import RunRequest

SMALL = str(Path(__file__).parents[1] / "vm" / "small.toml")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["aging-ext4", "--disks", "file:/x", "--keep-disk"], "--keep-disk: file:/x.* is a real disk"),
        (["aging-ext4", "--disks", "file:/x", "--disk", "ab"], "--disk: file:/x.* is a real disk"),
        (["aging-ext4", "--disks", "file:/x", "--curve"], "--curve: file:/x.* is a real disk"),
        (["aging-ext4", "--disk", "ab", "--curve"], "--disk starts from a disk .* --curve has nothing to do"),
        (["aging-ext4", "--disk", "ab", "--keep-disk"], "--keep-disk has nothing to do"),
        ([SMALL, "--curve"], r"scenario small has no \[curve\]"),
        (
            ["aging-ext4", "--disks", "file:/x", "--jobs", "2"],
            "--jobs 2: a real disk serves one cell at a time",
        ),
        (["aging-ext4", "--jobs", "0"], "--jobs 0: 1 to"),
    ],
)
def test_what_does_not_go_together_is_refused(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "carry_out", None)
    with pytest.raises(InputError, match=said):
        CliRunner().invoke(run, words, catch_exceptions=False)


def test_images_of_several_kernels_prove_what_is_measured_and_a_run_of_them_is_resumed_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[RunRequest] = []

    def execute_all(wanted: Sequence[RunRequest]) -> list[object]:
        seen.extend(wanted)
        raise InputError("seen")

    def execute(wanted: RunRequest) -> object:
        seen.append(wanted)
        raise InputError("seen")

    monkeypatch.setattr("agelab.cli.run.execute_all", execute_all)
    monkeypatch.setattr("agelab.cli.run.execute", execute)
    for kernels in (["--kernel", "5.10", "--kernel", "6.1"], ["--kernel", "6.1"]):
        with pytest.raises(InputError, match="seen"):
            CliRunner().invoke(run, ["aging-ext4", *kernels], catch_exceptions=False)
    assert [one.prove_all for one in seen] == [False, False, True]
    said = seen[0].command
    assert request(said["name"], said["words"], **said["more"]) == seen[0]


def test_a_sweep_goes_on_without_a_kernel_that_is_unfit_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def make_ready(wanted: RunRequest, *_: object) -> object:
        raise DoesNotBoot("packer build failed") if wanted.kernel.endswith("5.10") else InputError("seen")

    said: list[str] = []
    monkeypatch.setattr(runner, "prepare", make_ready)

    class Said(Progress):
        def stage(self, line: str) -> None:
            said.append(line)

    words = {str(option.name): option.get_default(click.Context(run)) for option in run.params}
    requests = [request("aging-ext4", {**words, "kernel": kernel}) for kernel in ("5.10", "6.1")]
    with pytest.raises(InputError, match="seen"):  # what is wrong with the user's words ends all of it
        runner.carry_out_all(requests, open_store(), Said())
    assert said == ["kernel debian:5.10 is left out: packer build failed"]
    [why] = runner.carry_out_all(requests[:1], open_store(), Said())
    assert isinstance(why, DoesNotBoot)
    with pytest.raises(DoesNotBoot):
        runner.carry_out(requests[0], open_store(), Said())


def test_a_sweep_of_which_a_kernel_is_left_out_is_not_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr("agelab.cli.run.execute_all", lambda wanted: ["run", DoesNotBoot("no word")])
    monkeypatch.setattr("agelab.cli.sweep.swept", lambda runs, unfit: told.extend((*runs, *unfit)))
    done = CliRunner().invoke(
        run, ["aging-ext4", "--kernel", "6.1", "--kernel", "5.10"], standalone_mode=False
    )
    assert done.return_value == 1
    assert told[0] == "run" and str(told[1]) == "('debian:5.10', DoesNotBoot('no word'))"


def test_a_real_disk_is_not_aged_into_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "carry_out", None)
    with pytest.raises(InputError, match=r"^file:/x.* is a real disk"):
        CliRunner().invoke(age, ["aging-ext4", "--disks", "file:/x"], catch_exceptions=False)
