"""The page of runs: what it says, and that nothing in a run breaks it."""

import json
import os
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path

import pytest

from agelab.analysis.cells import RunSet, last_slowdowns, load, run_sets
from agelab.present.report import tables
from agelab.present.report.answer.headline import answers
from agelab.present.report.blocks import Answer, Charts, Page, Section, Table
from agelab.present.report.command import repeat_command
from agelab.present.report.html import escape_unshown, render
from agelab.present.report.page import build_page, parse_block_map
from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from agelab.scenario.seeds import Seeds
from docs.make import example
from tests.build import aging_runs, run_builder, study_runs
from tests.build.cli import Cli
from tests.build.report_tables import cells

PICTURES = Path(__file__).parents[3] / "docs" / "aging"
FIVE = (1, 2, 3, 4, 5)
HOSTILE = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;\x1b[31m\x00\u202e{{ 7 * 7 }}"
VOID = {"meta", "link", "img", "input", "br"}


class Elements(HTMLParser):
    """The elements of a page; every element that is not void must be closed where it was opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def runs(home: Path, *names: str) -> list[RunSet]:
    return run_sets(load(RunDirectory(home / "runs" / name)) for name in names)


def answer(home: Path, slowdowns: Mapping[str, float], **more: object) -> Answer:
    [group] = runs(home, aging_runs.make(home, slowdowns, **more))  # type: ignore[arg-type]
    return next(answers(group))


def made(home: Path, *names: str) -> tuple[Page, Elements]:
    found = build_page(load(RunDirectory(home / "runs" / name)) for name in names)
    return found, Elements(render(found))


def test_who_aged_worst_is_said_where_it_is_distinguishable_from_all_others(tmp_path: Path) -> None:
    said = answer(tmp_path, {"ext4": 1.4, "btrfs": 2.2, "xfs": 1.2}, seeds=FIVE)
    assert said.question == "Which filesystem aged worst, and why?"
    assert said.named == "btrfs, in reading every file"
    assert said.verdict.startswith("That takes 2.")
    assert "The next is ext4 with 1." in said.verdict
    assert said.verdict.endswith(".")
    assert re.fullmatch(
        r"How sure: on this one set of files it is slowed down most, which is 1\.\d+ times the next one's \(1\.\d+ to "
        r"1\.\d+ on these files\)\. With 5 values each it is distinguishable from each of the 2 others \(rank test, "
        r"p at most 0\.008\)\. One corpus does not show that it holds for other files; needs 5 more corpora\.",
        said.sure,
    )
    more = "run aging --filesystem ext4,btrfs,xfs --seeds 1,2,3,4,5 --corpora 1,2,3,4,5,6"
    assert said.doubts == (f"To know of other files: {said.settled_by}",) and said.settled_by.endswith(more)
    because = " ".join(said.because)
    assert "3 of 3 are slower on their aged disk on this one set of files." in said.more
    assert "mostly positioning" in because
    assert re.search(r"; the arm moves \d{3,} times instead of \d{3}\.", because)
    assert "need not add up" in because
    assert re.search(
        r"Why btrfs and not ext4: of its unaged time btrfs takes \d+ % more for positioning, \d+ % for moving "
        r"data, \d+ % on the processor; ext4 \d+ %, \d+ % and \d+ %\.",
        because,
    )
    assert "of its files lie in several pieces (1.7 % unaged)" in because
    assert "xfs aged least" in " ".join(said.more)
    assert said.because[0] == (
        "In all tests: btrfs is the worst in 9 of 9 tests; over all of them together it is btrfs, too."
    )
    assert said.chart is not None
    assert re.match(r"Slowdown: reading every file, aged / unaged: btrfs 2\.\d+; ext4 1\.\d+; xfs", said.chart.words)


def test_what_was_varied_and_where_the_spread_comes_from_is_said(tmp_path: Path) -> None:
    name = aging_runs.make(tmp_path, {"ext4": 1.4, "btrfs": 2.2}, seeds=FIVE, corpora=(1, 2))
    found, elements = made(tmp_path, name)
    [sentence] = [line for line in found.parts[0].brief if line.startswith("Varied: ")]
    assert "2 corpora (which files there are, which are deleted) and 5 run seeds" in sentence
    assert found.parts[0].answers[0].named == "btrfs, in reading every file"
    [table] = [
        one for part in found.parts[0].sections for one in part.blocks if getattr(one, "id", "") == "part1-shares"
    ]
    assert isinstance(table, Table)
    for row in cells(table):
        assert sum(cell.value or 0 for cell in row[2:]) == pytest.approx(100)
    assert "Where the spread comes from" in elements.text
    alone = aging_runs.make(tmp_path, {"ext4": 1.4})
    found, elements = made(tmp_path, alone)
    assert "Nothing was varied: one run seed, one corpus" in " ".join(found.parts[0].brief)
    assert "Where the spread comes from" not in elements.text


def test_other_tests_that_have_another_worst_are_in_the_answer(tmp_path: Path) -> None:
    odd = {("xfs", "list"): 9.0, ("xfs", "remove"): 9.0, ("xfs", "write"): 9.0, ("ext4", "space"): 2.2}
    said = answer(tmp_path, {"ext4": 1.4, "btrfs": 2.2, "xfs": 1.9}, seeds=FIVE, odd=odd)
    assert said.named == "btrfs, in reading every file"
    assert (
        "btrfs is the worst in 5 of 9 tests, another is in 3, in 1 it is not known; "
        "over all of them together it is xfs." in said.because[0]
    )
    because = " ".join(said.more)
    assert "Test by test the worst is not always the same. It is btrfs in read, random-read, search" in because
    assert "xfs in write, list and remove; in space none is distinguishable from all others." in because
    assert "Over all 9 tests together (the geometric mean of the slowdowns) xfs has the most: 3." in because


def test_whoever_was_not_measured_is_named_in_the_answer(tmp_path: Path) -> None:
    status = {"reiser4": Status.UNSUPPORTED, "ufs": Status.UNSUPPORTED}
    slowdowns = {"ext4": 1.4, "reiser4": 1, "btrfs": 2.2, "ufs": 1}
    said = answer(tmp_path, slowdowns, seeds=FIVE, statuses=status)
    assert said.named == "btrfs, in reading every file"
    assert said.doubts[0] == "Not measured: reiser4, ufs (unsupported: this kernel has none)."
    assert said.chart is not None
    assert said.chart.words.endswith("reiser4 unsupported; ufs unsupported")


def test_whoever_has_too_few_seeds_stands_apart(tmp_path: Path) -> None:
    said = answer(tmp_path, {"ext4": 1.4, "btrfs": 2.2, "xfs": 9.0}, seeds=FIVE, unfinished=3)
    assert said.named == "btrfs, in reading every file"
    assert re.fullmatch(r"Not in this order, for want of seeds: xfs \([89]\.\d+, 2 seeds\)\.", said.doubts[0])


def test_the_statistics_of_each_test_and_step(tmp_path: Path) -> None:
    name = aging_runs.make(tmp_path, {"ext4": 1.001, "xfs": 2.5}, seeds=FIVE, spread=0.05)
    found, elements = made(tmp_path, name)
    tables = {one.id: one for part in found.parts[0].sections for one in part.blocks if isinstance(one, Table)}
    tests = tables["part1-slowdowns"]
    assert [column.name for column in tests.columns][-5:] == [
        "slowdown", "its interval", "Cliff’s delta", "p", "aged against unaged",
    ]  # fmt: skip
    by_name = {(row[0].text, row[1].text): [cell.text for cell in row] for row in cells(tests)}
    words = {row[-1].partition(":")[0] for (_, variant), row in by_name.items() if variant == "ext4"}
    assert words == {"the same", "not known"}
    assert {row[-1] for (_, variant), row in by_name.items() if variant == "xfs"} == {"slower"}
    assert by_name["read", "xfs"][2] == "5"
    assert by_name["read", "xfs"][-3] == "1.00"
    low, high = map(float, by_name["read", "xfs"][-4].split(" to "))
    assert low <= float(by_name["read", "xfs"][-5]) <= high
    steps = tables["part1-compared"]
    copy = {row[1].text: row for row in cells(steps) if row[0].text == f"copy, mean of {aging_runs.COPIES}"}
    assert copy["ext4"][-1].text == "lowest median"
    assert copy["xfs"][-1].text == "slower"
    assert (copy["xfs"][6].value or 0) > 1
    assert (
        elements.text.count("Varied: 5 run seeds (what should not matter); not varied: the corpus") == 2
    )  # at the top, and among the doubts


def test_a_seed_far_from_the_others_is_named_and_kept(tmp_path: Path) -> None:
    names = [
        aging_runs.make(tmp_path, {"ext4": 1.3}, seeds=(seed,), odd={("ext4", "list"): 5.0} if seed == 4 else {})
        for seed in FIVE
    ]
    _, elements = made(tmp_path, *names)
    assert re.search(r"ext4, list, slowdown: seed 4 has 4\.\d+, the median is 1\.3", elements.text)


def test_no_place_of_this_machine_is_in_the_page(tmp_path: Path) -> None:
    name = aging_runs.make(tmp_path, {"btrfs": 1.3, "zfs": 1.4}, pictures=PICTURES)
    directory = tmp_path / "runs" / name
    (directory / "cells/1/maps/large.svg").write_bytes(b" " * 300_000)
    _, elements = made(tmp_path, name)
    text = render(build_page([load(RunDirectory(directory))]))
    assert "make scenario NAME=aging" in text
    assert "24 times, fill the disk, then measure how fast it still is (at scale quick the repetitions are " in text
    assert example.local(text, [*example.places(RunDirectory(directory)), str(tmp_path)]) == []
    assert re.findall(".{0,40}/tmp\\b", text) == []
    assert f"Not on this page, for its size: {name}/cells/1/maps/large.svg" in elements.text


@pytest.mark.parametrize("path", sorted(PICTURES.glob("[!cu]*.svg")), ids=lambda path: path.stem)
def test_a_block_map_is_taken_apart(path: Path) -> None:
    content = path.read_bytes()
    found = parse_block_map("a map", content)
    assert found is not None
    assert found.columns == ("aged", "control")
    assert [disk.heading.partition(";")[0] for disk in found.disks] == ["aged", "control"]
    assert {kind for disk in found.disks for kind, _ in disk.layers} <= {kind for kind, _, _ in found.rows}
    assert {re.sub(" [0-9]+ ", " y ", disk.view, count=1) for disk in found.disks} == {"75 y 898 324"}
    assert all(len(shares) == 2 for _, _, shares in found.rows)
    assert "free " in found.words(0)
    drawn = re.findall(r' d="([^"]+)"', content.decode())
    assert sorted(drawn) == sorted(
        path for disk in found.disks for path in (disk.outline, *(d for _, d in disk.layers))
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<path ", "<script>alert(1)</script><path "),
        ("<path ", '<image href="http://127.0.0.1/"/><path '),
        ('d="M', 'd="url(x)M'),
        ('fill="#f7f7f2" d', 'fill="url(http://127.0.0.1/)" d'),
        ("<title>", '<!DOCTYPE x [<!ENTITY a "b">]><title>'),
        ("</svg>", ""),
        ("<path ", "<gone "),
    ],
)
def test_what_is_no_block_map_of_ours_is_not_taken_apart(old: str, new: str) -> None:
    text = (PICTURES / "btrfs.svg").read_text()
    assert old in text
    assert parse_block_map("a map", text.replace(old, new).encode()) is None


def test_where_all_age_the_same_the_answer_is_none_of_them(tmp_path: Path) -> None:
    said = answer(tmp_path, {"ext4": 1.5, "jfs": 1.502, "xfs": 1.501}, seeds=FIVE, spread=0.02)
    assert said.verdict.startswith("None of them: ext4's slowdown is the highest (reading every file takes 1.5")
    assert "and each other one's is the same within 5 %." in said.verdict and not said.doubts


def test_a_first_that_is_not_distinguishable_from_the_next_is_not_named(tmp_path: Path) -> None:
    said = answer(tmp_path, {"ext4": 1.5, "jfs": 1.51, "xfs": 1.1}, seeds=FIVE, spread=0.1)
    assert said.verdict.startswith("Not known: ext4's slowdown is the highest (reading every file takes 1.5")
    assert "but it is not distinguishable from jfs (1.4" in said.verdict and "xfs" not in said.verdict
    assert said.doubts[0].startswith("Against jfs: not known: no difference found (p 0.")
    assert re.search(r"; needs about \d+ more seeds on each side\.", said.doubts[0])
    because = " ".join([said.sure, *said.because, *said.more])
    assert re.search(
        r"together \(the geometric mean of the slowdowns\) it is not known: the highest is \w+'s 1\.\d+, but it "
        r"is not distinguishable from \w+ \(1\.\d+\)\.",
        because,
    )
    assert "How sure" not in because and "Why " not in because and "has the most" not in because


def test_of_a_slowdown_that_is_the_same_no_causes_are_named(tmp_path: Path) -> None:
    said = answer(tmp_path, {"ext4": 1.001}, seeds=FIVE, spread=0.05)
    because = " ".join(said.because)
    assert "s difference, the same within 5 %: it did not age" in because
    assert "The drive spends" not in because and "mostly" not in because


def test_slowed_down_most_is_not_slowest(tmp_path: Path) -> None:
    said = answer(tmp_path, {"btrfs": 1.6, "ext4": 1.4, "xfs": 1.4, "jfs": 1.4}, seeds=FIVE)
    assert said.named == "btrfs, in reading every file"
    assert re.fullmatch(
        r"Aged, jfs is slowest in absolute time \(16\.\d+ s\), ext4 quickest \(\d+\.\d+ s\)\.", said.because[1]
    )


def test_with_few_seeds_nobody_is_named(tmp_path: Path) -> None:
    said = answer(tmp_path, {"ext4": 1.4, "btrfs": 9.0}, seeds=(1, 2, 3))
    assert said.verdict.startswith("Not known yet. As measured, the highest slowdown is btrfs's: reading every")
    assert said.sure.startswith("3 seeds cannot exclude chance, four of one corpus can")
    [line] = said.doubts
    assert line.endswith("agelab run aging --filesystem ext4,btrfs --seeds 1,2,3,4,5")


def test_one_filesystem_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    said = answer(tmp_path, {"ext4": 1.4})
    assert said.question == "How much did ext4 age, and why?"
    assert re.fullmatch(r"ext4 takes 1\.3\d* times as long in reading every file", said.named)
    assert said.verdict == "That is on its aged disk, against an unaged one that holds the same files."
    assert said.sure.startswith("1 seed cannot exclude chance, four of one corpus can")
    assert said.chart and said.chart.words.count(";") == 8  # its nine tests
    assert said.settled_by.endswith("agelab run aging --filesystem ext4 --seeds 1,2,3,4,5")


SHOWCASE = {"ext4": 1.39, "jfs": 1.41, "xfs": 1.24, "btrfs": 2.17}


def test_a_first_that_leads_on_every_corpus_is_named_with_what_it_is_on_each(tmp_path: Path) -> None:
    """A bar of 2.04 beside 1.41, 1.39 and 1.24, and corpora that differ in it: 2.17 and 1.90."""
    said = answer(tmp_path, SHOWCASE, seeds=FIVE, corpora=(1, 2), on_corpora={("btrfs", 2): 1.9})
    assert said.named == "btrfs, in reading every file"
    assert re.fullmatch(
        r"How sure: on both sets of files it is slowed down most: 2\.1\d and 1\.[89]\d times, which is 1\.5\d and 1\.3"
        r"\d times the next one's\. With 10 values each it is distinguishable from each of the 3 others \(rank test, "
        r"p at most \S+\)\. Two corpora do not show that it holds for other files; needs 4 more corpora\.",
        said.sure,
    )
    assert said.settled_by.endswith("--seeds 1,2,3,4,5 --corpora 1,2,3,4,5,6")
    because = " ".join(said.because)
    assert re.search(r"more than chance explains on both sets of files, so it aged", because)
    assert "4 of 4 are slower on their aged disk on both sets of files." in said.more


def test_with_more_seeds_and_more_corpora_more_is_known_of_it(tmp_path: Path) -> None:
    corpora = {("btrfs", corpus): 1.9 + corpus / 20 for corpus in range(1, 7)}
    for seeds in ((1, 2, 3), FIVE, tuple(range(1, 11))):
        said = answer(tmp_path, SHOWCASE, seeds=seeds, corpora=(1, 2, 3), on_corpora=corpora)
        assert said.named == "btrfs, in reading every file", seeds
    six = answer(tmp_path, SHOWCASE, seeds=FIVE, corpora=(1, 2, 3, 4, 5, 6), on_corpora=corpora)
    assert six.sure.endswith("On average over other files it comes first, too: t intervals of 6 corpora.")
    assert not six.settled_by


def test_where_a_corpus_says_the_opposite_it_depends_on_the_files(tmp_path: Path) -> None:
    said = answer(tmp_path, SHOWCASE, seeds=FIVE, corpora=(1, 2), on_corpora={("btrfs", 2): 1.2})
    assert said.named == "" and said.verdict.startswith("Not known: btrfs's slowdown is the highest (reading")
    assert re.search(r"but against jfs \(1\.4\d+\), ext4 \(1\.3\d+\) and xfs \(1\.2\d+\) it depends on", said.verdict)
    assert "Against jfs: not known: it depends on the files: higher on corpus 1 (1.5" in said.doubts[0]


def test_a_table_has_no_p_where_there_is_no_test(tmp_path: Path) -> None:
    for seeds in ((1, 2, 3), FIVE):
        name = aging_runs.make(tmp_path, SHOWCASE, seeds=seeds, corpora=(1,))
        [group] = runs(tmp_path, name)
        [table] = tables.test_tables(group, last_slowdowns(group.places), "here")
        deltas, ps = ({row[at].text for row in cells(table)} for at in (9, 10))
        assert "1.00" in deltas and ("–" in ps) is (len(seeds) == 3) and "1" not in ps


def test_a_study_without_tests_has_the_quickest_and_its_claims(tmp_path: Path) -> None:
    name = study_runs.make(tmp_path, "tum-2005", study_runs.printed("tum-2005"), seeds=5)
    found, elements = made(tmp_path, name)
    [part] = found.parts
    assert [one.question for one in part.answers] == [
        "Which was the quickest?", "Does what the study (tum-2005) found still hold?",
    ]  # fmt: skip
    assert part.answers[0].named in ("reiserfs", "ext3")
    assert part.answers[0].verdict.startswith("All steps, without mkfs and mount, together take ")
    alike = "11 of 11 replicated; filesystems that are all alike would give "
    assert part.answers[1].verdict.startswith(alike)
    assert "read3 (in a circle)" in elements.text and "read2 (in a circle)" not in elements.text
    assert "step by step as the study printed it" in elements.text


def test_kernels_are_told_apart_and_share_a_table(tmp_path: Path) -> None:
    names = [
        aging_runs.make(tmp_path, {"ext4": slowdown}, seeds=FIVE, release=release)
        for slowdown, release in ((1.2, "5.10.0-1-amd64"), (2.0, "6.1.0-56-amd64"))
    ]
    [group] = runs(tmp_path, *names)
    assert [one.name for one in group.groups] == ["ext4 5.10.0-1", "ext4 6.1.0-56"]
    said = next(answers(group))
    assert said.question == "Which of these aged worst, and why?"
    assert said.named == "ext4 6.1.0-56, in reading every file"


def test_further_seeds_of_another_run_join(tmp_path: Path) -> None:
    names = [aging_runs.make(tmp_path, {"ext4": 1.3}, seeds=seeds) for seeds in ((1, 2), (2, 3, 4, 5))]
    [group] = runs(tmp_path, *names)
    [subject] = group.groups
    assert [*subject.counted] == [Seeds(1, seed) for seed in FIVE]
    _, elements = made(tmp_path, *names)
    assert "ext4, seed 2: in 2 cells" in elements.text


def test_runs_that_do_not_belong_together_stand_below_one_another(tmp_path: Path) -> None:
    one = aging_runs.make(tmp_path, {"ext4": 1.3})
    other = study_runs.make(tmp_path, "tum-2005", {"ext3": {"read1": 3.0}})
    found, elements = made(tmp_path, one, other)
    assert [part.title for part in found.parts] == ["aging", "tum-2005"]
    ids = [attributes["id"] for _, attributes in elements.found if attributes.get("id")]
    assert len(ids) == len(set(ids))


def test_a_run_that_is_going_on_is_shown_as_far_as_it_is(tmp_path: Path) -> None:
    name = aging_runs.make(tmp_path, {"ext4": 1.3, "xfs": 1.4}, unfinished=1)
    with RunDirectory(tmp_path / "runs" / name).lock():
        found, elements = made(tmp_path, name)
    [part] = found.parts
    assert f"Still going on, and shown as far as it is: {name}." in part.brief
    assert part.answers[0].named.startswith("ext4 takes 1.")
    assert part.answers[0].doubts[-1] == "Not measured: xfs (the run is still going on)."
    assert "xfs, seed 1: the run is still going on" in elements.text
    assert "1 ok, 1 waiting" in elements.text
    (tmp_path / "runs" / name / "cells/1").mkdir()
    with RunDirectory(tmp_path / "runs" / name).lock():
        _, elements = made(tmp_path, name)
    assert "1 ok, 1 running" in elements.text


@pytest.mark.parametrize("unfinished", [2, 0])
def test_a_run_of_which_nothing_is_ok(tmp_path: Path, unfinished: int) -> None:
    status = {"ext4": Status.FAILED, "xfs": Status.PANICKED}
    name = aging_runs.make(tmp_path, {"ext4": 1, "xfs": 1}, statuses=status, reason=HOSTILE, unfinished=unfinished)
    found, elements = made(tmp_path, name)
    [part] = found.parts
    assert part.answers[0].verdict == "Nothing: no cell ended ok."
    assert "alert(1)" in " ".join(part.answers[0].because) or unfinished
    assert "not begun" in elements.text or not unfinished


def test_a_run_without_cells_and_one_without_a_command(tmp_path: Path) -> None:
    run = run_builder.begin(tmp_path, ())
    found, elements = made(tmp_path, run.name)
    assert found.parts[0].answers[0].verdict == "Nothing: no cell ended ok."
    assert "does not say by which command it was made" in elements.text


def test_hostile_names_and_messages_stay_text(tmp_path: Path) -> None:
    cells = run_builder.cells(
        (HOSTILE, "ext4", "xfs"), filesystem=HOSTILE, layout=HOSTILE, kernel=HOSTILE, machine=HOSTILE, drives=(HOSTILE,)
    )  # fmt: skip
    run = run_builder.begin(
        tmp_path, cells, label="hostile", scenario=HOSTILE, scale=HOSTILE, unstated=(HOSTILE,),
        provenance={HOSTILE: HOSTILE},
        command={"directory": "/", "name": HOSTILE, "options": {"corpus": HOSTILE}},
    )  # fmt: skip
    rows = [
        {"cell": cell, "step": step, "metric": metric, "value": value, "unit": HOSTILE, "repetition": 1,
         "not_measured": None if value else HOSTILE}
        for cell in (0, 1)
        for step, metric, value in (
            ("copy", "elapsed", 2.5), (f"aged/{HOSTILE}", "elapsed", 2), (f"control/{HOSTILE}", "elapsed", 1),
            (HOSTILE, "slowdown", 2), (HOSTILE, HOSTILE, None), (f"strace/copy/{HOSTILE}", "syscall_seconds", 1),
            (f"strace/copy/{HOSTILE}", "syscall_share", 1),
        )
    ]  # fmt: skip
    (run.path / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for number, status in enumerate(("ok", "ok", "failed")):
        run.cell_directory(number)
        (run.path / f"cells/{number}/end.json").write_text(
            json.dumps({"status": status, "reason": HOSTILE, "host_seconds": 1})
        )
    (run.path / "cells/0/maps").mkdir()
    (run.path / "cells/0/maps/map.svg").write_text(f"<svg><desc>{HOSTILE}</desc><script>alert(3)</script></svg>")
    text = render(build_page([load(run)]))
    elements = Elements(text)
    assert len(elements.named("script")) == 2  # the page's own, and the rows of the results
    assert not any(name.startswith("on") for _, attributes in elements.found for name in attributes)
    assert {str(image["src"])[:26] for image in elements.named("img")} == {"data:image/svg+xml;base64,"}
    assert "\\u001b[31m\\u0000\\u202e{{ 7 * 7 }}" in elements.text
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", text)
    text.encode()


def test_what_no_page_can_hold_is_written_as_an_escape() -> None:
    assert escape_unshown("a\tb\n\x1b\ud800é") == "a\tb\n\\u001b\\ud800é"


def test_the_same_runs_give_the_same_bytes_and_fetch_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    name = aging_runs.make(tmp_path, {"ext4": 1.3, "a<b": 1.4})
    first, again_ = (render(build_page([load(RunDirectory(tmp_path / "runs" / name))])) for _ in range(2))
    assert first == again_
    elements = Elements(first)
    fetched = [
        (tag, name, value)
        for tag, attributes in elements.found
        for name, value in attributes.items()
        if name in ("src", "href", "xlink:href", "action", "srcset") and not str(value).startswith(("#", "data:"))
    ]
    assert fetched == []
    assert "url(" not in first.replace("url(#", "")
    charts = [attributes for attributes in elements.named("div") if attributes.get("role") == "img"]
    assert len(charts) > 30
    assert all(attributes["aria-label"] for attributes in charts)
    assert "var(--c1)" in first


def test_every_result_is_in_the_page(tmp_path: Path) -> None:
    name = aging_runs.make(tmp_path, {"ext4": 1.3, "xfs": 1.4})
    _, elements = made(tmp_path, name)
    [packed] = re.findall(r'\{"words":.*', elements.text)
    found = json.loads(packed)
    samples = RunDirectory(tmp_path / "runs" / name).samples()
    assert len(found["rows"]) == sum(map(len, samples.values()))
    exact = {(row[0], row[1], row[2], row[3]): row[4] for row in found["rows"]}
    words = found["words"].index
    one = next(sample for sample in samples[1] if sample.step == "aged/read" and sample.metric == "elapsed")
    assert exact[words("xfs"), words("aged/read"), 1, words("elapsed")] == one.value


@pytest.mark.parametrize(
    ("words", "more", "said"),
    [
        ({"kernel": "debian:6.1", "seeds": "1", "vcpus": 1}, {}, "make scenario NAME=aging"),
        ({"kernel": "6.12", "seeds": "1,2", "filesystem": "ext4,xfs", "trace": True, "corpus": "my data.iso"},
         {"curve": True, "disk": None, "prove_all": True},
         "make scenario NAME=aging KERNEL=6.12 FS=ext4,xfs SEEDS=1,2 TRACE=1 CORPUS='my data.iso' CURVE=1"),
        ({"corpora": "2"}, {}, "make scenario NAME=aging CORPORA=2"),
        ({"seeds": "1,2", "corpora": "3,4", "design": "paired"}, {},
         "make scenario NAME=aging SEEDS=1,2 CORPORA=3,4 DESIGN=paired"),
        ({"seeds": "3"}, {"measure": False, "keep_disk": True}, "agelab age aging --seeds 3"),
    ],
)  # fmt: skip
def test_the_command_that_makes_it_again(words: dict[str, object], more: dict[str, object], said: str) -> None:
    command = {"directory": "/tmp", "name": "aging", "options": {**words, **more}}
    assert repeat_command(run_builder.plan(command=command)) == said


def test_the_command_line(home: Path, cli: Cli) -> None:
    name = aging_runs.make(home, {"ext4": 1.3})
    output = home / "my report.html"
    out = cli.out("report", "latest", name, "-o", output)
    assert out.startswith(f"{output}: 1 run, 0.")
    assert out.endswith(f"open it in any browser: {output.as_uri()}\n")
    assert output.read_text().startswith("<!DOCTYPE html>")
    assert [path.name for path in home.iterdir() if path.suffix == ".partial"] == []
    for argv, words in (
        (["report", "nothing"], "no run 'nothing'"),
        (["report", name, "-o", str(home / "no" / "r.html")], "is not a directory"),
    ):
        assert words in cli.err(*argv)


def test_a_page_takes_no_device_s_place(home: Path, cli: Cli) -> None:
    name = aging_runs.make(home, {"ext4": 1.3})
    pipe = home / "pipe"
    os.mkfifo(pipe)
    for argv in (["report", name, "-o", str(pipe)], ["capsule", "pack", name, "-o", str(pipe)]):
        assert "it exists and is not a regular file" in cli.err(*argv)
    assert pipe.is_fifo()


def own_run(home: Path, scenario: str, samples: list[tuple[str, str, int, float | None]]) -> str:
    """A run of one ext4 cell that has these samples: step, metric, repetition, value."""
    run = run_builder.begin(home, [run_builder.cell(drives=("model:x",))], scenario=scenario)
    rows = (
        run_builder.sample(step, value, metric, repetition, why="the test did not end on both disks")
        for step, metric, repetition, value in samples
    )
    run_builder.end(run, 0, rows)
    return run.name


def section(found: Page, name: str) -> Section:
    return next(one for one in found.parts[0].sections if one.id == f"part1-{name}")


def test_of_a_history_with_points_the_last_one_counts_and_all_are_curves(tmp_path: Path) -> None:
    samples = [
        (f"then/{kind}/scan", "elapsed", point, seconds * point)
        for point in (1, 2, 3)
        for kind, seconds in (("aged", 2.0), ("control", 1.0))
    ]
    samples += [("then/scan", "slowdown", point, 1.0 + point if point < 3 else 7.0) for point in (1, 2, 3)]
    samples += [("then/mkfs", "elapsed", 1, 0.1)]
    scores = [("aged/map", "layout_score", point, score) for point, score in ((1, 0.9), (2, None), (3, 0.7))]
    found, elements = made(tmp_path, own_run(tmp_path, "aging-curve", [*samples, *scores]))
    said = found.parts[0].answers[0]
    assert said.named == "ext4 takes 7 times as long in reading every file (drive then)"
    [charts] = section(found, "curves").blocks
    assert isinstance(charts, Charts)
    assert [chart.words for chart in charts.charts] == [
        "then/scan: slowdown, by point of the history: ext4 from 2 to 7",
        "aged: layout score, by point of the history: ext4 from 0.9 to 0.7",
    ]
    assert "the test did not end on both disks: ext4 aged/map layout_score" in elements.text


def test_the_charts_of_one_subject_have_its_steps_for_bars(tmp_path: Path) -> None:
    found, _ = made(tmp_path, own_run(tmp_path, "own", [("untar", "elapsed", 1, 4.0), ("grep", "elapsed", 1, 5.0)]))
    [times] = [block for block in section(found, "steps").blocks if isinstance(block, Charts)]
    assert [chart.words for chart in times.charts] == ["ext4, s: untar 4; grep 5"]


def test_system_calls_have_their_shares_and_those_that_wait_stand_apart(tmp_path: Path) -> None:
    calls = (("read", 3.0, 0.75), ("open", 0.99, 0.2475), ("brk", 0.01, 0.0025), ("wait4", 9.0, None))
    samples = [
        ("strace/read1/" + call, metric, 1, value)
        for call, seconds, share in calls
        for metric, value in (("syscall_seconds", seconds), ("syscall_calls", 10.0), ("syscall_share", share))
    ]
    found, _ = made(
        tmp_path,
        own_run(tmp_path, "own", [("read1", "elapsed", 1, 4.0), ("strace/read1", "elapsed", 1, 5.0), *samples]),
    )
    charts, table = section(found, "calls").blocks
    assert isinstance(charts, Charts)
    assert charts.charts[0].words == "strace/read1: ext4 read 75 %, open 25 %, brk 0 %"
    assert isinstance(table, Table)
    assert [[cell.text for cell in row][2:6] for row in cells(table)] == [
        ["read", "3", "75.0", "10"],
        ["open", "0.990000", "24.8", "10"],
        ["wait4", "9", "waits", "10"],
    ]
    times, table = section(found, "steps").blocks
    assert isinstance(times, Charts)
    assert [chart.words for chart in times.charts] == ["ext4, s: read1 4"]
    assert isinstance(table, Table)
    assert [row[0].text for row in cells(table)] == ["read1"]


def test_real_time_without_kvm_is_called_emulated(tmp_path: Path) -> None:
    name = study_runs.make(tmp_path, "tum-2005", {"ext3": {"read1": 3.0}}, clock="wall")
    found, elements = made(tmp_path, name)
    assert "EMULATED" in found.parts[0].subtitle
    assert found.parts[0].brief[0].startswith("EMULATED: ")
    assert "A model:" not in elements.text


def test_where_data_were_counted_the_answer_is_who_held_the_most(tmp_path: Path) -> None:
    name = own_run(tmp_path, "capacity", [("fill", "elapsed", 1, 4.0), ("count", "content_bytes", 1, 3.2e8)])
    found, _ = made(tmp_path, name)
    said = found.parts[0].answers[0]
    assert (said.question, said.named, said.verdict) == (
        "Which held the most data?",
        "ext4",
        "It alone was run: it held 320 MB.",
    )
