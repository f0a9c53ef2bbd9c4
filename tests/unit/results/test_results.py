"""Digests, ratios, comparisons and the run directory."""

import fcntl
import json
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agelab.analysis import cell_diff
from agelab.base.errors import InputError
from agelab.evaluate.derived_samples import repetition_ratios
from agelab.results import checksummed, run_lookup
from agelab.results.key_and_digest import digest, inputs_key
from agelab.results.result import End, Sample, Status
from agelab.results.run_directory import RunDirectory
from agelab.scenario.step import Ratio
from tests.build import run_builder

RATIO = Ratio(name="throughput_ratio", step="copy", metric="throughput")


def sample(step: str = "copy", repetition: int = 1, value: float | None = 1.5, metric: str = "elapsed") -> Sample:
    why = None if value is not None else "no way to know"
    return Sample(step=step, metric=metric, value=value, unit="s", repetition=repetition, not_measured=why)


def test_the_digest_does_not_depend_on_the_order_and_does_on_everything_else() -> None:
    one, other = sample(), sample("delete")
    base = digest(Status.OK, [one, other], {})
    assert digest(Status.OK, [other, one], {}) == base
    changed = [
        digest(Status.FAILED, [one, other], {}),
        digest(Status.OK, [one], {}),
        digest(Status.OK, [sample(value=1.500001), other], {}),
        digest(Status.OK, [sample(repetition=2), other], {}),
        digest(Status.OK, [sample(value=None), other], {}),
        digest(Status.OK, [sample(metric="cpu_user"), other], {}),
    ]
    assert len({base, *changed}) == 7


def test_equal_inputs_have_one_key() -> None:
    assert inputs_key({"a": 1, "b": [2]}) == inputs_key({"b": [2], "a": 1})
    assert inputs_key({"a": 1}) != inputs_key({"a": 2})


def test_a_ratio_is_the_last_repetition_over_the_first() -> None:
    rows = [sample(repetition=n, value=v, metric="throughput") for n, v in ((3, 50.0), (1, 80.0), (2, 70.0))]
    [found] = repetition_ratios([RATIO], rows)
    assert (found.step, found.metric, found.value, found.unit) == ("copy", "throughput_ratio", 0.625, "1")


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([], "copy has 0 repetitions with throughput; two are needed"),
        ([80.0], "copy has 1 repetitions with throughput; two are needed"),
        ([80.0, None], "throughput of the first or last copy is not measured"),
    ],
)
def test_a_ratio_that_cannot_be_had_says_why(values: list[float | None], why: str) -> None:
    rows = [sample(repetition=n, value=v, metric="throughput") for n, v in enumerate(values)]
    [found] = repetition_ratios([RATIO], rows)
    assert found.value is None
    assert found.not_measured == why


def test_comparing_names_the_input_that_differs() -> None:
    one = {"seeds": {"run": 1, "corpus": 1}, "qemu": {"command": ["a", "b"]}, "drives": [1]}
    other = {"seeds": {"run": 2, "corpus": 1}, "qemu": {"command": ["a", "c"]}, "drives": [1, 2], "new": 3}
    found = [(d.place, d.left, d.right) for d in cell_diff.diff_inputs(one, other)]
    assert found == [("drives", [1], [1, 2]), ("new", None, 3), ("qemu.command[1]", "b", "c"), ("seeds.run", 1, 2)]
    assert list(cell_diff.diff_inputs(one, one)) == []


def test_comparing_names_the_samples_that_differ() -> None:
    found = cell_diff.diff_samples([sample(), sample("read")], [sample(value=2), sample("list")])
    assert [(d.place, d.left, d.right) for d in found] == [
        ("copy 1 elapsed", 1.5, 2),
        ("read 1 elapsed", 1.5, None),
        ("list 1 elapsed", None, 1.5),
    ]


