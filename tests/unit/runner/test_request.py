"""Options of run and age that do not go together are refused before anything is done."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from agelab.base.errors import InputError
from agelab.cli import agelab
from agelab.cli.age import age
from agelab.cli.options import open_store
from agelab.cli.run import run
from agelab.kernel.spec import KINDS
from agelab.machine.disk import parse
from agelab.machine.image import DoesNotBoot
from agelab.runner.execute import runner
from agelab.runner.prepare import input_data
from agelab.runner.prepare.parts import MadeParts
from agelab.runner.progress import Progress
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import RunRequest

SMALL = str(Path(__file__).parents[2] / "vm" / "small.toml")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["aging-ext4", "--disks", "file:/x", "--keep-disk"], "--keep-disk: file:/x.* is a real disk"),
        (["aging-ext4", "--disks", "file:/x", "--disk", "ab"], "--disk: file:/x.* is a real disk"),
        (["aging-ext4", "--disks", "file:/x", "--curve"], "--curve: file:/x.* is a real disk"),
        (["aging-ext4", "--disk", "ab", "--curve"], "--disk starts from a finished disk: --curve has nothing to do"),
        (["aging-ext4", "--disk", "ab", "--keep-disk"], "--keep-disk has nothing to do"),
        ([SMALL, "--curve"], r"scenario small has no \[curve\]"),
        (["aging-ext4", "--disks", "file:/x", "--jobs", "2"], "--jobs 2: a real disk serves one cell at a time"),
    ],
)
def test_what_does_not_go_together_is_refused(words: list[str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "run_request", None)
    with pytest.raises(InputError, match=said):
        CliRunner().invoke(run, words, catch_exceptions=False)


@pytest.mark.parametrize("jobs", ["0", "257", "-1", "many", "Auto", "1.5", ""])
@pytest.mark.parametrize("words", [["run", "aging-ext4"], ["resume"], ["capsule", "replay", "x"]])
def test_a_number_of_jobs_that_is_none_is_a_wrong_word(words: list[str], jobs: str) -> None:
    done = CliRunner().invoke(agelab, [*words, "--jobs", jobs])
    assert done.exit_code == 2
    assert f"Invalid value for '--jobs': {jobs!r}: 1 to 256 cells at a time, or auto" in done.output


def test_auto_jobs_on_a_real_disk_are_one_at_a_time_and_need_no_other_word() -> None:
    assert RunOptions(name="aging-ext4", disks=(parse("file:/x"),), jobs="auto").jobs == "auto"


def test_a_run_of_several_kernels_is_resumed_with_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[RunRequest] = []

    def run_all(requests: Sequence[RunRequest], *_: object) -> list[object]:
        seen.extend(requests)
        raise InputError("seen")

    monkeypatch.setattr(runner, "_run_all", run_all)
    monkeypatch.setattr(runner, "resolve_kernel", lambda spec, store, progress: None)
    for kernels in (["--kernel", "5.10", "--kernel", "6.1"], ["--kernel", "6.1"]):
        with pytest.raises(InputError, match="seen"):
            CliRunner().invoke(run, ["aging-ext4", *kernels], catch_exceptions=False)
    assert [one.kernel for one in seen] == ["debian:5.10", "debian:6.1", "debian:6.1"]
    assert RunOptions.from_words(seen[0].options.to_plan()) == seen[0].options


def test_a_sweep_goes_on_without_a_kernel_that_is_unfit_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare(wanted: RunRequest, *_: object) -> object:
        raise DoesNotBoot("packer build failed") if wanted.kernel.endswith("5.10") else InputError("seen")

    said: list[str] = []
    monkeypatch.setattr(runner, "prepare", prepare)
    monkeypatch.setattr(runner, "resolve_kernel", lambda spec, store, progress: None)

    class Said(Progress):
        def stage(self, line: str) -> None:
            said.append(line)

    options = RunOptions(name="aging-ext4", kernel="5.10")
    with pytest.raises(InputError, match="seen"):  # what is wrong with the user's words ends all of it
        runner.run_kernels(options, ["5.10", "6.1"], open_store(), Said())
    assert said == ["kernel debian:5.10 is left out: packer build failed"]
    [why] = runner.run_kernels(options, ["5.10"], open_store(), Said()).values()
    assert isinstance(why, DoesNotBoot) and len(said) == 1  # the caller says it, as the error
    with pytest.raises(DoesNotBoot):
        runner.run(options, open_store(), Said())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--kernel", "6.1", "--kernel", "debian:6.1"], "--kernel debian:6.1 is named twice"),
        (["--kernel", "6.1", "--kernel", "5.10", "--disk", "ab"], "several kernels take a scenario on modelled"),
    ],
)
def test_what_several_kernels_cannot_share_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        CliRunner().invoke(run, ["aging-ext4", *words], catch_exceptions=False)


def test_a_sweep_of_which_a_kernel_is_left_out_is_not_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr(
        "agelab.cli.run.execute_kernels", lambda *_: {"debian:6.1": "run", "debian:5.10": DoesNotBoot("no word")}
    )
    monkeypatch.setattr("agelab.cli.sweep.print_finished_sweep", lambda runs, unfit: told.extend((*runs, *unfit)))
    done = CliRunner().invoke(run, ["aging-ext4", "--kernel", "6.1", "--kernel", "5.10"], standalone_mode=False)
    assert done.return_value == 1
    assert told[0] == "run" and str(told[1]) == "('debian:5.10', DoesNotBoot('no word'))"


def test_a_real_disk_is_not_aged_into_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "run_request", None)
    with pytest.raises(InputError, match=r"^file:/x.* is a real disk"):
        CliRunner().invoke(age, ["aging-ext4", "--disks", "file:/x"], catch_exceptions=False)


def test_a_list_of_no_drives_is_not_the_machines_drives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "run_request", None)
    with pytest.raises(InputError, match="no drive ''"):
        CliRunner().invoke(run, ["aging-ext4", "--disks", ""], catch_exceptions=False)


@pytest.mark.parametrize("kernels", [["image:/nowhere/bzImage"], ["6.1", "image:/nowhere/bzImage"]])
def test_a_wrong_kernel_is_told_before_any_data_are_made(
    kernels: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(input_data, "corpora", None)
    monkeypatch.setattr(input_data, "user_corpus", None)
    kinds: dict[str, object] = {**KINDS}
    kinds["debian"] = lambda *_, **__: None
    monkeypatch.setattr("agelab.kernel.spec.KINDS", kinds)
    for of_the_mirror in ("require", "begin"):
        monkeypatch.setattr(MadeParts, of_the_mirror, lambda *_, **__: None)
    words = [word for kernel in kernels for word in ("--kernel", kernel)]
    with pytest.raises(InputError, match="cannot read '/nowhere/bzImage': No such file"):
        CliRunner().invoke(run, ["aging-ext4", *words], catch_exceptions=False)


def test_data_that_are_not_there_are_told_before_a_kernel_is_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("agelab.kernel.resolve", None)
    with pytest.raises(InputError, match="/nowhere is not there"):
        CliRunner().invoke(run, ["aging-ext4", "--corpus", "/nowhere"], catch_exceptions=False)
