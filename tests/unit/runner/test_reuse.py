"""A cell whose key is known is not run again: found in the store's own runs, verified, and shown for what it is."""

import hashlib
import json
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from agelab.base import places
from agelab.base.errors import InputError
from agelab.cli import agelab
from agelab.machine.vm import host
from agelab.results import run_lookup
from agelab.results.key_and_digest import inputs_key
from agelab.results.result import End, Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.cluster import shared_plan
from agelab.runner.execute import disk_maps, runner
from agelab.runner.execute.answers import CellReuse, cell_reuse
from agelab.runner.plan import cell_inputs
from agelab.runner.request.options import RunOptions
from agelab.runner.reuse import ended_cells
from agelab.runner.reuse.ended_cells import CellKey, EndedCell, StoreRuns
from agelab.scenario.seeds import CellName
from agelab.scenario.workloads import Workload, program
from tests.build import hostile_runs, run_builder
from tests.build.cell_builder import spec
from tests.build.reuse_cells import KEY, Guests, ended


@pytest.fixture(autouse=True)
def _allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGELAB_FRESH")
    monkeypatch.setattr(cell_inputs, "collect", lambda *_: {})


def restore(home: Path, key: CellKey = KEY, said: list[str] | None = None) -> End | None:
    found = StoreRuns(home / "runs", (said if said is not None else []).append).restore(key, home / "taken")
    return found.as_reused(None) if found else None


def options(**words: Any) -> RunOptions:
    return RunOptions(name="aging-reiserfs", directory="/", **words)


def reuse(home: Path, **words: Any) -> CellReuse:
    found = cell_reuse(options(**words), home / "runs", print)
    assert found
    return found


def first_end(run: RunDirectory) -> End:
    run.verify()
    end = run.end(0)
    assert end
    return end


# ---- the store's own runs ----


def test_an_ended_cell_is_found_by_its_key_with_its_maps_and_its_origin(tmp_path: Path) -> None:
    run = ended(tmp_path, host_seconds=60.0, ended="2026-11-24T12:40:11Z")
    found = restore(tmp_path)
    before = run.end(0)
    assert found and before and found.reused
    assert (found.digest, found.maps, found.host_seconds) == (before.digest, before.maps, 60.0)
    assert str(found.reused) == f"{run.name}, 2026-11-24T12:40:11Z, on Linux, 2 x P4"
    assert {path.name for path in (tmp_path / "taken/maps/aged").iterdir()} == {"extents.gz", "free.gz"}
    assert restore(tmp_path, KEY._replace(inputs_key=inputs_key({"other": 1}))) is None


def test_what_its_steps_printed_comes_with_it(tmp_path: Path) -> None:
    run = ended(tmp_path)
    cell = run.path / "cells/0"
    (cell / "aged-fio-1.output").write_bytes(b"{}")
    (cell / "console-0.log").write_bytes(b"not one")
    (cell / "link.output").symlink_to("/etc/hostname-that-there-is-not")
    assert restore(tmp_path)
    assert [path.name for path in (tmp_path / "taken").iterdir() if path.is_file()] == ["aged-fio-1.output"]
    assert (tmp_path / "taken/aged-fio-1.output").read_bytes() == b"{}"


def test_pictures_come_along_where_they_are_what_was_drawn(tmp_path: Path) -> None:
    drawn = hashlib.sha256(b"<svg/>").hexdigest()
    run = ended(tmp_path, pictures={"block-map.svg": drawn, "../outside.svg": drawn})
    (run.path / "cells/0/maps/block-map.svg").write_text("<svg/>")
    (run.path / "cells/0/outside.svg").write_text("<svg/>")
    assert restore(tmp_path)
    assert (tmp_path / "taken/maps/block-map.svg").read_text() == "<svg/>"
    assert not (tmp_path / "taken/outside.svg").exists()
    there = disk_maps.are_there
    assert there(tmp_path / "taken", {"block-map.svg": drawn})
    assert not there(tmp_path / "taken", {"block-map.svg": "0" * 64})
    assert not there(tmp_path / "taken", {"score.svg": drawn}) and not there(tmp_path / "taken", {})
    assert not there(run.path / "cells/0", {"../outside.svg": drawn})


