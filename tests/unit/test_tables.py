"""The tables of the pages: their blocks, what they are of, and what becomes of them."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from docs.make.made import Made

from agelab.base import places
from agelab.base.errors import InputError
from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from agelab.run.prepare.planned import planned_cells
from agelab.run.request.options import RunOptions
from docs.make import __main__ as command
from docs.make import block, catalogue, check, dependencies, made, make
from docs.make.block import Block
from docs.make.catalogue import Catalogue, Table
from tests.unit import run_builder

OLD, NEW = "0" * 16, "1" * 16
TODAY = date(2026, 11, 25)
BODY = "| a | b |\n| --- | --- |\n| ext4 | 1 |\n| xfs | 2 |"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A page in a repository of its own, whose code has the hash NEW."""
    for module in (catalogue, block, check):
        monkeypatch.setattr(module, "PROJECT", tmp_path)
    monkeypatch.setattr(make, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(dependencies, "key", lambda _: NEW)
    (tmp_path / "docs").mkdir()
    yield tmp_path / "docs/page.md"


def table(**fields: object) -> Table:
    usual = {"name": "one", "page": "docs/page.md", "maker": "show", "runs": [{"name": "aging-ext4"}]}
    return Table.model_validate({**usual, **fields})


def written(page: Path, of: str = OLD, **fields: object) -> Block:
    """Put a block into the page, between two lines of prose."""
    there = replace(Block("one", of, TODAY, None, BODY), **fields)  # type: ignore[arg-type]
    page.write_text(f"before\n\n{there.text()}\nafter\n")
    return there


# ---- blocks ----


@pytest.mark.parametrize("stale", [False, True])
@pytest.mark.parametrize("seconds", [None, 214])
def test_a_block_is_read_as_it_was_written(page: Path, stale: bool, seconds: int | None) -> None:
    there = written(page, stale=stale, seconds=seconds)
    assert block.blocks(page) == [there]
    block.replace(table(), there)
    assert page.read_text() == f"before\n\n{there.text()}\nafter\n"


def test_a_stale_block_says_so_to_the_reader(page: Path) -> None:
    written(page, stale=True)
    assert (
        "-->\n*Of an earlier agelab (harness of 2026-11-25): not made again yet.*\n\n| a |"
        in page.read_text()
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<!-- table: one -->\n<!-- end -->\n", "docs/page.md:1: not the mark of a table"),
        ("<!-- made by: hand -->\n<!-- end -->\n", "docs/page.md:1: not the mark of a table"),
        (f"x\n<!-- table: one of: {OLD} made: 2026-11-25 -->\ny\n", "docs/page.md:2: table one has no line"),
        ("no block\n", "docs/page.md has no blocks of table one"),
        (2 * Block("one", OLD, TODAY, None, BODY).text(), "docs/page.md has 2 blocks of table one"),
    ],
)
def test_a_page_without_the_block_is_told_with_its_line(page: Path, text: str, said: str) -> None:
    page.write_text(text)
    with pytest.raises(InputError, match=said):
        block.find(table())


# ---- make check ----


def errors(page: Path) -> list[str]:
    return list(check.errors(Catalogue(tables=(table(),)), [page]))


def test_a_block_of_this_code_passes(page: Path) -> None:
    written(page, NEW)
    assert errors(page) == []


def test_a_block_of_another_code_fails_and_names_page_table_and_command(page: Path) -> None:
    written(page)
    [said] = errors(page)
    assert said.startswith("docs/page.md: table one is of an earlier code")
    assert "make tables NAME=one" in said


def test_a_block_that_says_that_it_is_of_an_earlier_code_passes_and_is_counted(page: Path) -> None:
    written(page, stale=True)
    assert errors(page) == []
    assert check.stale(Catalogue(tables=(table(),))) == [table()]


def test_a_block_of_this_code_may_not_say_that_it_is_not(page: Path) -> None:
    written(page, NEW, stale=True)
    [said] = errors(page)
    assert "says that it is of an earlier one" in said


def test_a_block_that_no_table_is_for_fails(page: Path) -> None:
    written(page, NEW)
    other = replace(Block("two", NEW, TODAY, None, BODY))
    page.write_text(page.read_text() + other.text())
    assert errors(page) == ["docs/page.md: docs/tables.toml has no table two in this page"]


def test_a_digest_outside_of_a_block_fails(page: Path) -> None:
    written(page, NEW, body=f"  digest sha256:{'1' * 64}")
    assert errors(page) == []
    page.write_text(f"{page.read_text()}\n  digest sha256:{'2' * 64}\n")
    [said] = errors(page)
    assert re.match(r"docs/page.md:\d+: a digest that is in no table", said)


# ---- make tables ----


def maker(text: str, files: dict[Path, bytes] | None = None) -> Callable[[Table], made.Maker]:
    def make_it(table: Table, runs: Sequence[RunDirectory]) -> Made:
        return Made(text, files or {})

    return lambda _: make_it


