"""One scenario on several kernels: one table, changes with their verdicts, what a kernel does not support."""

from pathlib import Path

import pytest

from agelab.results.result import RunKernel, Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.request.options import RunOptions
from tests.build import run_builder
from tests.build.cli import Cli

pytestmark = pytest.mark.usefixtures("home")


def made(
    home: Path,
    kernel: str,
    values: dict[str, list[float] | None],
    scenario: str = "small",
    *,
    drive: str = "model:none",
    booted: RunKernel | None = None,
    again: float | None = None,
) -> str:
    """Build a run on that kernel: variant to its seconds to copy with run seeds 1, 2, ...; None: unsupported.

    ``again``: what it took the second time.
    """
    booted = booted or RunKernel(spec=f"debian:{kernel}", release=kernel, version=f"{kernel}-1")
    cells = tuple(
        run_builder.cell(variant, seed, kernel=kernel, drives=(drive,))
        for variant, took in values.items()
        for seed in range(1, 1 + len(took or [0]))
    )
    run = run_builder.begin(home, cells, scenario=scenario, kernel=booted, provenance={"kernel": str(booted)})
    for number, cell in enumerate(cells):
        took = values[cell.variant]
        if took is None:
            reason = f"kernel {kernel} has no module {cell.variant}"
            run_builder.end(run, number, status=Status.UNSUPPORTED, inputs={}, reason=reason)
            continue
        measured = [run_builder.sample("copy", took[cell.seed - 1])]
        if again is not None:
            measured.append(run_builder.sample("copy", again, repetition=2))
        measured += [run_builder.sample("read", 1.0), run_builder.sample("aged/map", 0.5, "layout_score")]
        run_builder.end(run, number, measured, inputs={})
    return run.name


def seeds(middle: float) -> list[float]:
    return [middle - 0.02, middle - 0.01, middle, middle + 0.01, middle + 0.02]


def test_kernels_stand_in_the_order_of_their_versions_and_changes_are_judged(home: Path, cli: Cli) -> None:
    new = made(home, "6.12.1", {"ext4": seeds(2.0), "jfs": seeds(1.0)})
    old = made(home, "5.10.3", {"ext4": seeds(1.0), "jfs": seeds(1.01)})
    out = cli.out("sweep", new, old)
    head, *ext4 = [line.split() for line in out.split("\next4, elapsed, s")[1].strip().splitlines()[:4]]
    assert head == ["5.10.3", "6.12.1"]
    assert ext4[0] == ["copy", "1.000", "2.000", "+100.0%*"] and ext4[1][0] == "read"
    assert " ".join(ext4[2]) == "all steps, without mkfs and mount 2.000 3.000 +50.0%*"
    jfs = out.split("\njfs, elapsed, s")[1].strip().splitlines()
    assert jfs[3].split()[-3:] == ["2.010", "2.000", "-0.5%="]
    assert "aged/map, layout_score" in out and "for a verdict" not in out


def test_candidates_come_before_their_release_and_images_where_their_release_says(home: Path, cli: Cli) -> None:
    kernels = [
        ("tree:/linux@v6.6-rc7", "6.6.0-rc7", "6.6.0-rc7"),
        ("tree:/linux@v6.6", "6.6.0", "6.6.0"),
        ("image:/a", "6.6.1", "#1 SMP PREEMPT_DYNAMIC Mon Jan 2 15:04:05 UTC 2026"),
        ("debian:6.6.2", "6.6.2-amd64", "6.6.2-1"),
    ]
    names = [
        made(home, release, {"ext4": [1.0]}, booted=RunKernel(spec=spec, release=release, version=version))
        for spec, release, version in kernels
    ]
    shown = cli.json("sweep", *reversed(names), "--json")["kernels"]
    assert [one["release"] for one in shown] == [release for _, release, _ in kernels]


def test_kernels_of_one_release_are_told_apart(home: Path, cli: Cli) -> None:
    commits = [f"{digit * 40}" for digit in "ab"]
    names = [
        made(home, "6.6.0", {"jfs": took}, booted=RunKernel(spec=spec, release="6.6.0", version="6.6.0"))
        for took, spec in (([1.0], f"tree:/linux@{commits[0]},config=/c"), (None, f"tree:/linux@{commits[1]}"))
    ]
    out = cli.out("sweep", *names, "--metric", "copy:elapsed")
    assert out.split("copy, elapsed, s")[1].splitlines()[1].split() == ["6.6.0@aaaaaaaa", "6.6.0@bbbbbbbb"]
    assert "jfs was last seen in 6.6.0@aaaaaaaa" in out
    rows = cli.json("sweep", *names, "--json")["rows"]
    assert {row["spec"] for row in rows} == {f"tree:/linux@{commits[0]},config=/c", f"tree:/linux@{commits[1]}"}


def test_runs_on_other_drives_are_refused(home: Path, cli: Cli) -> None:
    one, other = made(home, "6.1.2", {"ext4": [1.0]}), made(home, "6.16.1", {"ext4": [1.0]}, drive="model:a")
    assert f"do not belong into one table: {other} | {one}: drives model:a | model:none" in cli.err("sweep", one, other)
    for name, corpus in ((one, "a"), (other := made(home, "6.16.1", {"ext4": [1.0]}), "b")):
        run = RunDirectory(home / "runs" / name)
        run.write_plan(run.plan().model_copy(update={"provenance": {"corpus_sha256": corpus}}))
    assert f"do not belong into one table: {other} | {one}: data b | a" in cli.err("sweep", one, other)


