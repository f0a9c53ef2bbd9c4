"""``agelab schema``: what files and results may hold, as JSON Schema, for editors and other programs."""

import importlib
from dataclasses import dataclass
from typing import Any

import click
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import NullableSchema

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _TomlSchema(GenerateJsonSchema):
    """Schema without null: TOML omits optional values instead."""

    def nullable_schema(self, schema: NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])


@dataclass(frozen=True)
class SchemaKind:
    """A model with a JSON Schema."""

    model: str
    """module:class"""
    what: str
    files: str = ""
    """The project's files of this kind, as a pattern; empty where it is no file."""


KINDS = {
    "scenario": SchemaKind("agelab.scenario.scenario:Scenario", "a scenario", "scenarios/*.toml"),
    "filesystem": SchemaKind("agelab.scenario.filesystem:Filesystem", "a filesystem", "scenarios/filesystems/*.toml"),
    "machine": SchemaKind("agelab.scenario.machine:Machine", "a machine", "scenarios/machines/*.toml"),
    "drive": SchemaKind("agelab.scenario.drive:Drive", "a modelled drive", "scenarios/drives/*.toml"),
    "layout": SchemaKind(
        "agelab.scenario.layout:Layout", "a layout of the disk under test", "scenarios/layouts/*.toml"
    ),
    "recipe": SchemaKind("agelab.kernel.recipes:KernelRecipe", "a kernel's recipe", "scenarios/kernels/*.toml"),
    "program": SchemaKind("agelab.scenario.workload:GuestProgram", "a program of a step", "scenarios/programs/*.toml"),
    "claims": SchemaKind(
        "agelab.analysis.published.claims:Claims", "a study's claims", "scenarios/published/*.claims.toml"
    ),
    "track": SchemaKind("agelab.bisect.track.question:Track", "a track", "docs/howto/track/*.toml"),
    "result": SchemaKind("agelab.results.result:ResultDocument", "what agelab show --json prints"),
}


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of that kind; the ``description`` of a key says what it means."""

    kind = KINDS[name]
    module, _, attribute = kind.model.partition(":")
    model = getattr(importlib.import_module(module), attribute)
    how: dict[str, Any] = {"schema_generator": _TomlSchema} if kind.files else {"mode": "serialization"}
    return {"$schema": DIALECT, **model.model_json_schema(**how), "title": f"agelab: {kind.what}"}


@click.command()
@click.argument("kind", metavar="KIND", type=click.Choice(list(KINDS)))
def schema(kind: str) -> None:
    """Print the JSON Schema of KIND: of a file that agelab reads, or of a result.

    KIND is scenario, filesystem, machine, drive, layout, recipe (of a kernel), program (of a step), claims (of a
    study), track, or result.

    An editor completes and checks a file by it (docs/reference/scenario.md). What a schema cannot say, such as that two
    names must be the same, agelab says when it reads the file.
    """
    from agelab.cli.options import print_json

    print_json(schema_of(kind))