@pytest.fixture
def runs(tmp_path: Path) -> Sequence[RunDirectory]:
    """A run of two cells, one of them not ok."""
    run = run_builder.begin(tmp_path, run_builder.cells(["ext4", "xfs"]))
    run_builder.end(run, 0, [run_builder.sample()], host_seconds=20)
    run_builder.end(run, 1, [], status=Status.FAILED, reason="no room", host_seconds=2)
    return [run]


def outcome(monkeypatch: pytest.MonkeyPatch, runs: Sequence[RunDirectory], made_by: object) -> make.Outcome:
    monkeypatch.setattr(make, "maker", made_by)
    return make.Making(lambda options, kernels: runs, True).make(table())


def test_what_changed_is_told_row_by_row(
    page: Path, monkeypatch: pytest.MonkeyPatch, runs: Sequence[RunDirectory]
) -> None:
    written(page, stale=True)
    drawn = {Path("one/map.svg"): b"<svg/>"}
    found = outcome(monkeypatch, runs, maker(BODY.replace("| xfs | 2 |", "| xfs | 3 |"), drawn))
    assert found.word == "changed"
    assert found.lines == ["-| xfs | 2 |", "+| xfs | 3 |", "picture docs/one/map.svg"]
    assert found.cells == "2 cells, 0 reused, 1 not ok"
    there = block.find(table())
    assert (there.of, there.stale, there.seconds) == (NEW, False, 22)
    assert (page.parent / "one/map.svg").read_bytes() == b"<svg/>"
    before = page.read_text()
    again = outcome(monkeypatch, runs, maker(there.body, drawn))
    assert (again.word, page.read_text()) == ("unchanged", before)


def test_a_table_that_fails_keeps_its_block_and_marks_it(
    page: Path, monkeypatch: pytest.MonkeyPatch, runs: Sequence[RunDirectory]
) -> None:
    def fails(table: Table) -> made.Maker:
        raise InputError("the runs differ in kernel", hint="choose one")

    written(page)
    found = outcome(monkeypatch, runs, fails)
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
    page.write_text(page.read_text() + replace(block.find(table()), name="two").text())
    monkeypatch.setattr(make, "maker", maker(BODY))
    making = make.Making(run, False)
    assert [making.make(table(name=name)).word for name in ("one", "two")] == ["unchanged", "unchanged"]
    assert len(asked) == 1


