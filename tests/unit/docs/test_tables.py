"""The tables of the pages: their blocks, what they are of, the proof of it, and what becomes of them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from agelab.base import places
from agelab.base.errors import InputError
from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from agelab.runner.plan.guest_plan import guest_plan
from agelab.runner.request.options import RunOptions
from docs.make import __main__ as program
from docs.make import block, catalogue, make, proof
from docs.make.block import Block
from docs.make.catalogue import Catalogue, Made, Table
from docs.make.page import PROJECT
from tests.build import run_builder

OLD, NEW = "0" * 16, "1" * 16
TODAY = date(2026, 11, 25)
BODY = "| a | b |\n| --- | --- |\n| ext4 | 1 |\n| xfs | 2 |"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page in a repository of its own, where all that a table is of has the hash NEW."""
    for module in (catalogue, block, make):
        monkeypatch.setattr(module, "PROJECT", tmp_path)
    for module in (make, proof):
        monkeypatch.setattr(module, "DOCS", tmp_path / "docs")
    for name in ("cells", "text"):
        monkeypatch.setattr(proof, name, lambda _: NEW)
    monkeypatch.setattr(proof, "_stored", proof._stored.__wrapped__)
    (tmp_path / "docs").mkdir()
    return tmp_path / "docs/page.md"


def table(**fields: object) -> Table:
    usual = {"name": "one", "page": "docs/page.md", "maker": "printed:show", "runs": [{"name": "aging-ext4"}]}
    return Table.model_validate({**usual, **fields})


def written(page: Path, **fields: object) -> Block:
    """Put a block of this code into the page, between two lines of prose."""
    there = replace(Block("one", TODAY, BODY, NEW, NEW), **fields)  # type: ignore[arg-type]
    page.write_text(f"before\n\n{there.lines()}\nafter\n")
    return there


def made(monkeypatch: pytest.MonkeyPatch, text: str, files: dict[Path, bytes] | None = None) -> None:
    """Have every maker make this."""
    monkeypatch.setattr(Table, "made", lambda table, runs: Made(text, files or {}))


# ---- blocks ----


@pytest.mark.parametrize(
    "fields", [{}, {"stale": True, "cells": "", "text": ""}, {"seconds": 214, "samples": ("1fa2c09d", "00000000")}]
)
def test_a_block_is_read_as_it_was_written(page: Path, fields: dict[str, object]) -> None:
    there = written(page, **fields)
    before = page.read_text()
    assert block.blocks(page) == [there]
    block.replace(table(), there)
    assert page.read_text() == before
    assert ("*Of an earlier agelab (harness of 2026-11-25)" in before) is there.stale


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("<!-- table: one -->\n<!-- end -->\n", "docs/page.md:1: not the mark of a table"),
        ("<!-- made by: hand -->\n<!-- end -->\n", "docs/page.md:1: not the mark of a table"),
        ("x\n<!-- table: one made: 2026-11-25 -->\ny\n", "docs/page.md:2: table one has no line"),
        ("no block\n", "docs/page.md has no blocks of table one"),
        (2 * Block("one", TODAY, BODY).lines(), "docs/page.md has 2 blocks of table one"),
    ],
)
def test_a_page_without_the_block_is_an_error_with_its_line(page: Path, text: str, error: str) -> None:
    page.write_text(text)
    with pytest.raises(InputError, match=error):
        block.find(table())


# ---- make check ----


def errors(page: Path) -> list[str]:
    return list(make.errors(Catalogue(tables=(table(),)), [page], page.parent / "runs"))


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({}, ""),
        ({"stale": True}, "is of this code, and says"),
        ({"cells": OLD}, "the keys of its cells have changed\n  make it again: make tables NAME=one;"),
        ({"cells": OLD, "stale": True}, ""),
        ({"text": OLD}, "this store does not prove"),
        ({"text": OLD, "stale": True}, ""),
        ({"text": "", "cells": ""}, "the keys of its cells"),
    ],
)
def test_a_block_of_another_code_fails_unless_it_says_so(page: Path, fields: dict[str, object], wrong: str) -> None:
    written(page, **fields)
    found = errors(page)
    assert len(found) == bool(wrong)
    assert not found or (found[0].startswith("docs/page.md: table one is ") and wrong in found[0])


def test_a_block_that_no_table_is_for_fails_and_so_does_a_digest_outside_of_a_block(page: Path) -> None:
    other = Block("two", TODAY, f"  digest sha256:{'1' * 64}")
    written(page)
    page.write_text(f"{page.read_text()}{other.lines()}\n  digest sha256:{'2' * 64}\n")
    first, second = errors(page)
    assert first == "docs/page.md: docs/tables.toml has no table two in this page"
    assert re.match(r"docs/page.md:\d+: a digest that is in no table", second)


# ---- make tables ----


@pytest.fixture
def runs(tmp_path: Path) -> Sequence[RunDirectory]:
    """A run of two cells, one of them not ok."""
    run = run_builder.begin(tmp_path, run_builder.cells(["ext4", "xfs"]))
    run_builder.end(run, 0, [run_builder.sample()], host_seconds=20)
    run_builder.end(run, 1, [], status=Status.FAILED, reason="no room", host_seconds=2)
    return [run]


