"""Scenario files: the project's own are whole, a broken one has every error named with its place."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from agelab.base.errors import InputError
from agelab.scenario import selection, toml_files
from agelab.scenario.scenario import Scenario
from tests.build.cell_builder import CORPUS, made, spec


def test_a_name_is_a_scenario_or_one_of_its_variants() -> None:
    assert [v.name for v in selection.select("aging-reiserfs").variants] == ["reiserfs"]
    every = [v.name for v in selection.select("aging").variants]
    assert {"ext2", "ext3", "ext4", "reiserfs", "jfs", "xfs", "btrfs"} <= set(every)
    assert [v.name for v in selection.select("aging", "jfs").variants] == ["jfs"]
    assert [v.name for v in selection.select("aging", "jfs,ext4").variants] == ["ext4", "jfs"]


@pytest.mark.parametrize(
    ("name", "filesystem", "said"),
    [
        ("agin", None, r"no scenario 'agin'; did you mean aging"),
        ("piszcs-2006", None, r"no scenario 'piszcs-2006'; did you mean piszcz-2006\?$"),
        ("agin-ext4", None, "no scenario 'agin-ext4'; did you mean aging-ext4, "),
        ("qqqq", None, "no scenario 'qqqq'; there are: aging, aging-curve, capacity, clones, .*, today, tum-2005$"),
        ("aging-resierfs", None, "no variant 'resierfs' in aging; did you mean reiserfs, "),
        ("aging", "ext4,ext5", "no filesystem 'ext5' in aging; did you mean ext"),
        ("aging", "ext5", "no filesystem 'ext5' in aging; did you mean ext"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name: str, filesystem: str | None, said: str) -> None:
    with pytest.raises(InputError) as error:
        selection.select(name, filesystem)
    assert re.match(said, str(error.value))


def test_every_error_of_a_broken_file_is_told_with_its_place(tmp_path: Path) -> None:
    text = Path("tests/vm/small.toml").read_text()
    broken = text.replace('step = "copy"\n', "")
    broken = broken.replace("mib = { value = 320", "mib = { value = -1").replace('caches = "reboot"', 'caches = "hot"')
    broken = broken.replace("repeat = 4", "repeat = 0\nfoo = 1")
    path = tmp_path / "small.toml"
    path.write_text(broken)
    with pytest.raises(InputError) as error:
        selection.select(str(path))
    lines = str(error.value).splitlines()
    assert all(line.startswith(f"{path}: ") for line in lines)
    said = "\n".join(lines)
    for place in (
        "ratios[0].step: is missing",
        "disk.mib.value: ",
        "steps[1].caches: ",
        "steps[0].repeat: ",
        "steps[0].foo: is not a known key",
    ):
        assert place in said, said
    assert len(lines) == 5


def complaint(directory: Path, before: str, after: str) -> str:
    """Return the error about the small scenario with one change in it."""
    path = directory / "small.toml"
    path.write_text(Path("tests/vm/small.toml").read_text().replace(before, after, 1))
    with pytest.raises(InputError) as error:
        selection.select(str(path))
    return str(error.value)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('name = "xfs"', 'name = "ext4"', "variant 'ext4' is defined twice"),
        ('at = "outer"', 'at = "middle"', "disk.partitions[0].at: Input should be 'outer', 'inner' or"),
        ('filesystem = "xfs"', 'filesystem = "xfz"', "variants[2].filesystem: no filesystem 'xfz'; did you"),
        ('step = "copy"', 'step = "cope"', "ratio 'throughput_ratio': no step 'cope'"),
        (
            'mib = { value = 320, origin = "estimated" }',
            'mib = "320 Mb"',
            'disk.mib: a size is a number with a unit, like "320 MiB" (KiB, MiB, GiB, TiB, kB, MB, GB)',
        ),
        ("value = 24", 'value = "much"', "corpus.mib.value: Input should be a valid number"),
        ('filesystem = "xfs"', 'filesystem = "xfs"\nmount_options = "noatime"', "variants[2].mount_options"),
        ('name = "small"', 'name = "tiny"', "name: is 'tiny', the file's name is 'small'"),
        ("[corpus]", "[corpus", "not valid TOML"),
        ('kind = "debian-iso"', 'kind = "debian"', "corpus.kind: no such corpus; there are: debian-iso"),
    ],
)
def test_names_in_a_file_hold_together(tmp_path: Path, before: str, after: str, said: str) -> None:
    assert said in complaint(tmp_path, before, after)


SHORT = """
variants = ["ext4", { name = "plain", filesystem = "ext4", mkfs_options = ["-O", "^has_journal"] }]
corpus = "24 MiB"
memory = "64 MiB"
disk = "1.5 GiB"
steps = [{ name = "copy", run = 'cp -r "$SOURCE/." tree' }]
"""
LONG = """
name = "short"
machine = "pentium4-2800"
defaults = "today"
variants = [
  { name = "ext4", filesystem = "ext4" }, { name = "plain", filesystem = "ext4", mkfs_options = ["-O", "^has_journal"] }
]
steps = [{ name = "copy", run = 'cp -r "$SOURCE/." tree', origin = "estimated" }]