def test_a_table_that_takes_data_of_others_is_left_without_them(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRACES", raising=False)
    written(page)
    found = make.Making(lambda options, kernels: [], True).make(table(runs=[], needs="TRACES"))
    assert found.word == "left" and "TRACES=<directory>" in found.why
    assert block.find(table()).stale


def test_a_command_that_writes_two_blocks_runs_once(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (table(name=name, runs=[], maker="both") for name in ("one", "two"))
    written(page, stale=True)
    page.write_text(page.read_text() + replace(block.find(one), name="two").text())
    ran: list[str] = []

    def command(table: Table) -> None:
        ran.append(table.maker)
        for each in (one, two):
            block.replace(each, Block(each.name, NEW, TODAY, None, BODY.replace("1", each.name)))

    monkeypatch.setattr(catalogue, "read", lambda: Catalogue(tables=(one, two)))
    monkeypatch.setattr(make, "_command", command)
    making = make.Making(lambda options, kernels: [], True)
    assert [making.make(each).lines for each in (one, two)] == [
        ["-| ext4 | 1 |", "+| ext4 | one |"],
        ["-| ext4 | 1 |", "+| ext4 | two |"],
    ]
    assert ran == ["both"]


def test_a_table_of_interrupted_cells_is_not_made(
    page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    written(page, stale=True)
    run = run_builder.begin(tmp_path, run_builder.cells(["ext4", "xfs"]))
    run_builder.end(run, 0, [run_builder.sample()])
    found = outcome(monkeypatch, [run], maker("less"))
    assert (found.word, found.why.split("\n")[0]) == ("failed", "1 of 2 cells were interrupted")
    assert block.find(table()).body == BODY


def test_a_table_without_a_run_is_not_made_where_its_code_is_the_same(page: Path) -> None:
    written(page, NEW)
    found = make.Making(lambda options, kernels: [], False).make(table(runs=[], maker="no_such_maker"))
    assert (found.word, found.lines) == ("unchanged", ())


def test_cells_that_are_known_are_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(catalogue.PROJECT)
    monkeypatch.setenv("AGELAB_FRESH", "1")  # as bench/ has it for its own measurements
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.argv", ["tables", "--stale", "--name", "press"])
    monkeypatch.setattr(make, "mark", lambda _: False)
    assert command.main() == 0
    assert "AGELAB_FRESH" not in os.environ


class Interrupted(make.Making):
    """Makes the first table, then Ctrl-C comes."""

    def make(self, table: Table) -> make.Outcome:
        if table.name != "one":
            raise KeyboardInterrupt
        return make.Outcome(table, "changed", lines=["-old", "+new"])


def test_an_interruption_says_what_was_made_and_what_was_not(capsys: pytest.CaptureFixture[str]) -> None:
    making = Interrupted(lambda options, kernels: [], False)
    assert command._make(making, [table(), table(name="two"), table(name="three")]) == 130
    said = capsys.readouterr().out
    assert "changed    one (docs/page.md)\n           -old\n           +new\n" in said
    assert "not made: two, three\ninterrupted: the same command goes on" in said


class Failing(make.Making):
    """Makes no table."""

    def make(self, table: Table) -> make.Outcome:
        return make.Outcome(table, "failed", "no room\nfree some")


def test_a_failed_table_is_an_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert command._make(Failing(lambda options, kernels: [], False), [table()]) == 1
    assert (
        "failed     one (docs/page.md)\n           no room\n           free some\n" in capsys.readouterr().out
    )


# ---- what a table is of ----


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository of a few files, in place of this one."""
    for name, text in {
        "harness/main.py": "main",
        "bench/mine.py": "from agelab.stats import series\nimport bench.other\n",
        "bench/other.py": "other",
        "agelab/stats/series.py": "series",
        "docs/page.md": "page",
        "data/traces": "traces",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(dependencies, "PROJECT", tmp_path)
    monkeypatch.setattr(dependencies, "GUEST", (tmp_path / "harness",))
    monkeypatch.setattr(dependencies, "HOST", ())
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    for one in (dependencies.guest, dependencies.host, dependencies._maker):
        one.cache_clear()


@pytest.mark.parametrize("pattern", dependencies.HOST)
def test_every_pattern_of_what_shapes_a_guest_finds_files(pattern: str) -> None:
    assert list(places.PACKAGE.glob(pattern))


def test_a_file_that_there_is_not_is_told() -> None:
    with pytest.raises(InputError, match=r"a table is of harness/gone.c, which there is not"):
        dependencies.key(table(of=["harness/gone.c"]))


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        ("harness/main.py", True),
        ("harness/new.py", True),
        ("bench/mine.py", True),
        ("bench/other.py", True),
        ("agelab/stats/series.py", True),
        ("data/traces", True),
        ("docs/page.md", False),
        ("harness/__pycache__/main.pyc", False),
        ("harness/.main.py.swp", False),
    ],
)
def test_the_hash_is_of_the_code_and_data_that_the_table_is_made_of(
    code: Path, changed: str, differs: bool
) -> None:
    mine = table(maker="mine", of=["data"])
    before = dependencies.key(mine)
    (code / changed).parent.mkdir(exist_ok=True)
    (code / changed).write_text("from agelab.stats import series\nimport bench.other\nchanged = 1\n")
    forget()
    assert (dependencies.key(mine) != before) is differs


def test_the_hash_is_of_what_the_run_is_asked_for_and_not_of_how_many_cells_run_at_a_time() -> None:
    def key(**words: str) -> str:
        return dependencies.key(table(runs=[{"name": "aging-ext4", **words}]))

    keys = [key(), key(seeds="1,2"), key(layout="raid0"), key(kernel="6.12"), key(defaults="today")]
    assert len(set(keys)) == len(keys)
    assert key() == keys[0]


def test_a_cell_is_its_filesystem_its_drive_and_its_machine() -> None:
    [spec] = planned_cells(RunOptions(name="aging-ext4"))
    found = dependencies.cell(spec)
    assert found["filesystem"]["name"] == "ext4"
    assert found["machine"]["name"] == "pentium4-2800"
    assert "seagate-st3120026as" in str(found["disk"])


# ---- docs/tables.toml ----


@pytest.mark.parametrize("one", catalogue.read().tables, ids=lambda one: one.name)
def test_every_table_has_its_page_its_maker_and_its_files(one: Table) -> None:
    assert one.path.exists()
    assert (catalogue.PROJECT / "bench" / f"{one.maker}.py").exists()
    assert [name for name in one.of if not (catalogue.PROJECT / name).exists()] == []
    assert len(dependencies.key(one)) == dependencies.DIGITS
    if one.runs:
        assert callable(made.maker(one))


def test_an_error_of_the_catalogue_names_file_and_table(tmp_path: Path) -> None:
    path = tmp_path / "tables.toml"
    path.write_text(
        '[[tables]]\nname = "one"\npage = "README.md"\nmaker = "show"\nruns = [{ sedes = "1" }]\n'
    )
    with pytest.raises(InputError, match=r"tables.toml: table one: no option of a run 'sedes'"):
        catalogue.read(path)
    with pytest.raises(InputError, match="no table 'agin'"):
        catalogue.read().named("agin")