def test_a_cell_of_an_older_agelab_ended_when_its_record_was_written(tmp_path: Path) -> None:
    run = ended(tmp_path)
    os.utime(run.path / "cells/0/end.json", (0, 1_000_000_000))
    found = restore(tmp_path)
    assert found and found.reused and found.reused.ended == "2001-09-09T01:46:40Z"


def test_a_reused_cell_keeps_the_origin_of_the_one_that_was_measured(tmp_path: Path) -> None:
    origin = {"run": "first", "host": "there", "ended": "2026-01-01T00:00:00Z"}
    ended(tmp_path, reused=origin)
    found = restore(tmp_path)
    assert found and found.reused and found.reused.model_dump() == origin


def test_a_cell_that_ran_on_another_host_has_that_host_for_its_origin(tmp_path: Path) -> None:
    ended(tmp_path, host="worker, 4 x P4")
    found = restore(tmp_path)
    assert found and found.reused and found.reused.host == "worker, 4 x P4"


@dataclass(frozen=True)
class Worker:
    """Another host, which answers with the cell of a run in its own store."""

    measured: RunDirectory

    def slots(self, memory: int) -> int:
        return 1

    def stop(self) -> None:
        pass

    def run(self, cell: CellName, key: CellKey, directory: Path, memory: int) -> EndedCell:
        there = CellKey.of(first_end(self.measured))
        assert there
        return ended_cells.unpack(shared_plan.pack(self.measured), there, directory)


def test_what_a_worker_knew_is_reused_and_what_it_ran_is_not(tmp_path: Path) -> None:
    there, home = Guests(tmp_path / "worker"), Guests(tmp_path)
    ran, knew = (there.carry_out(reuse(tmp_path / "worker")) for _ in range(2))
    end = first_end(home.carry_out(None, Worker(ran)))
    assert (end.digest, end.reused, end.host) == (first_end(ran).digest, None, host.description())
    again = first_end(home.carry_out(None, Worker(knew)))
    assert again.reused and again.reused.run == ran.name


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("cells/0/inputs.json", "it is of another key"),
        ("samples.jsonl", "damaged"),
        ("cells/0/maps/aged/extents.gz", "its map aged/extents is not that of its digest"),
        ("plan.json", "damaged"),
    ],
)
def test_a_damaged_cell_is_passed_over_for_an_older_one_and_told(tmp_path: Path, broken: str, why: str) -> None:
    older, newer = ended(tmp_path), ended(tmp_path)
    path = newer.path / broken
    if path.suffix == ".gz":
        path.write_bytes((newer.path / "cells/0/maps/aged/free.gz").read_bytes())
    else:
        path.write_text(path.read_text().replace("6.1", "6.2").replace("1.5", "1.6"))
    said: list[str] = []
    found = restore(tmp_path, said=said)
    assert found and found.reused and found.reused.run == older.name
    assert len(said) == 1 and said[0].startswith(f"{newer.name}, cell 0, is not reused: ") and why in said[0]
    assert sorted(path.name for path in (tmp_path / "taken/maps/aged").iterdir()) == ["extents.gz", "free.gz"]


def test_samples_that_are_sealed_but_not_those_of_the_digest_are_not_reused(tmp_path: Path) -> None:
    run = ended(tmp_path)
    run.append(0, run_builder.sample("more"))
    said: list[str] = []
    assert restore(tmp_path, said=said) is None and "not those of its digest" in said[0]


def test_a_map_that_would_lie_elsewhere_is_not_taken(tmp_path: Path) -> None:
    ended(tmp_path)
    [end] = tmp_path.glob("runs/*/cells/0/end.json")
    said = json.loads(end.read_text())
    said.pop("seal")
    said["maps"] = {"../../outside": "0" * 64}
    end.write_text(hostile_runs.sealed(said))
    assert restore(tmp_path) is None and not (tmp_path / "outside.gz").exists()