[corpus]
kind = "debian-iso"
mib = { value = 24, origin = "estimated" }

[memory]
available_mib = { value = 64, origin = "estimated" }
dirty_percent = { value = 20, origin = "estimated" }
dirty_background_percent = { value = 10, origin = "estimated" }

[disk]
mib = { value = 1536, origin = "estimated" }
partitions = [{ at = "outer", origin = "estimated" }]
"""


def test_what_is_left_out_of_a_scenario_has_its_default(tmp_path: Path) -> None:
    path = tmp_path / "short.toml"
    read = []
    for text in (SHORT, LONG, SHORT.replace('"24 MiB"', "24").replace('"64 MiB"', '"65536 KiB"')):
        path.write_text(text)
        read.append(selection.select(str(path)).scenario)
    assert read[0] == read[1] == read[2]
    assert read[0].model_validate(read[0].model_dump()) == read[0]


def test_a_file_whose_name_no_scenario_can_have_says_so(tmp_path: Path) -> None:
    path = tmp_path / "My test.toml"
    path.write_text(SHORT)
    with pytest.raises(InputError, match=r"My test.toml: name: String should match pattern"):
        selection.select(str(path))


def test_quick_keeps_the_papers_ratio_of_data_to_cache() -> None:
    quick, paper = spec(), spec(scale="paper")
    memory, corpus = quick.scenario.memory.available_mib, quick.scenario.corpus
    assert corpus is not None
    ratios = [cell.scaled_bytes(memory) / cell.scaled_bytes(corpus.mib) for cell in (quick, paper)]
    assert ratios[0] == pytest.approx(ratios[1], rel=1e-6)
    assert made(quick)["memory"]["sysctl"] == made(paper)["memory"]["sysctl"]


def test_a_shorter_history_writes_the_disk_over_as_often() -> None:
    cells = [spec(), spec(scale="paper")]
    copies = [[step["name"] for step in made(cell)["steps"]].count("copy") for cell in cells]
    assert copies == [12, 24]
    corpus = cells[0].scenario.corpus
    assert corpus is not None
    written = [number * cell.scaled_bytes(corpus.mib) for number, cell in zip(copies, cells, strict=True)]
    times = [bytes_ / cell.disk_bytes for bytes_, cell in zip(written, cells, strict=True)]
    assert times[0] == pytest.approx(times[1], rel=1e-2)
    assert [cell.scenario.curve.after for cell in cells if cell.scenario.curve] == [
        (1, 2, 4, 6, 8, 10, 12),
        (1, 4, 8, 12, 16, 20, 24),
    ]


def test_the_plan_runs_the_cycle_in_turn_and_the_rest_once() -> None:
    steps = made(spec(scale="paper"))["steps"]
    names = [(step["name"], step["repetition"]) for step in steps]
    assert names[:4] == [("copy", 1), ("delete", 1), ("copy", 2), ("delete", 2)]
    assert names.count(("copy", 24)) == 1
    assert [name for name, _ in names[48:]] == ["fill", "free"]


def test_the_run_seed_moves_what_does_not_matter_and_nothing_else() -> None:
    one, other = made(spec()), made(spec(run_seed=2))
    differing = {name for name in one if one[name] != other[name]}
    assert differing == {"start_at", "entropy"}
    assert 15 <= one["start_at"] < 16


def test_the_plan_says_nothing_about_this_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    written = str(made(spec()))
    assert str(toml_files.SCENARIOS.parent) not in written
    moved = replace(CORPUS, image=tmp_path / "elsewhere.iso")
    monkeypatch.chdir(tmp_path)
    assert str(made(spec(), moved)) == written


def test_every_variant_of_every_scenario_has_its_files() -> None:
    for name in selection.scenario_names():
        scenario: Scenario = selection.select(name).scenario
        selection.machine(scenario.machine)
        for variant in scenario.variants:
            tooling = selection.filesystem(variant.filesystem).tooling("period")
            assert tooling.mkfs[-1] == "{device}"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('name = "throughput_ratio"', 'name = "copy_ratio"', "ratio 'copy_ratio': no metric 'copy_ratio'"),
        ('machine = "pentium4-2800"', 'machine = "pentium4"', "machine: no machine 'pentium4'; did you mean"),
        ("value = 320", "value = inf", "disk.mib.value: Input should be a finite number"),
        ('name = "read"', 'name = "mount"', "a step cannot be called 'mount': every cell has one"),
        ('caches = "reboot"', 'caches = "reboot"\ndeadline = 1e9', "steps[1].deadline: "),
    ],
)
def test_what_would_fail_later_is_refused_now(tmp_path: Path, before: str, after: str, said: str) -> None:
    assert said in complaint(tmp_path, before, after)


def test_a_name_that_ends_in_a_dash_is_not_every_variant() -> None:
    with pytest.raises(InputError, match="no variant '' in aging"):
        selection.select("aging-")


def test_a_file_of_thousands_of_errors_names_the_first_at_once(tmp_path: Path) -> None:
    path = tmp_path / "many.toml"
    path.write_text('name = "many"\n' + "[[steps]]\nname = 1\n" * 20_000)
    with pytest.raises(InputError) as error:
        selection.select(str(path))
    lines = str(error.value).splitlines()
    assert len(lines) == 101 and lines[-1] == f"{path}: and more"


@pytest.mark.parametrize("line", ["name{} = 1", "[name{}]"])
def test_a_key_of_thousands_of_parts_is_refused_before_it_is_parsed(tmp_path: Path, line: str) -> None:
    path = tmp_path / "deep.toml"
    path.write_text("\n" + line.format(".a" * 300_000))
    with pytest.raises(InputError, match=r"deep\.toml:2: has more than 100 dots"):
        selection.select(str(path))


def test_a_filesystem_of_which_a_scenario_has_no_variant_gets_one() -> None:
    chosen = selection.select("aging", "ext4,nilfs2")
    assert [one.name for one in chosen.variants] == ["ext4", "nilfs2"]
    assert [one.name for one in selection.select("aging-curve-nilfs2").variants][:1]
    again = selection.select("aging.toml", text=chosen.text)  # as a capsule keeps it
    assert again.scenario == chosen.scenario
    assert selection.select("aging", "ext4").text == selection.select("aging").text
    with pytest.raises(InputError, match="filesystem 'nilfs3' in aging; did you mean nilfs2"):
        selection.select("aging", "nilfs3")
    with pytest.raises(InputError, match="aging-reiserfs is on reiserfs alone") as refused:
        selection.select("aging-reiserfs", "ext4")
    assert refused.value.hint == "for another filesystem: aging --filesystem ext4"
