"""Results over time: lines over kernels or dates, judged as everywhere; what differs otherwise is never joined."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agelab.capsule.pack import pack
from agelab.cli import main
from agelab.results.result import RunKernel, Status
from agelab.results.run_directory import RunDirectory
from agelab.store.artefacts import Store
from tests.build import hostile_runs, run_builder
from tests.build.capsule_builder import made_run


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(
    home: Path,
    kernel: str,
    values: dict[str, list[float]],
    *,
    moment: str = "",
    spec: str = "",
    inputs: dict[str, Any] | None = None,
    **fields: Any,
) -> str:
    """A run on that kernel: variant to its seconds to copy with run seeds 1, 2, ...; begun at a moment."""
    booted = RunKernel(spec=spec or f"debian:{kernel}", release=kernel, version=f"{kernel}-1")
    measured = [
        (variant, seed, took) for variant, all_took in values.items() for seed, took in enumerate(all_took, 1)
    ]
    cells = [run_builder.cell(variant, seed, kernel=kernel) for variant, seed, _ in measured]
    run = run_builder.begin(home, cells, **{"scenario": "small", "kernel": booted, **fields})
    for number, (*_, took) in enumerate(measured):
        run_builder.end(run, number, [run_builder.sample("copy", took)], inputs=inputs or {})
    if moment:
        plan = run.plan()
        run = RunDirectory(run.path.rename(run.path.with_name(f"{moment}-small")))
        run.write_plan(plan.model_copy(update={"run": run.name}))
    return run.name


def seeds(middle: float, apart: float = 0.001) -> list[float]:
    return [middle * (1 + apart * step) for step in (-2, -1, 0, 1, 2)]


def lines(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    """What --json says of each group of runs."""
    assert main(["history", *words, "--metric", "copy:elapsed", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == 1
    return list(found["lines"])


def told(group: dict[str, Any], subject: str = "ext4") -> list[tuple[str, str | None, bool]]:
    return [
        (row["point"], row["verdict"], row["change_point"])
        for row in group["rows"]
        if row["subject"] == subject
    ]


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["history", *words]) == 2
    err = capsys.readouterr().err
    assert not Path("history.html").exists()
    return err


def test_a_change_point_is_exactly_where_the_judge_says_a_difference(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    middles = {"6.12.1": 2.0, "5.10.3": 1.0, "6.1.9": 1.0005, "6.6.2": 1.06}
    spread = {"6.6.2": 0.06}
    names = [
        made(home, kernel, {"ext4": seeds(middle, spread.get(kernel, 0.001)), "xfs": seeds(3.0)})
        for kernel, middle in middles.items()
    ]
    [group] = lines(capsys, *names)
    assert told(group) == [
        ("5.10.3", None, False),
        ("6.1.9", "the same", False),
        ("6.6.2", "not known", False),
        ("6.12.1", "higher", True),
    ]
    assert [one[1:] for one in told(group, "xfs")] == [(None, False), *[("equal", False)] * 3]
    judged = {}
    assert main(["sweep", *names, "--metric", "copy:elapsed", "--json"]) == 0
    for row in json.loads(capsys.readouterr().out)["rows"]:
        judged[row["variant"], row["kernel"]] = row["verdict"]
    assert judged == {(row["subject"], row["point"]): row["verdict"] for row in group["rows"]}


def test_the_page_marks_change_points_and_tells_not_known_from_the_same(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = {"5.10.3": seeds(1.0), "6.1.9": seeds(1.0005), "6.6.2": seeds(1.06, 0.06), "6.12.1": seeds(2.0)}
    names = [made(home, kernel, {"ext4": took}) for kernel, took in values.items()]
    assert main(["history", *names, "--metric", "copy:elapsed", "-o", "page.html"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("1 change point among 3 pairs of neighbours; 1 the same, 1 not known.")
    assert "* ext4: copy, elapsed: slower on 6.12.1 than on 6.6.2, " in out
    page = Path("page.html").read_text()
    assert "1 change point among 3 pairs of neighbours; 1 the same, 1 not known." in page
    [chart] = re.findall(r'<div class="drawn".*?</svg>', page, re.DOTALL)
    hollow = re.findall(r'<path[^>]*fill="var\(--paper\)"', chart)
    triangles = [
        path
        for path in re.findall(r'<path[^>]* d="(M[^"]*Z)"', chart)
        if path.count("L") == 2 and "A" not in path
    ]
    assert (len(hollow), len(triangles)) == (1, 1)
    assert "not known: " in page and ">the same</td>" in page and ">slower</td>" in page


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"provenance": {"harness": "b" * 64}}, "harness bbbbbbbbbbbb | not stated"),
        ({"provenance": {"qemu": "QEMU 10"}}, "QEMU 10 | not stated"),
        ({"provenance": {"scenario": "c" * 64}}, "steps of the scenario cccccccccccc | not stated"),
        ({"provenance": {"corpus_sha256": "d" * 64}}, "data"),
    ],
)
def test_runs_made_with_something_else_are_on_lines_of_their_own(
    home: Path, capsys: pytest.CaptureFixture[str], fields: dict[str, Any], why: str
) -> None:
    base: dict[str, Any] = {"provenance": {"corpus_sha256": "e" * 64}} if why == "data" else {}
    names = [made(home, kernel, {"ext4": seeds(1.0)}, **base) for kernel in ("5.10.3", "6.1.9")]
    names.append(made(home, "6.12.1", {"ext4": seeds(2.0)}, **fields))
    both = lines(capsys, *names)
    assert [group["points"] for group in both] == [["5.10.3", "6.1.9"], ["6.12.1"]]
    assert not any(row["change_point"] for group in both for row in group["rows"])
    assert main(["history", *names]) == 0
    said = f"{names[2]} | {names[0]}, {names[1]}: {why}"
    assert (
        f"apart: {said}" in " ".join(capsys.readouterr().out.split())
        and said in Path("history.html").read_text()
    )
    Path("history.html").unlink()
    assert f"no two of these runs belong on one line: {names[2]} | {names[0]}: {why}" in refused(
        capsys, names[0], names[2]
    )


def test_the_packages_of_the_guest_are_a_condition_and_the_kernel_in_the_image_is_none(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(home)
    names = [made_run(store).name for _ in range(2)]
    [group] = lines(capsys, *names, "--by", "date")
    assert len(group["conditions"]["packages of the guest"]) == 64
    Path("history.html").unlink()
    made_of = home / "runs" / names[1] / "made-of.json"
    made_of.write_text(made_of.read_text().replace('"coreutils"', '"otherutils"'))
    assert "packages of the guest" in refused(capsys, *names, "--by", "date")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("machine", "machine's file"),
        ("qemu", "QEMU's files"),
        ("tools", "guest's programs"),
        ("drive_module", "drive's sources"),
    ],
)
def test_other_files_below_the_same_names_make_another_subject(
    home: Path, capsys: pytest.CaptureFixture[str], name: str, said: str
) -> None:
    names = [
        made(home, kernel, {"ext4": seeds(1.0)}, inputs={"making": {name: {"sources": at}, "drives": 7}})
        for kernel, at in (("5.10.3", 1), ("6.1.9", 1), ("6.12.1", 2))
    ]
    [group] = lines(capsys, *names)
    subjects = list(dict.fromkeys(row["subject"] for row in group["rows"]))
    assert len(subjects) == 2 and all(said in one for one in subjects)
    assert [len(told(group, one)) for one in subjects] == [2, 1]


def test_other_scenarios_are_parts_of_their_own(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [
        made(home, kernel, {"ext4": seeds(1.0)}, scenario=scenario)
        for scenario in ("small", "large")
        for kernel in ("5.10.3", "6.1.9")
    ]
    assert [group["scenario"] for group in lines(capsys, *names)] == ["small", "large"]
    assert re.findall(r"<h1[^>]*>(.*?)</h1>", Path("history.html").read_text()) == [
        "small over kernels",
        "large over kernels",
    ]


def test_dates_are_in_the_order_of_time_and_a_day_with_two_runs_says_the_hour(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moments = {"20261103-101500": 1.0, "20261102-090000": 1.0, "20261103-181500": 2.0, "20261009-000000": 1.0}
    names = [
        made(home, "6.1.9" if took < 2 else "6.1.10", {"ext4": seeds(took)}, moment=moment, spec="debian:6.1")
        for moment, took in moments.items()
    ]
    [group] = lines(capsys, *names, "--by", "date")
    assert told(group) == [
        ("2026-10-09", None, False),
        ("2026-11-02", "equal", False),
        ("2026-11-03 10:15", "equal", False),
        ("2026-11-03 18:15", "higher", True),
    ]


def test_over_dates_kernels_that_were_asked_for_by_other_names_are_lines_of_their_own(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [("debian:6.1", "6.1.9"), ("debian:6.12", "6.12.1"), ("debian:6.1", "6.1.10")]
    names = [
        made(home, kernel, {"ext4": seeds(1.0)}, spec=spec, moment=f"2026110{day}-000000")
        for day, (spec, kernel) in enumerate(runs, 1)
    ]
    [group] = lines(capsys, *names, "--by", "date")
    assert [one[0] for one in told(group, "ext4 debian:6.1")] == ["2026-11-01", "2026-11-03"]
    assert [one[0] for one in told(group, "ext4 debian:6.12")] == ["2026-11-02"]


def test_capsules_stand_apart_by_their_origin_and_are_in_no_judgement_of_ours(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(home)
    runs = [made_run(store) for _ in range(2)]
    for name, run in zip(("a", "b"), runs, strict=True):
        pack(run, store, home / f"{name}.capsule")
    words = [runs[0].name, runs[1].name, "ann=a.capsule", "ann=b.capsule", "b.capsule"]
    ours, anns, others = lines(capsys, *words, "--by", "date")
    assert [one["origin"] for one in (ours, anns, others)] == [None, "ann", "a host that it does not name"]
    assert [len(one["points"]) for one in (ours, anns, others)] == [2, 2, 1]
    assert "capsules of ann" in Path("history.html").read_text()
    assert lines(capsys, *words[:2], "--by", "date") == [ours]


def test_a_capsule_that_is_not_sound_is_one_line(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(home)
    run = made_run(store)
    path = pack(run, store, home / "a.capsule").path
    path.write_bytes(path.read_bytes().replace(b"coreutils", b"otherutil"))
    assert "a.capsule is not a valid capsule: " in refused(capsys, run.name, "ann=a.capsule")
    assert "no.capsule cannot be read: No such file" in refused(capsys, run.name, "no.capsule")


def test_what_is_not_ok_is_on_no_line_and_is_said(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [made(home, kernel, {"ext4": seeds(1.0)}) for kernel in ("5.10.3", "6.1.9")]
    booted = RunKernel(spec="debian:6.12", release="6.12.1", version="6.12.1-1")
    cells = run_builder.cells(["ext4"], [1, 2, 3])
    run = run_builder.begin(home, cells, scenario="small", kernel=booted)
    run_builder.end(run, 0, [run_builder.sample("copy", 9.0)], status=Status.HUNG, inputs={}, reason="a task")
    with run.lock():
        [group] = lines(capsys, *names, run.name)
        assert [one[0] for one in told(group)] == ["5.10.3", "6.1.9"]
        assert group["left_out"] == [
            f"{run.name}, ext4, seed 1: hung: a task",
            f"{run.name}, ext4, seeds 2,3: the run is still going on",
        ]
    Path("history.html").unlink()
    assert f"no cell of {run.name} is ok" in refused(capsys, run.name)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "nothing to compare: no line has two kernels, there is 6.1.9"),
        (("--metric", "copy:elapsd"), "nothing to compare"),
        (("--by", "date"), "nothing to compare: no line has two dates, there is "),
        (("--by", "hour"), "'hour' is not one of 'kernel', 'date'"),
        (("nosuch",), "no run 'nosuch'"),
        (("-o", "/nowhere/page.html"), "/nowhere is not a directory"),
    ],
)
def test_bad_input_is_one_line(
    home: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    name = made(home, "6.1.9", {"ext4": seeds(1.0)})
    err = refused(capsys, name, *words)
    assert said in err and len(err.splitlines()) <= 2 and "Traceback" not in err


def test_a_metric_that_nobody_measured_is_told_with_the_nearest(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [made(home, kernel, {"ext4": seeds(1.0)}) for kernel in ("5.10.3", "6.1.9")]
    assert "no metric 'copy:elapsd'; did you mean copy:elapsed" in refused(
        capsys, *names, "--metric", "copy:elapsd"
    )


def test_the_verbs_of_operation_histories_are_what_they_were(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", "chek", "log"]) == 2
    assert "no history command 'chek'; did you mean check?" in capsys.readouterr().err
    names = [made(home, kernel, {"ext4": seeds(1.0)}) for kernel in ("5.10.3", "6.1.9")]
    assert main(["history", "results", *names, "-o", "one.html"]) == 0
    assert main(["history", "--by", "kernel", *names, "-o", "two.html"]) == 0
    assert Path("one.html").read_bytes() == Path("two.html").read_bytes()


@pytest.mark.parametrize(
    "word", [hostile_runs.HOSTILE[name] for name in ("script", "end-of-script", "ansi", "bidi")]
)
def test_nothing_that_a_run_says_is_markup(home: Path, word: str) -> None:
    fields: dict[str, Any] = {"provenance": {"host": word, "qemu": word}}
    names = [
        made(home, f"{kernel}-{word}", {word: seeds(took)}, **fields) for kernel, took in (("5", 1), ("6", 2))
    ]
    assert main(["history", *names]) == 0
    page = Path("history.html").read_text()
    assert word not in page and "\x1b" not in page and "\u202e" not in page
    assert page.count("<script") == 1 and "<img" not in page


def test_many_kernels_have_a_label_each_few_columns_and_the_same_bytes_twice(home: Path) -> None:
    names = [
        made(home, f"6.{minor}.1", {"ext4": seeds(1 + minor / 10), "xfs": seeds(2)}) for minor in range(1, 25)
    ]
    pages = []
    for _ in range(2):
        assert main(["history", *names, "--metric", "copy:elapsed"]) == 0
        pages.append(Path("history.html").read_bytes())
    assert pages[0] == pages[1]
    [chart] = re.findall(r'<div class="drawn".*?</svg>', pages[0].decode(), re.DOTALL)
    assert 5 <= len(re.findall(r">6\.\d+\.1</text>", chart)) <= 10