def test_one_reason_on_several_kernels_is_said_once(home: Path, cli: Cli) -> None:
    names = [
        made(home, "k", {"jfs": None}, booted=RunKernel(spec=f"debian:{one}", release=one, version=one))
        for one in ("5.10.3", "6.1.2")
    ]
    assert "jfs on 5.10.3, 6.1.2: unsupported: kernel k has no module jfs" in cli.out("sweep", *names)


def test_one_seed_tells_nothing_and_the_command_that_would_is_there_to_paste(home: Path, cli: Cli) -> None:
    names = [made(home, kernel, {"ext4": [took]}) for kernel, took in (("5.10.3", 1.0), ("6.1.2", 2.0))]
    command = RunOptions(name="aging-ext4", directory="/", kernel="5.10.3").to_plan()
    for name in names:
        run = RunDirectory(home / "runs" / name)
        run.write_plan(run.plan().model_copy(update={"command": command}))
    out = cli.out("sweep", *names, "--metric", "copy:elapsed")
    assert "+100.0%?" in out and "ext4" in out.split("copy, elapsed, s")[1].splitlines()[2]
    asked = "agelab run aging-ext4 --seeds 1,2,3,4,5 --kernel debian:5.10.3 --kernel debian:6.1.2"
    assert f"for a verdict in place of ?: {asked}\n" in out


def test_a_metric_of_a_later_repetition_is_asked_for_by_its_number(home: Path, cli: Cli) -> None:
    names = [made(home, kernel, {"ext4": [1.0]}, again=again) for kernel, again in (("5.10.3", 3.0), ("6.1.2", 4.0))]
    out = cli.out("sweep", *names, "--metric", "copy:2:elapsed")
    assert "copy 2/2, elapsed, s" in out and "+33.3%?" in out and "1.0" not in out


def test_what_a_kernel_lacks_is_unsupported_and_said_where_it_was_last_seen(home: Path, cli: Cli) -> None:
    kernels = {"5.10.3": [1.0], "6.12.1": [1.0], "7.2.5": None}
    names = [made(home, kernel, {"reiserfs": took}) for kernel, took in kernels.items()]
    out = cli.out("sweep", *names)
    assert "reiserfs on 7.2.5: unsupported: kernel 7.2.5 has no module reiserfs" in out
    assert "reiserfs was last seen in 6.12.1" in out
    assert cli.json("sweep", *names, "--json")["last_seen"] == {"reiserfs": "6.12.1"}


def test_a_change_is_against_the_last_kernel_that_has_a_value(home: Path, cli: Cli) -> None:
    kernels: dict[str, list[float] | None] = {"5.10.3": [1.0], "6.1.2": None, "6.12.1": [3.0]}
    names = [made(home, kernel, {"ufs": took}) for kernel, took in kernels.items()]
    row = next(line for line in cli.out("sweep", *names, "--metric", "copy:elapsed").splitlines() if line[:3] == "ufs")
    assert row.split() == ["ufs", "1", "unsupported", "3", "+200.0%?"]


def test_further_seeds_of_a_kernel_join_its_column(home: Path, cli: Cli) -> None:
    first, again = (made(home, "6.1.2", {"ext4": took}) for took in ([1.0], [1.0, 2.0]))
    rows = cli.json("sweep", first, again, "--metric", "copy:elapsed", "--json")["rows"]
    assert [(row["seeds"], row["median"]) for row in rows] == [(2, 1.5)]


def test_a_run_that_does_not_say_its_kernel_is_refused(home: Path, cli: Cli) -> None:
    names = [made(home, "6.1.2", {"ext4": [took]}) for took in (1.0, 2.0)]
    silent = RunDirectory(home / "runs" / names[0])
    silent.write_plan(silent.plan().model_copy(update={"kernel": None}))
    assert f"{silent.name} does not say its kernel" in cli.err("sweep", *names)


def test_other_scenarios_and_unknown_metrics_are_refused(home: Path, cli: Cli) -> None:
    one, other = made(home, "6.1.2", {"ext4": [1.0]}), made(home, "5.10.3", {"ext4": [1.0]}, "large")
    refused = cli.err("sweep", one, other)
    assert f"do not belong into one table: {other} | {one}: scenario large | small" in refused
    hint = refused.partition("both, side by side: agelab ")[2].split()
    assert "NOT COMPARABLE: scenario small | large" in cli.out(*hint)
    assert "did you mean copy:elapsed" in cli.err("sweep", one, "--metric", "copy:elapsd")


def test_each_table_is_drawn(home: Path, tmp_path: Path, cli: Cli) -> None:
    names = [made(home, kernel, {"ext4": seeds(1.0)}) for kernel in ("5.10.3", "6.1.2")]
    (tmp_path / "file").touch()
    said = cli.err("sweep", *names, "--plots", str(tmp_path / "file/plots"))
    assert said == f"agelab: {tmp_path}/file/plots cannot be made a directory: Not a directory\n"
    cli.out("sweep", *names, "--plots", str(tmp_path / "plots"))
    drawn = (tmp_path / "plots" / "all-steps-elapsed.svg").read_text()
    assert "5.10.3" in drawn and "6.1.2" in drawn
