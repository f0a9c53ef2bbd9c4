"""What each verb does with each difference between two runs: the table, and the words, which are the same in all."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agelab import kernel as kernels
from agelab.analysis.cells import load, run_sets, seed_groups
from agelab.analysis.comparison import caveats
from agelab.analysis.published.phrasing import describe_column
from agelab.analysis.published.run_columns import run_columns
from agelab.analysis.sweep import load_sweep
from agelab.base.errors import InputError
from agelab.bisect.kernel_runs import KernelRuns
from agelab.bisect.track.question import Track
from agelab.bisect.track.runs import under
from agelab.cli import main
from agelab.results.conditions import Conditions, apart, grouped, text
from agelab.results.result import RunKernel
from agelab.results.run_directory import MADE_OF, RunDirectory
from agelab.runner.execute import runner
from agelab.runner.execute.run_plan import refuse_other_inputs
from agelab.runner.request.options import RunOptions
from agelab.store.artefacts import Store
from tests.build import run_builder
from tests.build import simulated_bisect as simulated

TABLE = """
              sweep    report   track    compare  columns  bisect   resume
scenario      refused  part     apart    refused  taken    refused  refused
scale         refused  part     apart    refused  apart    refused  refused
clock         refused  part     apart    refused  apart    refused  refused
processor     refused  part     apart    refused  apart    refused  refused
steps         refused  named    apart    named    named    refused  refused
variant       taken    taken    taken    taken    taken    refused  refused
layout        taken    taken    taken    taken    taken    refused  refused
defaults      refused  taken    apart    taken    apart    refused  refused
machine       refused  taken    apart    taken    apart    refused  refused
band          refused  taken    apart    taken    apart    refused  refused
block_layer   refused  taken    apart    taken    apart    refused  refused
drives        refused  taken    apart    taken    apart    refused  refused
options       refused  named    apart    named    named    refused  refused
effort        taken    taken    taken    taken    taken    taken    taken
kernel        taken    taken    taken    taken    apart    taken    refused
image         taken    taken    taken    taken    named    taken    refused
guest         refused  named    apart    named    named    refused  taken
harness       refused  named    apart    named    named    refused  refused
qemu          refused  named    apart    named    named    refused  refused
vcpus         refused  named    apart    named    named    refused  refused
brought       refused  named    apart    named    named    refused  refused
files         refused  named    apart    named    named    refused  taken
profiles      refused  named    taken    named    taken    refused  refused
cells         taken    taken    taken    taken    taken    taken    refused
data          refused  named    apart    refused  named    refused  refused
corpus_seeds  taken    taken    taken    refused  taken    taken    refused
run_seeds     taken    taken    taken    taken    taken    taken    refused
host          refused  named    apart    named    named    refused  taken
jobs          refused  named    taken    named    named    taken    refused
"""
"""Taken: as what is varied. Named: kept apart (compare: shown beside the table), in the words that refuse elsewhere.

Part and apart: in a part or a column of its own, whose head says what it is. Columns are of runs of other seeds. A plan
that is resumed has an image, and no files and packages. A track is begun anew where it is apart.
"""

HASHED = {"steps": "scenario", "image": "image_content", "data": "corpus_sha256"}
"""Names that a plan's provenance has under another."""
CELLS: Mapping[str, Mapping[str, Any]] = {
    "processor": {"accelerator": "kvm"},
    "variant": {"variant": "xfs"},
    "layout": {"layout": "raid0"},
    "defaults": {"defaults": "today"},
    "machine": {"machine": "other"},
    "band": {"machine": "m:low"},
    "block_layer": {"machine": "m+scheduler=bfq"},
    "drives": {"drives": ("model:other",)},
    "corpus_seeds": {"corpus_seed": 2},
}
WORDS: Mapping[str, dict[str, Any]] = {"options": {"fail": "1@copy"}, "effort": {"boot": "full"}, "jobs": {"jobs": 2}}
WALL = ("processor", "host", "jobs")
"""Names that mean something in the wall clock alone."""