def outcome(runs: Sequence[RunDirectory]) -> make.Outcome:
    return make.Making(lambda options, kernels: runs, True).make(table())


def test_what_changed_is_told_row_by_row(
    page: Path, monkeypatch: pytest.MonkeyPatch, runs: Sequence[RunDirectory]
) -> None:
    written(page, stale=True, cells="", text="")
    drawn = {Path("one/map.svg"): b"<svg/>"}
    made(monkeypatch, BODY.replace("| xfs | 2 |", "| xfs | 3 |"), drawn)
    found = outcome(runs)
    assert found.word == "changed"
    assert found.lines == ["-| xfs | 2 |", "+| xfs | 3 |", "picture docs/one/map.svg"]
    assert found.cells == "2 cells, 0 reused, 1 not ok"
    there = block.find(table())
    assert (there.cells, there.text, there.stale, there.seconds) == (NEW, NEW, False, 22)
    assert there.samples == proof.samples(runs)
    assert (page.parent / "one/map.svg").read_bytes() == b"<svg/>"
    before = page.read_text()
    assert (outcome(runs).word, page.read_text()) == ("unchanged", before)


def test_a_table_that_fails_keeps_its_block_and_marks_it(
    page: Path, monkeypatch: pytest.MonkeyPatch, runs: Sequence[RunDirectory]
) -> None:
    def fails(table: Table, runs: Sequence[RunDirectory]) -> Made:
        raise InputError("the runs differ in kernel", hint="choose one")

    monkeypatch.setattr(Table, "made", fails)
    written(page, cells=OLD)
    found = outcome(runs)
    assert (found.word, found.why) == ("failed", "the runs differ in kernel\nchoose one")
    assert (block.find(table()).body, block.find(table()).stale) == (BODY, True)


def test_a_run_of_several_tables_is_made_once(
    page: Path, monkeypatch: pytest.MonkeyPatch, runs: Sequence[RunDirectory]
) -> None:
    asked: list[RunOptions] = []

    def run(options: RunOptions, kernels: Sequence[str]) -> Sequence[RunDirectory]:
        asked.append(options)
        return runs

    written(page)
    page.write_text(page.read_text() + replace(block.find(table()), name="two").lines())
    made(monkeypatch, BODY)
    making = make.Making(run, False)
    assert [making.make(table(name=name)).word for name in ("one", "two")] == ["unchanged", "unchanged"]
    assert len(asked) == 1


