"""JSON Schema of a type, for editors and other programs."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import NullableSchema

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _TomlSchema(GenerateJsonSchema):
    """Schema without null: TOML omits optional values instead."""

    def nullable_schema(self, schema: NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])


def file_schema(model: type[BaseModel], title: str) -> dict[str, Any]:
    """Return the schema (draft 2020-12) of a TOML file of that type."""
    return {"$schema": DIALECT, **model.model_json_schema(schema_generator=_TomlSchema), "title": title}


def output_schema(model: type[BaseModel], title: str) -> dict[str, Any]:
    """Return the schema of a type's JSON output."""
    return {"$schema": DIALECT, **model.model_json_schema(mode="serialization"), "title": title}
