"""agelab as a library: the options of a run, and running them."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import agelab
from agelab.base.errors import InputError
from agelab.cli.age import age
from agelab.cli.calibrate import calibrate
from agelab.cli.run import run
from agelab.machine.disk import parse
from agelab.results.result import Status
from agelab.runner.execute import runner
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import RunRequest, resolve
from tests.build import aging_runs, run_builder, study_runs

PROJECT = Path(__file__).parents[3]
SMALL = str(Path(__file__).parents[2] / "vm" / "small.toml")


def test_wrong_options_are_all_named_at_once_and_nothing_is_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong: dict[str, Any] = {"seeds": "1,x", "jobs": 0, "layout": "radi0", "vcpus": "many", "sedes": (1,)}
    with pytest.raises(InputError) as raised:
        agelab.run(agelab.RunOptions(name="aging-ext4", **wrong), home=tmp_path / "home")
    assert str(raised.value).splitlines() == [
        "--seeds '1,x': run seeds are whole numbers separated by commas, like 1,2,3 or 1-3",
        "no layout 'radi0'; did you mean raid0, raid5, raid1?",
        "--vcpus 'many': input should be a valid integer",
        "--jobs 0: 1 to 256 cells at a time, or auto",
        "no option of a run 'sedes'; did you mean seeds, schedule, design?",
    ]
    assert not (tmp_path / "home").exists() and capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "aging-ext5"}, "no variant 'ext5' in aging; did you mean ext"),
        ({"name": SMALL, "curve": True}, "scenario small has no"),
        ({"name": "aging", "directory": "/nowhere"}, "/nowhere, which is not there any more"),
        ({}, "name a scenario, or a control file"),
    ],
)
def test_what_the_scenario_has_not_is_refused(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        agelab.run(RunOptions(**options), home=tmp_path)


def test_relative_drives_start_in_the_directory_of_the_options(tmp_path: Path) -> None:
    """A plan of an agelab that stored the drives as they were typed is resumed from elsewhere."""
    options = RunOptions.from_words(
        {"directory": str(tmp_path), "name": "aging-ext4", "options": {"disks": "file:a.img"}}
    )
    assert [drive.name for drive in options.disks] == [str(tmp_path / "a.img")]
    assert options.changed(directory="/").disks == options.disks


def test_an_empty_word_is_an_option_that_is_not_given() -> None:
    words = {"scale": "", "clock": "", "defaults": "", "corpus": "", "machine": "", "erase": ""}
    options = RunOptions.from_words({"directory": "/", "name": "aging-ext4", "options": words})
    assert (options.scale, options.guest_clock, options.defaults) == (None, "virtual", None)
    assert resolve(options).scale == "quick"


def test_a_plan_whose_command_says_more_is_read() -> None:
    command = RunOptions(name="aging-ext4", jobs=3).to_plan() | {"younger": "field"}
    assert RunOptions.from_plan(run_builder.plan(command=command)).jobs == 3


def test_a_home_that_qemu_cannot_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="would misread a path with ' '"):
        agelab.run(RunOptions(name="aging-ext4"), home=tmp_path / "my store")


@pytest.mark.parametrize(
    ("verb", "words", "options"),
    [
        (run, ["aging-ext4"], RunOptions(name="aging-ext4")),
        (
            run,
            [
                "aging", "--filesystem", "ext4,xfs", "--seeds", "3,1", "--scale", "paper", "--jobs", "2",
                "--curve",
            ],
            RunOptions(name="aging", filesystem="ext4,xfs", seeds=(3, 1), scale="paper", jobs=2, curve=True),
        ),
        (
            run,
            ["aging-ext4", "--disks", "file:/x", "--erase", "A, B", "--vcpus", "2", "--kernel", "5.10"],
            RunOptions(
                name="aging-ext4", disks=(parse("file:/x"),), erase=("A", "B"), vcpus=2, kernel="5.10"
            ),
        ),
        (
            run,
            ["aging-ext4", "--layout", "raid1", "--fail", "1@copy"],
            RunOptions(name="aging-ext4", layout="raid1", fail="1@copy"),
        ),
        (run, ["aging-ext4", "--jobs", "auto"], RunOptions(name="aging-ext4", jobs="auto")),
        (age, ["aging-ext4"], RunOptions(name="aging-ext4", keep_disk=True, measure=False)),
        (calibrate, ["aging-ext4"], RunOptions(name="aging-ext4", seeds=(1, 2, 3, 4, 5))),
    ],
)  # fmt: skip
def test_a_command_line_and_the_library_make_the_same_request(
    verb: Any, words: list[str], options: RunOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[RunRequest] = []

    def run_request(request: RunRequest, *_: object, **__: object) -> None:
        asked.append(request)
        raise InputError("asked")

    monkeypatch.setattr(runner, "run_request", run_request)
    with pytest.raises(InputError, match="asked"):
        CliRunner().invoke(verb, words, catch_exceptions=False)
    with pytest.raises(InputError, match="asked"):
        agelab.run(options)
    assert asked == [resolve(options)] * 2
    assert RunOptions.from_words(options.to_plan()) == options


def test_a_plan_of_an_older_agelab_is_read(tmp_path: Path) -> None:
    command: dict[str, Any] = {
        "directory": str(tmp_path),
        "name": "aging-ext4",
        "options": {
            **{"kernel": "6.1", "seeds": "2,1", "disks": None, "erase": "", "gone": None, "jobs": 2},
            "keep_disk": True,
        },
    }
    options = RunOptions.from_plan(run_builder.plan(command=command))
    assert options == RunOptions(
        directory=str(tmp_path), name="aging-ext4", kernel="6.1", seeds=(2, 1), jobs=2, keep_disk=True,
        of_plan=True,
    )  # fmt: skip
    command["options"]["gone"] = "x"
    with pytest.raises(InputError, match="begun with --gone, which this agelab does not know"):
        RunOptions.from_plan(run_builder.plan(command=command))
    with pytest.raises(InputError, match="does not say what was asked for"):
        RunOptions.from_plan(run_builder.plan(command={}))


def test_a_control_file_is_named_once_in_a_plan() -> None:
    options = RunOptions(control="mine/control.ctl", device="/dev/hda3")
    assert options.to_plan()["name"] == "mine/control.ctl"
    assert RunOptions.from_words(options.to_plan()) == options


def test_the_package_imports_nothing_before_it_is_used() -> None:
    said = "import sys, agelab; print(sorted({'pydantic', 'pandas', 'click', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    with pytest.raises(AttributeError, match="has no attribute 'runs'"):
        _ = agelab.runs  # type: ignore[attr-defined]


def test_the_package_has_five_names() -> None:
    assert agelab.__all__ == ["Progress", "RunOptions", "find", "load", "run"]
    assert dir(agelab) == sorted([*agelab.__all__, "__version__"])
    assert all(hasattr(agelab, name) for name in agelab.__all__)


def test_a_run_says_how_its_cells_ended_and_under_which_key(home: Path) -> None:
    seeds = range(1, 7)
    name = aging_runs.make(home, {"ext4": 1.5, "xfs": 1.2}, seeds=seeds, statuses={"ext4": Status.HUNG}, unfinished=1)
    run = agelab.find(name[:-1])
    key = run.end(0)
    assert key and key.inputs_key
    lines = repr(run).splitlines()
    assert lines[:2] == [f"{name}: 12 cells", f"  ext4, seed 1: hung, {key.inputs_key[:19]}..."]
    assert len(lines) == 12 and lines[-1] == "  and 2 more"
    assert agelab.find(home=home).name == name
    (run.path / "cells/3/end.json").write_text("{")
    assert repr(run).startswith(f"{name}: ") and "end.json" in repr(run)
    with pytest.raises(InputError, match="no run 'nothing'"):
        agelab.find("nothing")


def test_the_notebook_runs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = {"ext4": {"copy": 1.0, "read": 2.0, "remove": 3.0}, "xfs": {"copy": 4.0, "read": 5.0, "remove": 6.0}}
    asked: list[RunOptions] = []

    def run(options: RunOptions, *_: object) -> Any:
        asked.append(options)
        return agelab.find(study_runs.make(home, "ten-lines", times, seeds=len(options.seeds)))

    monkeypatch.setattr(runner, "run", run)
    monkeypatch.chdir(PROJECT)
    names: dict[str, Any] = {}
    shown = []
    for cell in json.loads((PROJECT / "docs/library.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            *body, last = ast.parse("".join(cell["source"])).body
            assert isinstance(last, ast.Expr), "a cell ends with what it shows"
            exec(compile(ast.Module(body, []), "cell", "exec"), names)
            shown.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
    assert len(resolve(asked[0]).planned()) == 6
    assert repr(shown[0]).splitlines()[1].startswith("  ext4, seed 1: ok, ")
    assert [len(shown[1]), *shown[2]["ext4"].round(2)] == [3, 1.0, 2.0, 3.0]


WITHOUT_PANDAS = """
import importlib, pkgutil, sys
sys.modules["pandas"] = None  # its import fails
import agelab
from agelab.base.errors import HostError
for module in pkgutil.walk_packages(agelab.__path__, "agelab."):
    if module.name.startswith("agelab.share"):
        continue
    importlib.import_module(module.name)
try:
    agelab.load()
except HostError as error:
    print(error, error.hint, sep="|")
"""


def test_only_load_needs_pandas() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_PANDAS], capture_output=True, text=True, check=False)
    assert done.stdout == (
        "agelab.load makes a pandas frame, and pandas is not installed|"
        "install it beside agelab: pip install 'agelab[pandas]', in a clone .venv/bin/pip install pandas\n"
    ), done.stderr
