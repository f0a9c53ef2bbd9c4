"""Broken files of published data: every error at once, each with its place."""

from pathlib import Path

import pytest

from agelab.analysis.published import study
from agelab.analysis.published.claims import HEADER, Claims, read_tables, subject
from agelab.base.errors import InputError
from agelab.scenario import toml_files
from tests.build.small_study import CLAIMS, figures

GOOD = "small,1,ext3,ext3,single,copy,elapsed,1.5,s"
CLAIM = """
[[claims]]
id = "first"
says = "ext2 is first"
[claims.test]
kind = "lowest"
steps = ["copy"]
of = ["ext2"]
among = ["ext3"]
"""


def wrong(path: Path) -> list[str]:
    with pytest.raises(InputError) as error:
        read_tables(path)
    return [line.removeprefix(f"{path}:") for line in str(error.value).splitlines()]


def test_a_field_that_is_too_long_for_csv_is_an_error_of_the_file(tmp_path: Path) -> None:
    assert wrong(figures(tmp_path, GOOD, "x" * 200_000))[0].startswith(" not valid CSV: field larger than")


def test_every_line_that_is_wrong_is_named_with_its_number(tmp_path: Path) -> None:
    path = figures(
        tmp_path,
        GOOD,
        "small,1,ext3,ext3,single,copy,elapsed",
        "small,1,ext3,ext3,triple,copy,elapsed,1.5,s",
        "small,1,ext3,ext3,single,list,elapsed,-2,s",
        "small,1,ext3,ext3,single,list,elapsed,quick,s",
        "small,1,ext3,ext3,single,list,elapsed,1.5,min",
        "small,1,ext3,ext3,single,list,speed,1.5,s",
        "other,1,ext3,ext3,single,list,elapsed,1.5,s",
        "small,1,ext2,ext3,single,read,elapsed,1.5,s",
        GOOD,
    )
    found = wrong(path)
    assert [int(line.partition(":")[0]) for line in found] == [3, 4, 5, 6, 7, 8, 9, 10, 11]
    said = dict(zip(range(3, 12), found, strict=True))
    assert said[3] == "3: has 7 fields, not 9"
    assert "4: layout: " in said[4] and "'triple'" in said[4]
    assert "5: value: " in said[5] and "6: value: " in said[6]
    assert said[7] == "7: elapsed is in 's', not in 'min'"
    assert said[8] == "8: no metric 'speed'"
    assert said[9] == "9: study: is 'other', the file's name is 'small'"
    assert said[10] == "10: filesystem: variant 'ext3' is 'ext3' above"
    assert said[11] == "11: is line 2 once more: 1 ext3 single copy elapsed"


def test_a_file_without_its_header_or_without_figures_is_refused(tmp_path: Path) -> None:
    assert wrong(figures(tmp_path)) == [" has no figures"]
    path = tmp_path / "small.csv"
    path.write_text(GOOD + "\n")
    assert wrong(path) == [f"1: the first line is not {','.join(HEADER)}"]
    path.write_text("")
    assert wrong(path)[0].startswith("1: the first line")
    path.write_bytes(b"\xff\xfe")
    assert "not UTF-8 text" in wrong(path)[0]
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_tables(tmp_path / "none.csv")


def claims(tmp_path: Path, text: str, *rows: str) -> str:
    """Return the error about a claims file, given these figures."""
    figures(tmp_path, *(rows or (GOOD, GOOD.replace("ext3", "ext2"))))
    (tmp_path / "small.claims.toml").write_text(text)
    with pytest.raises(InputError) as error:
        study.read_study("small", tmp_path)
    return str(error.value)