def made(home: Path, name: str = "", *, seeds: tuple[int, ...] = (1, 2), wall: bool = False) -> RunDirectory:
    """A run, which differs from others by that name, or by none."""
    variants = ("ext4", "jfs") if name == "cells" else ("ext4",)
    seeds = tuple(seed + 2 for seed in seeds) if name == "run_seeds" else seeds
    cells = run_builder.cells(variants, seeds)
    cells = tuple(cell.model_copy(update=dict(CELLS.get(name, {}))) for cell in cells)
    provenance: dict[str, Any] = {"corpus_sha256": "a" * 64, "scenario": "b" * 64, "qemu": "7.2", "host": "here"}
    if name in Conditions.model_fields.keys() - CELLS.keys() - WORDS.keys() - {"cells", "run_seeds"}:
        provenance[HASHED.get(name, name)] = "c" * 64
    release = "6.12.1" if name == "kernel" else "6.1.2"
    run = run_builder.begin(
        home,
        cells,
        scenario="piszcz-2006" if name == "scenario" else "aging",
        scale="paper" if name == "scale" else "quick",
        clock="wall" if wall or name == "clock" else "virtual",
        kernel=RunKernel(spec=f"debian:{release}", release=release, version=release),
        provenance=provenance,
        command=RunOptions(name="aging", directory="/", **WORDS.get(name, {})).to_plan(),
    )
    (run.path / MADE_OF).write_text(json.dumps({"guest": {"root": name == "guest"}}))
    for number in range(len(cells)):
        inputs = {"making": {"machine": {"shift": 1 if name == "files" else 0}}}
        run_builder.end(run, number, [run_builder.sample()], inputs=inputs)
    return run


WATCH = {"scenario": "aging", "metrics": ["copy:elapsed"]}
Said = tuple[str, str]
"""What a verb does, and what it says."""


def sweep(one: RunDirectory, other: RunDirectory) -> Said:
    load_sweep([one, other])
    return "taken", ""


def report(one: RunDirectory, other: RunDirectory) -> Said:
    found = run_sets([load(one), load(other)])
    return ("taken", "") if len(found) == 1 else ("named", found[1].apart) if found[1].apart else ("part", "")


def compare(one: RunDirectory, other: RunDirectory) -> Said:
    said = caveats(seed_groups(load(one))[0], seed_groups(load(other))[0], anyway=False)
    return ("named", "; ".join(said)) if said else ("taken", "")


def columns(one: RunDirectory, other: RunDirectory) -> Said:
    found = run_columns([load(one), load(other)])
    if len(found) == 1:
        return "taken", ""
    return ("named", describe_column(found[1])) if found[1].apart else ("apart", "")


def bisect(one: RunDirectory, other: RunDirectory) -> Said:
    found: Iterator[RunDirectory] = iter([one, other])
    store = Store(one.home)
    measure = KernelRuns(simulated.asked(store, simulated.planted(3)), store)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kernels, "resolve", lambda *_, **__: None)
        patched.setattr(runner, "run", lambda *_: next(found))
        for kernel in "12":
            measure.run(kernel, [1])
    return "taken", ""


def resume(one: RunDirectory, other: RunDirectory) -> Said:
    refuse_other_inputs(one.plan(), other.plan())
    return "taken", ""


def track(one: RunDirectory, other: RunDirectory) -> Said:
    asked = Track.model_validate({"name": "t", "minutes": 1, "page": "p", "debian": {}, "watch": [WATCH]})
    hashes = [under(asked, run, run.cells[0]) for run in map(load, (one, other))]
    return ("taken" if len({*hashes}) == 1 else "apart"), ""


VERBS: Mapping[str, Callable[[RunDirectory, RunDirectory], Said]] = {
    "sweep": sweep, "report": report, "track": track, "compare": compare, "columns": columns,
    "bisect": bisect, "resume": resume,
}  # fmt: skip
ROWS = [line.split() for line in TABLE.strip().splitlines()]
EXPECTED = [(name, verb, does) for name, *row in ROWS[1:] for verb, does in zip(ROWS[0], row, strict=True)]


