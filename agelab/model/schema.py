"""A type as JSON Schema, for editors and other programs."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import NullableSchema

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _TomlSchema(GenerateJsonSchema):
    """TOML has no null: what may be left out is just not needed."""

    def nullable_schema(self, schema: NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])


def file_schema(model: type[BaseModel], title: str) -> dict[str, Any]:
    """What a TOML file of that type may hold (draft 2020-12)."""
    return {"$schema": DIALECT, **model.model_json_schema(schema_generator=_TomlSchema), "title": title}


def output_schema(model: type[BaseModel], title: str) -> dict[str, Any]:
    """What is written of that type, as JSON."""
    return {"$schema": DIALECT, **model.model_json_schema(mode="serialization"), "title": title}