def test_a_whole_pair_of_files_is_read(tmp_path: Path) -> None:
    figures(tmp_path, GOOD, GOOD.replace("ext3", "ext2"))
    (tmp_path / "small.claims.toml").write_text(CLAIMS + CLAIM)
    found = study.read_study("small", tmp_path)
    assert (found.name, found.scenarios, len(found.figures.by_place)) == ("small", ["small"], 2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("ext2\"]", "ext4\"]"), "claims[0].test: the study prints no figure for ext4 single copy elapsed in table 1"),
        (("[\"copy\"]", "[\"list\"]"), "claims[0].test: the study prints no figure for ext2 single list elapsed"),
        (("lowest", "least"), "claims[0].test"),
        (("kind = \"lowest\"", "kind = \"lowest\"\nmetric = \"speed\""), "no metric 'speed'"),
        (("kind = \"lowest\"", "kind = \"lowest\"\ntable = \"2\""), "claim 'first': no table '2'"),
        (("ext2\"]", "Ext 2\"]"), "not like xfs, xfs@raid0 or xfs#II"),
        (("study = \"small\"", "study = \"big\""), "study: is 'big', the figures are of 'small'"),
        (("id = \"1\"", "id = \"2\""), "tables: '1' is not there, and the figures have it"),
        (("among", "amongst"), "amongst: is not a known key"),
        (("[claims.test]", "scale = \"tiny\"\n[claims.test]"), "claims[0].scale"),
        (("[claims.test]", "conflict = { against = \"second\", note = \"x\" }\n[claims.test]"), "no claim 'second'"),
        (("about = \"its table\"", "about = \"its table\"\ncompares = \"speed\""), "table '1': no metric 'speed'"),
    ],
)  # fmt: skip
def test_what_the_claims_say_wrongly_is_named(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    text = CLAIMS + CLAIM
    assert change[0] in text
    assert said in claims(tmp_path, text.replace(*change))


def test_uncounted_steps_and_steps_out_of_proportion_that_the_figures_do_not_have_are_all_named(tmp_path: Path) -> None:
    wrong = """
[[uncounted]]
kind = "circle"
steps = ["copy", "list"]
why = "its size"
[[uncounted]]
kind = "circle"
steps = ["copy"]
metric = "cpu_percent"
why = "its size"
[[disproportionate]]
steps = ["copy", "find"]
variants = ["ext2", "xfs"]
why = "squares"
"""
    said = claims(tmp_path, CLAIMS + wrong + CLAIM)
    assert [line.partition("small.claims.toml: ")[2] for line in said.splitlines()] == [
        "uncounted[0].steps: the figures have no elapsed of 'list'",
        "uncounted[1].steps: the figures have no cpu_percent of 'copy'",
        "disproportionate[0].steps: the figures have no 'find'",
        "disproportionate[0].variants: the figures have no 'xfs'",
    ]


def test_names_that_are_there_twice_and_claims_without_a_test_are_named(tmp_path: Path) -> None:
    assert "claim 'first' is defined twice" in claims(tmp_path, CLAIMS + CLAIM + CLAIM)
    bare = '\n[[claims]]\nid = "second"\nsays = "so it is"\n'
    assert "claims[1]: needs a test, or the reason why it is" in claims(tmp_path, CLAIMS + CLAIM + bare)
    odd = bare + 'untestable = "why"\ngone = { since = "3.3", why = "gone" }\n'
    assert "without a test neither unprinted nor gone" in claims(tmp_path, CLAIMS + CLAIM + odd)


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ('kind = "ratio"\nof = ["ext2"]\nto = ["ext3"]', "needs at_least, at_most or both"),
        ('kind = "ratio"\nof = ["ext2"]\nto = ["ext3"]\nat_least = 2\nat_most = 1',
         "at_least 2.0 is more than"),
        ('kind = "ratio"\nof = ["ext2"]\nat_least = 2', "needs either of and to, or pairs"),
        ('kind = "same"\nwithin = 0.1\nof = ["ext2"]\nto = ["ext3"]\npairs = [["ext2", "ext3"]]',
         "needs either"),
        ('kind = "value"\nof = ["ext2"]', "needs at_least, at_most or both"),
        ('kind = "order"\ngroups = [["ext2"]]', "groups"),
        ('kind = "lowest"\nof = []\namong = ["ext3"]', "of"),
    ],
)  # fmt: skip
def test_a_test_that_cannot_be_made_is_refused(tmp_path: Path, test: str, said: str) -> None:
    head, _, _ = CLAIM.partition("kind")
    assert said in claims(tmp_path, CLAIMS + head + 'steps = ["copy"]\n' + test)


def test_a_subject_has_a_variant_a_layout_and_a_table() -> None:
    assert subject("ext3-journal") == ("ext3-journal", "", "")
    assert subject("xfs@raid0#II") == ("xfs", "raid0", "II")
    with pytest.raises(ValueError, match="not like"):
        subject("xfs@raid5")


def test_the_nearest_scenario_with_published_data_is_named() -> None:
    assert study.study_of_scenario("space").name == "aging"
    with pytest.raises(InputError, match="no published data for scenario 'agin'; did you mean aging"):
        study.study_of_scenario("agin")
    with pytest.raises(InputError, match="there are: aging, fedorchuk-2005, fedorchuk-2008, git-aging"):
        study.study_of_scenario("zzz")


def test_each_figure_file_has_its_claims_and_each_claims_file_its_figures() -> None:
    directory = toml_files.SCENARIOS / study.DIRECTORY
    assert {path.name.removesuffix(".claims.toml") for path in directory.glob("*.toml")} == set(study.study_names())
    assert all(toml_files.read(path, Claims).claims for path in directory.glob("*.toml"))