def test_a_table_that_takes_data_of_others_is_left_without_them(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRACES", raising=False)
    written(page, text=OLD)
    found = make.Making(lambda options, kernels: [], True).make(table(runs=[], needs="TRACES"))
    assert found.word == "left" and "TRACES=<directory>" in found.why
    assert block.find(table()).stale


def test_a_command_that_writes_two_blocks_runs_once(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (table(name=name, runs=[], maker="both") for name in ("one", "two"))
    written(page, stale=True)
    page.write_text(page.read_text() + replace(block.find(one), name="two").lines())
    ran: list[str] = []

    def command(table: Table) -> None:
        ran.append(table.maker)
        for each in (one, two):
            block.replace(each, Block(each.name, TODAY, BODY.replace("1", each.name)))

    monkeypatch.setattr(catalogue, "read", lambda: Catalogue(tables=(one, two)))
    monkeypatch.setattr(make, "_command", command)
    making = make.Making(lambda options, kernels: [], True)
    assert [making.make(each).lines for each in (one, two)] == [
        ["-| ext4 | 1 |", "+| ext4 | one |"],
        ["-| ext4 | 1 |", "+| ext4 | two |"],
    ]
    assert ran == ["both"]


def test_a_table_of_interrupted_cells_is_not_made(page: Path, tmp_path: Path) -> None:
    written(page, stale=True, cells=OLD)
    run = run_builder.begin(tmp_path, run_builder.cells(["ext4", "xfs"]))
    run_builder.end(run, 0, [run_builder.sample()])
    found = outcome([run])
    assert (found.word, found.why.split("\n")[0]) == ("failed", "1 of 2 cells were interrupted")
    assert block.find(table()).body == BODY


def test_a_table_without_a_run_is_not_made_where_its_code_is_the_same(page: Path) -> None:
    written(page)
    found = make.Making(lambda options, kernels: [], False).make(table(runs=[], maker="no_such_maker"))
    assert (found.word, found.lines) == ("unchanged", ())


class Interrupted(make.Making):
    """Fails at the first table; at the next one Ctrl-C comes."""

    def make(self, table: Table) -> make.Outcome:
        if table.name != "one":
            raise KeyboardInterrupt
        return make.Outcome(table, "failed", "no room")


def test_an_interruption_says_what_was_made_and_what_was_not(capsys: pytest.CaptureFixture[str]) -> None:
    making = Interrupted(lambda options, kernels: [], False)
    assert program._make(making, [table()]) == 1
    assert program._make(making, [table(), table(name="two"), table(name="three")]) == 130
    said = capsys.readouterr().out
    assert "failed     one (docs/page.md)\n           no room\n" in said
    assert "not made: two, three\n" in said


# ---- proof ----


@pytest.mark.parametrize(
    ("text", "drawn", "stored", "same"),
    [
        (BODY, b"<svg/>", True, True),
        (BODY.replace("2", "3"), b"<svg/>", True, False),
        (BODY, b"<svg></svg>", True, False),
        (BODY, b"<svg/>", False, None),
    ],
)
def test_other_code_is_proved_by_the_samples_of_a_store(
    page: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    runs: Sequence[RunDirectory],
    text: str,
    drawn: bytes,
    stored: bool,
    same: bool | None,
) -> None:
    there = written(page, text=OLD, samples=proof.samples(runs))
    made(monkeypatch, text, {Path("map.svg"): drawn})
    (page.parent / "map.svg").write_bytes(b"<svg/>")
    place = tmp_path / ("runs" if stored else "others")
    assert proof.makes_the_same(table(), there, place) is same
    assert proof.makes_the_same(table(beyond=True), there, place) is None
    assert proof.makes_the_same(table(), replace(there, cells=OLD), place) is None
    [wrong] = make.errors(Catalogue(tables=(table(),)), [page], place)
    assert ("makes the same of the same samples" in wrong) is bool(same)
    assert make.mark(table(), place) is (not same)
    assert (block.find(table()).stale, block.find(table()).text) == ((False, NEW) if same else (True, OLD))
    assert make.mark(table(), place) is None


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository of a few files, in place of this one."""
    for name, text in {
        "docs/make/mine.py": "from agelab.stats import series\nimport docs.make.other\n",
        "docs/make/other.py": "other",
        "agelab/stats/series.py": "import agelab.deep",
        "agelab/stats/__init__.py": "",
        "agelab/deep.py": "deep",
        "agelab/unused.py": "unused",
        "data/traces": "traces",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(proof, "PROJECT", tmp_path)
    monkeypatch.setattr(places, "PACKAGE", tmp_path / "agelab")
    for cached in (proof._imported, proof._code_hash):
        cached.cache_clear()
    yield tmp_path
    for cached in (proof._imported, proof._code_hash):
        cached.cache_clear()


@pytest.mark.parametrize(
    ("changed", "of_runs", "of_others"),
    [
        ("docs/make/mine.py", True, True),
        ("docs/make/other.py", True, True),
        ("agelab/stats/series.py", True, False),
        ("agelab/deep.py", True, False),
        ("agelab/unused.py", False, False),
        ("data/traces", True, True),
        ("data/__pycache__/traces.pyc", False, False),
        ("data/.traces.swp", False, False),
    ],
)
def test_the_text_is_of_the_code_and_the_data_that_it_is_made_by(
    code: Path, changed: str, of_runs: bool, of_others: bool
) -> None:
    tables = [table(maker="mine", of=["data"]), table(maker="mine", of=["data"], runs=[])]
    before = list(map(proof.text, tables))
    (code / changed).parent.mkdir(exist_ok=True)
    with (code / changed).open("a") as file:
        file.write("\nchanged = 1\n")
    proof._imported.cache_clear()
    proof._code_hash.cache_clear()
    after = list(map(proof.text, tables))
    assert [one != other for one, other in zip(before, after, strict=True)] == [of_runs, of_others]


def test_cells_are_what_the_run_is_asked_for_and_what_its_guests_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def cells(**words: str) -> str:
        return proof.cells(table(runs=[{"name": "aging-ext4", **words}]))

    asked = [{}, {"seeds": "1,2"}, {"layout": "raid0"}, {"kernel": "6.12"}, {"defaults": "today"}]
    keys = [cells(**words) for words in asked]
    assert len(set(keys)) == len(keys)
    assert cells() == keys[0] and proof.cells(table(runs=[])) == ""
    monkeypatch.setattr(proof, "guest_plan", lambda *what: {**guest_plan(*what), "entropy": "other"})
    proof._planned.cache_clear()
    assert cells() != keys[0]
    proof._planned.cache_clear()


# ---- docs/tables.toml ----


@pytest.mark.parametrize("one", catalogue.read().tables, ids=lambda one: one.name)
def test_every_table_has_its_page_its_maker_and_its_files(one: Table) -> None:
    assert one.path.exists()
    assert (PROJECT / f"{one.module.replace('.', '/')}.py").exists()
    assert [name for name in one.of if not (PROJECT / name).exists()] == []
    assert not one.runs or callable(one.function)


def test_an_error_of_the_catalogue_names_file_and_table(tmp_path: Path) -> None:
    path = tmp_path / "tables.toml"
    path.write_text('[[tables]]\nname = "one"\npage = "README.md"\nmaker = "printed:show"\nruns = [{ sedes = "1" }]\n')
    with pytest.raises(InputError, match=r"tables.toml: table one: no option of a run 'sedes'"):
        catalogue.read(path)
    with pytest.raises(InputError, match="no table 'agin'"):
        catalogue.read().named("agin")