@pytest.mark.parametrize(("name", "verb", "does"), EXPECTED)
def test_what_a_verb_does_with_a_difference(tmp_path: Path, name: str, verb: str, does: str) -> None:
    seeds = (3, 4) if verb == "columns" else (1, 2)
    one, other = made(tmp_path, wall=name in WALL), made(tmp_path, name, seeds=seeds, wall=name in WALL)
    try:
        done, said = VERBS[verb](one, other)
    except InputError as error:
        done, said = "refused", str(error)
    assert done == does, said
    if does in ("refused", "named"):
        ours, theirs = load(one).conditions[0], load(other).conditions[0]
        [*words] = (text({name: both}) for both in (ours.differences(theirs)[name], theirs.differences(ours)[name]))
        assert any(word in said for word in words)


def test_the_table_has_every_name_and_every_verb() -> None:
    assert ROWS[0] == [*VERBS]
    assert [row[0] for row in ROWS[1:]] == [*Conditions.model_fields]


def test_a_change_of_harness_and_qemu_is_nowhere_the_kernel_s(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sweep called it the kernel's, with a star; report took both runs for ten seeds of one series."""
    monkeypatch.chdir(home)
    names = []
    for kernel, hashed, seconds in (("6.1", "a", 10.0), ("6.12", "c", 12.0)):
        cells = run_builder.cells(["ext4"], range(1, 6), kernel=kernel)
        booted = RunKernel(spec=f"debian:{kernel}", release=kernel, version=kernel)
        provenance = {"harness": hashed * 64, "qemu": f"QEMU {kernel}"}
        run = run_builder.begin(home, cells, scenario="small", kernel=booted, provenance=provenance)
        for number in range(5):
            run_builder.end(
                run, number, [run_builder.sample("copy", seconds + number / 100)], inputs={"harness": hashed}
            )
        names.append(run.name)
    words = "harness cccccccccccc | aaaaaaaaaaaa; QEMU 6.12 | 6.1"

    def said(*command: str, code: int) -> str:
        assert main([*command]) == code
        return " ".join("".join(capsys.readouterr()).split())

    assert f"do not belong into one table: {names[1]} | {names[0]}: {words}" in said("sweep", *names, code=2)
    shown = said("compare", *reversed(names), code=0)
    assert f"the two sides also differ in: {words}" in shown and "B faster" in shown
    said("report", *names, code=0)
    page = Path("report.html").read_text()
    assert f"In no table with other runs of this question: {names[1]} | {names[0]}: {words}." in page
    assert page.count("5 run seeds") and "10 run seeds" not in page


def test_runs_are_gathered_with_the_first_that_they_fit_and_what_keeps_them_apart_is_said_once(tmp_path: Path) -> None:
    runs = [load(made(tmp_path, name)) for name in ("", "harness", "run_seeds", "qemu", "harness")]
    varies = {"run_seeds", "cells"}
    groups = grouped(runs, varies)
    assert [[runs.index(run) for run in group] for group in groups] == [[0, 2], [1, 4], [3]]
    first = f"{runs[0].name}, {runs[2].name}"
    assert apart(groups, varies) == {
        1: f"{runs[1].name}, {runs[4].name} | {first}: harness cccccccccccc | not stated",
        2: f"{runs[3].name} | {first}: QEMU cccccccccccc | 7.2",
    }


def test_an_option_that_chooses_cells_is_no_difference() -> None:
    options = RunOptions(name="aging", kernel="6.12", seeds="2", boot="saved")  # type: ignore[arg-type]
    others = options.changed(kernel="6.1", seeds=(1,), jobs=2)
    plain, older, cut_short = (
        Conditions.of(run_builder.plan(command=asked.to_plan()), None)
        for asked in (options, others, options.changed(fail="1@copy", profile=True))
    )
    assert not older.differences(plain)
    said = "option fail none | 1@copy; option profile none | True"
    assert text(plain.differences(cut_short)) == said


def test_what_a_run_says_is_no_control_of_the_terminal() -> None:
    one, other = (
        Conditions.of(run_builder.plan(command={"digits": {"fail": word}}), None) for word in ("a", "\x1b[2J")
    )
    assert "\x1b" not in text(one.differences(other))