def test_a_cell_of_the_wall_clock_and_one_without_a_digest_are_not_reused(tmp_path: Path) -> None:
    ended(tmp_path, clock="wall")
    ended(tmp_path, digest=None)
    assert restore(tmp_path) is None


def test_a_run_that_is_going_on_is_not_looked_at(tmp_path: Path) -> None:
    with ended(tmp_path).lock():
        assert restore(tmp_path) is None
    assert restore(tmp_path)


@pytest.mark.parametrize("disputes", [None, "sha256:other"])
def test_a_key_with_two_digests_is_served_by_nobody(tmp_path: Path, disputes: str | None) -> None:
    ended(tmp_path)
    ended(tmp_path, 1.5 if disputes else 1.6, disputes=disputes)
    found = StoreRuns(tmp_path / "runs", print)
    assert found.restore(KEY, tmp_path / "taken") is None and found.is_disputed(KEY)


def test_a_cell_that_other_code_has_evaluated_is_neither_reused_nor_disputed(tmp_path: Path) -> None:
    ended(tmp_path, 1.6, evaluated_by="sha256:older")
    ended(tmp_path, 1.7, evaluated_by=None)
    assert restore(tmp_path) is None
    run = ended(tmp_path)
    found = restore(tmp_path)
    assert found and found.reused and found.reused.run == run.name


def test_whatever_makes_samples_or_a_status_is_what_evaluates_a_cell() -> None:
    makes = re.compile(r"\b(?:Sample|CellStatus|LayoutMeasure)\(")
    modules = {
        str(path.relative_to(places.PACKAGE))
        for path in places.PACKAGE.rglob("*.py")
        if makes.search(path.read_text().replace("class Sample(", ""))
    }
    # A sweep's sums are in no result, nor is what a pass of its own says.
    apart = {"analysis/result_grid.py", "runner/execute/passes.py"}
    named = {f"runner/execute/{name}" for name in cell_inputs.CARRIES_OUT}
    assert named < modules
    assert [module for module in modules - apart - named if not module.startswith("evaluate/")] == []


def test_what_evaluates_a_cell_is_its_filesystems_file_too() -> None:
    one = spec()
    gone = one.filesystem.model_copy(update={"gone": ("never said",)})
    assert cell_inputs.evaluated_by(one) == cell_inputs.evaluated_by(spec())
    assert cell_inputs.evaluated_by(replace(one, filesystem=gone)) != cell_inputs.evaluated_by(one)


def test_what_evaluates_a_cell_is_its_programs_files_too() -> None:
    fio = program("fio")
    quieter = fio.model_copy(update={"metrics": {}})
    ours, other = (replace(spec(), workload=Workload({"fio": one})) for one in (fio, quieter))
    assert len({cell_inputs.evaluated_by(one) for one in (spec(), ours, other)}) == 3


# ---- a cell that is carried out ----


def test_a_known_cell_boots_no_guest_and_has_the_same_result(tmp_path: Path) -> None:
    guests = Guests(tmp_path)
    first = first_end(guests.carry_out(reuse(tmp_path)))
    booted = guests.boots
    assert booted and not first.reused and first.ended
    run = guests.carry_out(reuse(tmp_path))
    again = first_end(run)
    assert guests.boots == booted and again.reused
    assert (again.inputs_key, again.digest, again.status) == (first.inputs_key, first.digest, first.status)
    assert again.host_seconds == first.host_seconds
    assert run.samples() == RunDirectory(run_lookup.all_runs(tmp_path / "runs")[0].path).samples()


def test_a_cell_that_starts_from_a_stored_disk_is_not_the_one_that_kept_it(tmp_path: Path) -> None:
    ended(tmp_path, disk="kept")
    found = restore(tmp_path)
    assert found and found.disk is None


@pytest.mark.parametrize("words", [{"fresh": True}, {"timing": True}, {"keep_disk": True}])
def test_what_must_do_more_than_measure_runs(tmp_path: Path, words: dict[str, bool]) -> None:
    guests = Guests(tmp_path)
    guests.carry_out(reuse(tmp_path))
    booted = guests.boots
    end = first_end(guests.carry_out(reuse(tmp_path, **words)))
    assert guests.boots == 2 * booted and not end.reused