@pytest.fixture
def finished(tmp_path: Path) -> RunDirectory:
    run = run_builder.begin(tmp_path, run_builder.cells(["ext4", "ext4"]), label="aging-ext4")
    run.append(0, sample())
    run.append(0, sample("read", value=None))
    run.finish(0, End(status=Status.OK, inputs_key="sha256:1", digest="sha256:2", host_seconds=9))
    return run


def test_a_result_has_the_documented_shape(finished: RunDirectory) -> None:
    shown = finished.as_json()
    assert (shown["schema"], shown["run"], shown["scenario"], shown["clock"]) == (1, finished.name, "aging", "virtual")
    first, second = shown["cells"]
    assert (first["status"], first["reason"], first["digest"], first["drives"]) == (
        "ok", None, "sha256:2", ["model:none"],
    )  # fmt: skip
    assert first["samples"] == [
        {"step": "copy", "metric": "elapsed", "value": 1.5, "unit": "s", "repetition": 1},
        {"step": "read", "metric": "elapsed", "value": None, "unit": "s", "repetition": 1,
         "not_measured": "no way to know"},
    ]  # fmt: skip
    assert (second["status"], second["reason"]) == ("interrupted", "it has no end record")
    assert "host_seconds" not in first  # nothing measured in host time is part of a result
    json.dumps(shown)


def test_a_last_line_cut_short_loses_only_itself(finished: RunDirectory) -> None:
    with (finished.path / "samples.jsonl").open("a") as file:
        file.write('{"cell": 0, "step": "li')
    assert [row.step for row in finished.samples()[0]] == ["copy", "read"]


def test_samples_that_this_process_has_written_are_those_of_the_file(tmp_path: Path) -> None:
    run = run_builder.begin(tmp_path, run_builder.cells(["ext4", "xfs"]))
    ours, more = [run_builder.sample(value=1.5)], [run_builder.sample(value=2.5)]
    run.append_all(0, ours)
    assert run.samples() == RunDirectory(run.path).samples() == {0: ours}
    RunDirectory(run.path).append_all(1, more)  # another process
    assert run.samples() == {0: ours, 1: more}
    run.cell_directory(0)
    run.restart_cell(0)
    run.append_all(0, more)
    assert run.samples() == {0: more, 1: more} == RunDirectory(run.path).samples()


def test_a_damaged_line_among_many_is_told_as_one_alone(finished: RunDirectory) -> None:
    path = finished.path / "samples.jsonl"
    path.write_bytes(path.read_bytes() + b'{"cell": 0}, {"cell": 0}\n')
    with pytest.raises(InputError, match=r"samples\.jsonl is damaged: Extra data"):
        finished.samples()


