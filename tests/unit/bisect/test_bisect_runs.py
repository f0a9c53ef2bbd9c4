"""Measuring a kernel by a run of agelab: what a run's end means to a bisect."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agelab import kernel as kernels
from agelab.base.errors import HostError, InputError
from agelab.bisect import answer, git_search
from agelab.bisect.bisect_directory import BisectDirectory
from agelab.bisect.kernel_runs import KernelRuns
from agelab.bisect.measurements import KernelOutcome, OutcomeKind
from agelab.debian.buildroot import BuildFailed
from agelab.machine.drive.module import NoHeaders
from agelab.machine.image import DoesNotBoot
from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.crash import crash
from agelab.runner.crash.crash import Answer, Violation
from agelab.runner.crash.guests import NotRecorded, Question
from agelab.runner.crash.oracle import Kind
from agelab.runner.execute import runner
from agelab.store.artefacts import Store, file_hash
from tests.build import run_builder
from tests.build import simulated_bisect as simulated
from tests.build.simulated_bisect import planted


def measured(
    home: Path, monkeypatch: pytest.MonkeyPatch, run: Callable[..., RunDirectory], **other: Any
) -> tuple[KernelRuns, BisectDirectory]:
    directory = simulated.asked(Store(home), planted(3), **other)
    monkeypatch.setattr(kernels, "resolve", lambda *_, **__: None)
    monkeypatch.setattr(runner, "run", run)
    return KernelRuns(directory, Store(home)), directory


def ended(
    home: Path, status: Status, reason: str | None = None, seeds: Sequence[int] = (1,), **provenance: object
) -> RunDirectory:
    """A run of that end, which copied within 1.5 s."""
    cells = run_builder.cells(["ext4"], seeds)
    said = {"harness": "a", "kernel": f"of {status} {seeds}", **provenance}
    run = run_builder.begin(home, cells, scenario="small", provenance=said)
    for number in range(len(cells)):
        measured = (run_builder.sample(), run_builder.sample("copy", None, "seeks", why="no arm"))
        run_builder.end(run, number, measured, status=status, reason=reason, digest=None)
    return run


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (Status.OK, None, OutcomeKind.MEASURED),
        (Status.PANICKED, "Kernel panic - not syncing: oh", OutcomeKind.PANICS),
        (Status.HUNG, "the watchdog fired", OutcomeKind.HANGS),
        (Status.FAILED, "step copy exited 1", OutcomeKind.FAILS),
        (Status.UNSUPPORTED, "kernel 6.1 has no module ext4", OutcomeKind.UNSUPPORTED),
        (Status.UNSUPPORTED, "the image's proof failed: mount: wrong fs type", OutcomeKind.FAILS),
        (Status.INTERRUPTED, "the host's patience ended", OutcomeKind.INTERRUPTED),
    ],
)
def test_how_a_cell_ended_is_what_came_of_its_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: Status, reason: str | None, kind: OutcomeKind
) -> None:
    measure, _ = measured(tmp_path, monkeypatch, lambda *_: ended(tmp_path, status, reason, (1, 2)))
    found = measure.run("1", [1, 2])
    assert [one.kind for one in found] == [kind] * 2 and [one.seed for one in found] == [1, 2]
    assert [one.value for one in found] == ([1.5] * 2 if kind is OutcomeKind.MEASURED else [None] * 2)
    assert found[0].run is not None


def test_violations_among_crash_states_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(question: Question, *_: object) -> Answer:
        assert (question.workload, question.filesystem, question.budget) == ("sync", "ext4", None)
        if question.kernel == "2":
            raise NotRecorded("the guest ended")
        return Answer("r", question, violations=[violation] * question.seed)

    violation = Violation("0:1", "ab", (), Kind.MOUNT, "", "", (0,))
    measure, directory = measured(
        tmp_path, monkeypatch, lambda *_: ended(tmp_path, Status.OK), name="aging-ext4", crash="sync"
    )
    monkeypatch.setattr(crash, "run", run)
    assert [(one.value, one.run) for one in measure.run("1", [1, 3])] == [(1, "r"), (3, "r")]
    [failed] = measure.run("2", [1])
    assert (failed.kind, failed.why) == (OutcomeKind.FAILS, "the guest ended")
    script = answer.reproduce_script(tmp_path, directory.question(), "1", "2", "x")
    assert 'crash sync --filesystem ext4 --defaults period --seed 1 --drawn 4 --mib 64 --kernel "$kernel"' in script


@pytest.mark.parametrize(
    ("error", "kind", "why"),
    [
        (BuildFailed("fs/a.c:1: error: oops"), OutcomeKind.NO_BUILD, "oops"),
        (NoHeaders("there are no headers"), OutcomeKind.UNSUPPORTED, "no headers"),
        (DoesNotBoot("packer", panicked="Kernel panic - not syncing: oh"), OutcomeKind.PANICS, "not syncing: oh"),
        (DoesNotBoot("packer build failed"), OutcomeKind.NO_BOOT, "packer"),
    ],
)
def test_what_keeps_a_kernel_from_a_run_is_what_came_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: OutcomeKind, why: str
) -> None:
    def run(*_: object) -> RunDirectory:
        raise error

    measure, _ = measured(tmp_path, monkeypatch, run)
    [found] = measure.run("1", [1])
    assert (found.kind, found.run) == (kind, None) and why in found.why


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InputError("Debian sid has no linux-base-6.18 (any more)"), OutcomeKind.NO_KERNEL),
        (BuildFailed("fs/a.c:1: error: oops"), OutcomeKind.NO_BUILD),
    ],
)
def test_a_kernel_that_cannot_be_had_is_not_called_one_that_does_not_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: OutcomeKind
) -> None:
    def resolve(*_: object, **__: object) -> None:
        raise error

    measure, _ = measured(tmp_path, monkeypatch, lambda *_: ended(tmp_path, Status.OK))
    monkeypatch.setattr(kernels, "resolve", resolve)
    [found] = measure.run("1", [1])
    assert found.kind is kind and str(error) in found.summary


def test_what_the_host_cannot_do_is_no_property_of_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> RunDirectory:
        raise HostError("no space")

    measure, _ = measured(tmp_path, monkeypatch, run)
    with pytest.raises(HostError, match="no space"):
        measure.run("1", [1])


def test_a_metric_that_there_is_not_is_named_with_the_nearest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def one(*metric: object) -> KernelOutcome:
        measure, _ = measured(tmp_path, monkeypatch, lambda *_: ended(tmp_path, Status.OK), metric=metric)
        [found] = measure.run("1", [1])
        assert found.kind is OutcomeKind.NOT_MEASURED
        return found

    assert "did you mean copy:elapsed" in one("cpy", 1, "elapsed").why
    assert one("copy", 1, "seeks").summary == "has no such value: no arm"


def test_runs_under_other_conditions_do_not_belong_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = iter("aab")
    measure, directory = measured(tmp_path, monkeypatch, lambda *_: ended(tmp_path, Status.OK, harness=next(harness)))
    for kernel in "12":
        measure.run(kernel, [1])
    with pytest.raises(InputError, match=rf"{directory.name} was begun with other inputs \(harness a \| b\)"):
        measure.run("3", [1])


def test_what_kernels_are_built_with_must_stay_the_same_from_step_to_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    linux, queue = tmp_path / "linux", tmp_path / "queue"
    simulated.history(linux, 3)
    queue.mkdir()
    (queue / "a.patch").write_text("a")
    found, count = git_search.resolve_tree(linux, "v6.0", "v6.2", f",patches={queue}")
    kernels_of = (found.kernel_spec(found.good), found.kernel_spec(found.bad))
    files = {str(queue / "a.patch"): file_hash(queue / "a.patch")}
    measure, _ = measured(
        tmp_path, monkeypatch, lambda *_: ended(tmp_path, Status.OK),
        tree=found, kernels=kernels_of, candidates=count, files=files,
    )  # fmt: skip
    assert measure.prepare(kernels_of[1]) is None
    (queue / "b.patch").write_text("b")
    with pytest.raises(InputError, match=r"b\.patch is not what it was when the bisect was begun"):
        measure.prepare(kernels_of[1])
    (queue / "b.patch").unlink()
    (queue / "a.patch").write_text("other")
    with pytest.raises(InputError, match=r"a\.patch is not what it was when the bisect was begun"):
        measure.run(kernels_of[1], [1])
    (queue / "a.patch").write_text("a")
    linux.rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="it is no git tree any more"):  # of no commit: it does not build
        measure.prepare(kernels_of[1])