def test_the_environment_has_every_cell_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGELAB_FRESH", "1")
    assert not reuse(tmp_path).looks_up
    with pytest.raises(InputError, match="AGELAB_FRESH has every cell run"):
        reuse(tmp_path, verify=0.5)
    monkeypatch.setenv("AGELAB_FRESH", "0")
    assert reuse(tmp_path).looks_up


def test_the_wall_clock_reuses_nothing(tmp_path: Path) -> None:
    assert cell_reuse(options(clock="wall"), tmp_path, print) is None


# ---- a share of them runs again ----


def test_a_checked_cell_runs_and_agrees(tmp_path: Path) -> None:
    guests = Guests(tmp_path)
    guests.carry_out(reuse(tmp_path))
    booted = guests.boots
    end = first_end(guests.carry_out(reuse(tmp_path, verify=1)))
    assert guests.boots == 2 * booted and not end.reused and not end.disputes
    assert first_end(guests.carry_out(reuse(tmp_path))).reused


def test_a_checked_cell_with_another_digest_disputes_and_neither_is_served_again(tmp_path: Path) -> None:
    first = first_end(Guests(tmp_path).carry_out(reuse(tmp_path)))
    run = Guests(tmp_path, 1.6).carry_out(reuse(tmp_path, verify=1))
    end = first_end(run)
    assert end.status is Status.OK and end.disputes == first.digest != end.digest
    assert not runner.succeeded(run)
    guests = Guests(tmp_path)
    assert not first_end(guests.carry_out(reuse(tmp_path))).reused and guests.boots
    said = CliRunner().invoke(agelab, ["show", run.name], env={"AGELAB_HOME": str(tmp_path)}).output
    assert f"disputes    {first.digest}, which an earlier cell" in " ".join(said.split(" ")).replace("\n", "")


def test_about_the_share_that_is_asked_for_is_checked(tmp_path: Path) -> None:
    run = run_builder.begin(tmp_path, [])
    found = reuse(tmp_path, verify=0.05)
    drawn = [found.is_checked(run, CellKey(f"sha256:{number}", "")) for number in range(4000)]
    assert 140 < sum(drawn) < 260
    assert drawn == [found.is_checked(run, CellKey(f"sha256:{number}", "")) for number in range(4000)]
    assert all(reuse(tmp_path, verify=1).is_checked(run, CellKey(f"{number}", "")) for number in range(100))
    assert not any(reuse(tmp_path).is_checked(run, CellKey(f"{number}", "")) for number in range(100))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"verify": 0.0}, "a share is above 0"),
        ({"verify": 1.5}, "a share is above 0"),
        ({"verify": 0.5, "fresh": True}, "with --fresh every cell runs"),
        ({"verify": 0.5, "keep_disk": True}, "with --keep-disk every cell runs"),
        ({"verify": 0.5, "clock": "wall"}, "in the wall clock"),
    ],
)
def test_a_check_of_nothing_is_refused(words: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        options(**words)


# ---- shown ----


def test_every_view_says_where_a_reused_cell_was_measured(tmp_path: Path) -> None:
    run = ended(tmp_path, reused={"run": "first", "host": "there", "ended": "2026-01-01T00:00:00Z"})
    where = "first, 2026-01-01T00:00:00Z, on there"
    home = {"AGELAB_HOME": str(tmp_path)}
    shown = CliRunner().invoke(agelab, ["show", run.name], env=home).output
    assert f"  reused      {where}\n" in shown
    [cell] = json.loads(CliRunner().invoke(agelab, ["show", "--json"], env=home).output)["cells"]
    assert cell["reused"]["run"] == "first" and cell["disputes"] is None
    assert "1 ok (reused)" in CliRunner().invoke(agelab, ["list"], env=home).output
    for form in ("csv", "jsonl", "junit"):
        output = CliRunner().invoke(agelab, ["export", "latest", "--format", form], env=home).output
        assert where in output, form
    page = tmp_path / "page.html"
    CliRunner().invoke(agelab, ["report", "latest", "-o", str(page)], env=home)
    assert f"1 cell of {where}" in page.read_text()