def test_samples_that_were_read_are_read_again_only_where_the_file_is_another(
    finished: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[Path] = []
    lines = checksummed.raw_lines

    def counted(path: Path) -> Iterable[bytes]:
        reads.append(path)
        return lines(path)

    monkeypatch.setattr(checksummed, "raw_lines", counted)
    reader = RunDirectory(finished.path)
    before = reader.samples()
    before[0].clear()  # nobody's list is another's
    assert [row.step for row in reader.samples()[0]] == ["copy", "read"] and len(reads) == 1
    finished.append(1, sample("list"))
    assert {cell: [row.step for row in rows] for cell, rows in reader.samples().items()} == {
        0: ["copy", "read"], 1: ["list"],
    }  # fmt: skip
    assert len(reads) == 2
    reader.append_all(1, [sample("remove")])
    assert [row.step for row in reader.samples()[1]] == ["list", "remove"] and len(reads) == 2


def test_a_cell_that_begins_anew_leaves_nothing_of_its_first_beginning(finished: RunDirectory) -> None:
    finished.append(1, sample("copy"))
    (finished.cell_directory(1) / "disk-2").write_bytes(b"half")
    with (finished.path / "samples.jsonl").open("a") as file:
        file.write('{"cell": 1, "step": "li')
    assert finished.unfinished() == [1]
    finished.restart_cell(1)
    assert not list(finished.cell_directory(1).iterdir())
    finished.append(1, sample("list"))
    assert {cell: [row.step for row in rows] for cell, rows in finished.samples().items()} == {
        0: ["copy", "read"], 1: ["list"],
    }  # fmt: skip


def test_a_run_that_goes_on_is_not_carried_out_twice_and_a_look_at_it_keeps_nobody_from_it(
    finished: RunDirectory,
) -> None:
    assert not finished.is_running() and not (finished.path / "lock").exists()
    with finished.lock():
        assert finished.is_running() and finished.is_running()
        with pytest.raises(InputError, match="still going on"), finished.lock():
            pass
    assert not finished.is_running()
    with (finished.path / "lock").open() as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        over = threading.Timer(0.03, fcntl.flock, (looking, fcntl.LOCK_UN))
        over.start()
        with finished.lock():
            assert finished.is_running()
        over.join()


def test_runs_are_found_by_name_and_by_latest(finished: RunDirectory, tmp_path: Path) -> None:
    runs = finished.path.parent
    assert run_lookup.find_unverified(runs, "latest").name == finished.name
    with pytest.raises(InputError, match=f"did you mean {finished.name}"):
        run_lookup.find_unverified(runs, finished.name + "x")
    with pytest.raises(InputError, match="there are no runs yet"):
        run_lookup.find_unverified(tmp_path / "none", "latest")


def test_the_beginning_of_one_runs_name_is_that_run_and_of_several_names_the_newest(tmp_path: Path) -> None:
    days = [f"202611{day:02}-120000-aging" for day in range(1, 20)]
    for name in (*days, f"{days[-1]}-ext4"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "plan.json").touch()
    assert run_lookup.find_unverified(tmp_path, "20261105").name == days[4]
    assert run_lookup.find_unverified(tmp_path, days[-1]).name == days[-1]
    newest = f"{days[-1]}-ext4, {days[-1]}, {days[-2]}"
    for name, said in (
        ("2026111", f"11 runs begin with '2026111'; the newest: {newest}"),
        ("20261119", f"2 runs begin with '20261119'; the newest: {days[-1]}-ext4, {days[-1]}"),
        ("nosuch", f"no run 'nosuch'; the newest: {newest}"),
        ("", f"no run ''; the newest: {newest}"),
    ):
        with pytest.raises(InputError) as error:
            run_lookup.find_unverified(tmp_path, name)
        assert (str(error.value), error.value.hint) == (said, "all runs: agelab list")


def test_two_runs_of_one_second_have_two_directories(tmp_path: Path) -> None:
    names = {RunDirectory.create(tmp_path, "aging").name for _ in range(5)}
    assert len(names) == 5


def test_a_damaged_plan_is_named(finished: RunDirectory) -> None:
    (finished.path / "plan.json").write_text("{")
    with pytest.raises(InputError, match=r"plan\.json is damaged"):
        finished.plan()


def test_the_latest_run_is_the_one_begun_last_whatever_the_clock_said(finished: RunDirectory) -> None:
    runs = finished.path.parent
    for label in ("today", "tomorrow", "again"):
        run = RunDirectory.create(runs, label)
        if label == "tomorrow":  # by a clock that is put back afterwards
            run.path = run.path.rename(runs / f"9{run.name}")
        run.write_plan(finished.plan().model_copy(update={"run": run.name}))
    assert run_lookup.all_runs(runs)[-1].name.endswith("tomorrow")
    assert run_lookup.find(runs, "latest").name == run.name
    (runs / "latest").write_text("one that was removed\n")
    assert run_lookup.find(runs, "latest").name.endswith("tomorrow")


def test_lines_are_not_read_while_a_cut_one_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    checksummed.add_lines(path, [{"number": 1}])
    with ThreadPoolExecutor(1) as pool, path.open("ab") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        reader = pool.submit(checksummed.lines, path)
        with pytest.raises(TimeoutError):
            reader.result(timeout=0.5)
        fcntl.flock(writer, fcntl.LOCK_UN)
        assert reader.result(timeout=10) == [{"number": 1}]
