"""The schemas that ``agelab schema`` prints: what our files and results are held against, and what each key means."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agelab.cli.schema import KINDS, schema_of
from agelab.results.run_directory import RunDirectory
from tests.build import aging_runs
from tests.build.cli import Cli

PROJECT = Path(__file__).parents[3]
TEN_LINES, SMALL = PROJECT / "docs/howto/ten-lines.toml", PROJECT / "tests/vm/small.toml"
FILES = [(kind, path) for kind, about in KINDS.items() if about.files for path in PROJECT.glob(about.files)]


def faults(kind: str, value: object) -> list[str]:
    """Where the value is not what the schema wants."""
    validator = jsonschema.Draft202012Validator(schema_of(kind))
    return [error.json_path for error in validator.iter_errors(value)]


def keys(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, one in {"": schema, **schema.get("$defs", {})}.items():
        for table in (one, *one.get("anyOf", ())):
            for key, what in table.get("properties", {}).items():
                yield f"{name}.{key}", what


@pytest.mark.parametrize("kind", KINDS)
def test_each_is_a_schema_and_every_key_says_what_it_means(kind: str) -> None:
    schema = schema_of(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    found = dict(keys(schema))
    assert len(found) > 5
    assert [name for name, what in found.items() if not what.get("description")] == []


@pytest.mark.parametrize(("kind", "path"), FILES, ids=lambda one: getattr(one, "stem", one))
def test_our_files_are_what_their_schemas_want(kind: str, path: Path) -> None:
    assert faults(kind, tomllib.loads(path.read_text())) == []


def test_there_are_files_of_every_kind() -> None:
    assert {kind for kind, _ in FILES} == set(KINDS) - {"result"}
    assert len(FILES) > 40


@pytest.mark.parametrize(
    ("ours", "broken", "place"),
    [
        ("[memory]", "[memories]", "$"),
        ('machine = "pentium4-2800"', 'machine = "pentium4-2800"\nmachina = 1', "$"),
        ('at = "outer", origin = "estimated"', 'at = "outer", origin = "guessed"', "$.disk"),
        ('at = "outer"', 'at = "middle"', "$.disk"),
        ('at = "outer"', "at = -1", "$.disk"),
        ("value = 24", 'value = "24"', "$.corpus"),
        ('"debian-iso"', '"debian-cd"', "$.corpus"),
        ('caches = "reboot"', 'caches = "empty"', "$.steps[1]"),
        ('defaults = "period"', 'defaults = "tomorrow"', "$.defaults"),
    ],
)
def test_a_broken_scenario_is_not(ours: str, broken: str, place: str) -> None:
    text = SMALL.read_text()
    assert text.count(ours) == 1
    assert faults("scenario", tomllib.loads(text)) == []
    assert place in faults("scenario", tomllib.loads(text.replace(ours, broken)))


def test_what_may_be_written_shortly_may_be_so_in_the_schema() -> None:
    raw = tomllib.loads(TEN_LINES.read_text())
    raw["steps"][0] |= {"records": "space_left", "cut_after": 1.5}
    raw["disk"] = {"mib": 320, "partitions": [{"at": 4096}]}
    assert faults("scenario", raw) == []


def test_a_result_is_what_its_schema_wants(tmp_path: Path) -> None:
    from agelab.results.result import Status

    name = aging_runs.make(tmp_path, {"ext4": 1.5, "xfs": 1.2, "jfs": 1}, statuses={"jfs": Status.FAILED}, unfinished=1)
    result = json.loads(json.dumps(RunDirectory(tmp_path / "runs" / name).as_json()))
    assert faults("result", result) == []
    assert {cell["status"] for cell in result["cells"]} == {"ok", "interrupted"}
    del result["cells"][0]["digest"], result["cells"][0]["status"]
    result["cells"][1]["host_seconds"] = 1
    assert faults("result", result) == ["$.cells[0]", "$.cells[1]"]


def test_the_verb_prints_it(cli: Cli) -> None:
    assert cli.json("schema", "drive") == schema_of("drive")


def test_an_unknown_kind_is_one_line(cli: Cli) -> None:
    said = cli.err("schema", "drives")
    assert "'drives' is not one of" in said and "'drive'" in said
