"""The keys of a kind of file, or of a result, from its JSON Schema: a table for each type."""

from collections.abc import Iterator
from typing import Any

from agelab.cli.schema import schema_of
from generated.markdown import code, plain, table

WORDS = {"string": "text", "integer": "whole number", "boolean": "true or false"}


def sections(kind: str) -> str:
    """Write a section for each type, beginning with that of the whole."""
    schema = schema_of(kind)
    types = {"": schema, **schema.get("$defs", {})}
    return "\n".join(line for name, schema in types.items() for line in _section(kind, name, schema))


def _section(kind: str, name: str, schema: dict[str, Any]) -> Iterator[str]:
    if name:
        yield f"({_label(kind, name)})=\n### {name}\n"
    for paragraph in schema.get("description", "").split("\n\n"):
        yield plain(paragraph.replace("``", "")) + "\n"
    if "enum" in schema:
        yield ", ".join(code(str(value)) for value in schema["enum"]) + "\n"
    needed = schema.get("required", ())
    rows = [
        [code(key), _type(kind, what), "needed" if key in needed else _default(what), _description(what)]
        for key, what in schema.get("properties", {}).items()
    ]
    if rows:
        yield table(["key", "holds", "default", "meaning"], rows)


def _label(kind: str, name: str) -> str:
    return f"{kind}-{name}".lower()


def _description(schema: dict[str, Any]) -> str:
    return plain(schema.get("description", ""))


def _default(schema: dict[str, Any]) -> str:
    default = schema.get("default")
    if default in (None, "", [], {}):
        return ""
    if isinstance(default, bool):
        return "true" if default else "false"
    if isinstance(default, list):
        return code(" ".join(map(str, default)))
    return "" if isinstance(default, dict) else code(str(default))


def _type(kind: str, schema: dict[str, Any]) -> str:
    """Describe the values of a key."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{_label(kind, name)})"
    if cases := schema.get("anyOf") or schema.get("oneOf"):
        words = (_type(kind, case) for case in cases if case.get("type") != "null")
        return " or ".join(dict.fromkeys(words))
    if "const" in schema:
        return code(str(schema["const"]))
    if "enum" in schema:
        return ", ".join(code(str(value)) for value in schema["enum"])
    if schema.get("type") == "array":
        items = schema.get("items") or (schema.get("prefixItems") or [{}])[0]
        return f"list of {_type(kind, items)}" if items else "list"
    if schema.get("type") == "object":
        [inner] = [*schema.get("patternProperties", {}).values(), schema.get("additionalProperties")][:1]
        return f"table of {_type(kind, inner)}" if isinstance(inner, dict) else "table"
    return WORDS.get(schema.get("type", "anything"), str(schema.get("type", "anything")))
