"""What a study leaves open, and its other readings: what they change, and what is wrong with one."""

from pathlib import Path

import pytest

from agelab.base.errors import InputError
from agelab.runner.request.options import RunOptions
from agelab.scenario import selection
from agelab.scenario.scenario import Scenario

TEN_LINES = """
name = "open"
summary = "copy"
machine = "pentium4-2800"
defaults = "today"
citation = { title = "none", author = "me", year = 2026, language = "en", measured_on = "nothing" }
corpus = { kind = "fedorchuk-2008", mib = { value = 24, origin = "estimated" } }
[memory]
available_mib = { value = 64, origin = "estimated" }
dirty_percent = { value = 10, origin = "estimated" }
dirty_background_percent = { value = 5, origin = "estimated" }
[disk]
mib = { value = 128, origin = "estimated" }
partitions = [{ at = "outer", origin = "estimated" }]
[[variants]]
name = "xfs"
filesystem = "xfs"
[[steps]]
name = "copy"
run = "cp a b"
origin = "estimated"
[[steps]]
name = "remove"
run = "rm b"
origin = "estimated"
[[unstated]]
says = "the weather"
"""
COLD = """
[[unstated]]
says = "whether it was cold"
name = "cold"
called = "a cold cache"
instead = { steps = [{ name = "remove", caches = "drop" }] }
"""


def read(directory: Path, text: str, instead: str | None = None) -> Scenario:
    file = directory / "open.toml"
    file.write_text(TEN_LINES + text)
    return selection.select(str(file), instead=instead).scenario


@pytest.mark.parametrize("name", selection.scenario_names())
def test_a_scenario_is_the_same_after_its_tables_were_written_out(name: str) -> None:
    """Else another reading would change more than it says."""
    whole = selection.select(name).scenario
    assert Scenario.model_validate(whole.model_dump()) == whole


def test_another_reading_changes_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    own, cold = read(tmp_path, COLD), read(tmp_path, COLD, "cold")
    assert [one.caches for one in own.actions()] == ["keep", "keep"]
    assert [one.caches for one in cold.actions()] == ["keep", "drop"]
    steps = [one.model_copy(update={"caches": "keep"}) for one in cold.actions()]
    assert cold.model_copy(update={"steps": tuple(steps)}) == own


def test_readings_go_together_and_their_order_does_not_matter(tmp_path: Path) -> None:
    other = COLD.replace("cold", "few").replace("steps", "corpus = { files = { portage = FEW } }, steps")
    few = other.replace("FEW", '{ value = 3, origin = "estimated" }').replace('"remove", caches = "drop"', '"copy"')
    both = read(tmp_path, COLD + few, "few,cold")
    assert both == read(tmp_path, COLD + few, "cold, few") != read(tmp_path, COLD + few, "cold")
    assert both.corpus and {path: count.value for path, count in both.corpus.files.items()} == {"portage": 3}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('"remove", caches', '"removed", caches'), "unstated[1].instead: steps has no 'removed'"),
        (('"drop"', '"warm"'), "unstated[1].instead: steps[1].caches: Input should be 'keep', 'drop'"),
        (('"drop" }', '"drop" }, { caches = "drop" }'), "unstated[1].instead: steps[1] has no name, by which"),
        (('"remove", c', '["remove"], c'), "unstated[1].instead: steps[0] has no name, by which"),
        (('"drop" }', '"drop" }, { name = "remove" }'), "unstated[1].instead: steps changes 'remove' twice"),
        (("instead = {", 'instead = { name = "aging",'), "unstated[1]: instead: name is the same in every reading"),
        (("instead = {", "instead = { unstated = [],"), "instead: unstated is the same in every reading"),
        (('called = "a cold cache"', ""), "unstated[1]: name, called and instead go together"),
        (("\n[[unstated]]", COLD + "[[unstated]]"), "unstated 'cold' is defined twice"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_another_reading_has_its_place(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path, COLD.replace(*change))
    assert said in str(error.value)


def test_readings_that_contradict_each_other_or_are_not_there_are_refused(tmp_path: Path) -> None:
    colder = COLD.replace('"cold"', '"colder"').replace('"drop"', '"reboot"')
    with pytest.raises(InputError, match="--instead cold,colder: cold and colder contradict each other"):
        read(tmp_path, COLD + colder, "cold,colder")
    again = COLD.replace('"cold"', '"frozen"')
    with pytest.raises(InputError, match="cold and colder contradict each other"):
        read(tmp_path, COLD + colder + again, "cold,colder,frozen")
    with pytest.raises(InputError, match="--instead clod: no reading 'clod'; did you mean cold"):
        read(tmp_path, COLD, "clod")
    with pytest.raises(InputError, match="scenario open leaves nothing open that it reads in another way"):
        read(tmp_path, "", "cold")
    with pytest.raises(InputError, match="--instead: a control file leaves nothing open"):
        RunOptions(control="a.control", instead="cold")


def test_results_are_told_apart_by_their_readings() -> None:
    asked = RunOptions(name="fedorchuk-2008", instead="large-first, cold", source="scattered")
    assert asked.changes == ("instead=cold", "instead=large-first", "source=scattered")


def test_the_schema_knows_both_forms() -> None:
    known = Scenario.model_json_schema()["properties"]["unstated"]["items"]["anyOf"]
    assert {"type": "string"} in known and len(known) == 2
