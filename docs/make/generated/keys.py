"""The keys of a kind of file, or of a result, from its JSON Schema: a table for each table that it may have."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agelab.cli.schema import schema_of
from docs.make.generated.markdown import code, plain, table

Schema = Mapping[str, Any]
Row = tuple[str, str, str, str]
HEADS = ("key", "holds", "default", "meaning")
WORDS = {"string": "text", "integer": "whole number", "boolean": "true or false", "number": "number"}
FIGURES = {"Figure": "number", "Whole": "whole number", "Flag": "true or false", "BandedFigure": "number"}
"""Types of a value with its origin, and what the value is."""
STEPS = {"Action": "a step", "Cycle": "a cycle of steps"}
SIZE = code('"320 MiB"')
OWN_PAGE = ("scenario",)
"""Kinds whose headings need no kind: nothing else is on their page."""
SEVERAL = 4
"""Places of a table that its heading names."""
COMMON = 3
"""Tables with an equal row, from which on it has one place."""
COMMON_KEYS = "Keys of several tables"


def sections(kind: str) -> str:
    """Write a table for each table of the kind, beginning with the whole."""
    return "\n".join(_Kind(kind).lines())


class _Kind:
    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._whole = schema_of(kind)
        self._types: Mapping[str, Schema] = self._whole.get("$defs", {})
        self._places = self._named()
        self._common = self._common_rows()

    def lines(self) -> Iterator[str]:
        yield from self._section(self._whole)
        for name in self._places:
            yield f"### {self._heading(name)}\n"
            if name in FIGURES:
                yield self._figure_note(name)
            yield from self._section(self._types[name])
        if self._common:
            yield f"### {COMMON_KEYS}{self._of_kind()}\n"
            yield table(HEADS, self._common)

    def _common_rows(self) -> list[Row]:
        """Return the rows that several tables have, of keys that mean one thing in all of these."""
        tables = [self._whole, *(self._types[name] for name in self._places)]
        count = Counter(row for one in tables for row in self._rows(one))
        common = [row for row, tables_with in count.items() if tables_with >= COMMON]
        keys = Counter(key for key, *_ in common)
        return [row for row in common if keys[row[0]] == 1]

    def _named(self) -> dict[str, list[str]]:
        """Return the types in the order in which the file comes to them, with the keys that hold them."""
        places: dict[str, list[str]] = {}
        waiting: list[tuple[str, Schema]] = [("", self._whole)]
        for place, schema in waiting:
            for key, what in properties(schema).items():
                path = f"{place}.{key}" if place else key
                for name in _references(what):
                    if name not in places:
                        waiting.append((path, self._types[name]))
                    places.setdefault(name, []).append(path)
        figures = [name for name in places if name in FIGURES]
        return {name: places[name] for name in [*(name for name in places if name not in figures), *figures]}

    def _heading(self, name: str) -> str:
        """Name a type by the keys that hold it."""
        if name in FIGURES:
            words = "A number with a band" if name == "BandedFigure" else f"A {FIGURES[name]}, and its origin"
            return words.replace("A true or false", "True or false") + self._of_kind()
        places = self._places[name]
        shown = ", ".join(map(code, places[:SEVERAL])) + (", ..." if len(places) > SEVERAL else "")
        alone = sum(places[0] in other for other in self._places.values()) == 1
        return f"{shown}{'' if alone else f': {_words(name, self._types[name])}'}{self._of_kind()}"

    def _of_kind(self) -> str:
        return "" if self._kind in OWN_PAGE else f" ({self._kind})"

    def _figure_note(self, name: str) -> str:
        example = {"Flag": "true", "Whole": "8"}.get(name, "7.5")
        return f'`{example}`, or with where it comes from: `{{ value = {example}, origin = "published" }}`.\n'

    def _link(self, name: str, text: str) -> str:
        return self._anchor(self._heading(name), text)

    def _anchor(self, heading: str, text: str) -> str:
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        return f"[{text}](#{slug})"

    def _section(self, schema: Schema) -> Iterator[str]:
        for paragraph in schema.get("description", "").split("\n\n"):
            yield plain(paragraph.replace("``", "")) + "\n"
        if "enum" in schema:
            yield ", ".join(code(str(value)) for value in schema["enum"]) + "\n"
        rows = self._rows(schema)
        if own := [row for row in rows if row not in self._common]:
            yield table(HEADS, own)
        if common := [key for key, *_ in (row for row in rows if row in self._common)]:
            yield f"Also, of {self._anchor(COMMON_KEYS + self._of_kind(), 'several tables')}: {', '.join(common)}.\n"

    def _rows(self, schema: Schema) -> list[Row]:
        needed = _required(schema)
        return [
            (
                code(key),
                self._type(what),
                "required" if key in needed else _default(what),
                plain(what.get("description", "")),
            )
            for key, what in properties(schema).items()
        ]

    def _type(self, schema: Schema) -> str:
        """Describe the values of a key."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            if name in FIGURES:
                return self._link(name, FIGURES[name])
            if "enum" in self._types[name]:
                return ", ".join(code(str(value)) for value in self._types[name]["enum"])
            return " or ".join([*_short(self._types[name]), self._link(name, "table")])
        if cases := schema.get("anyOf") or schema.get("oneOf"):
            if _is_size(cases):
                return f"{self._link('Figure', 'size')}: {SIZE}"
            words = (self._type(case) for case in cases if case.get("type") != "null")
            tables = [name for case in cases if "$ref" in case for name in _references(case)]
            if len(tables) > 1:
                words = (self._link(name, _words(name, self._types[name])) for name in tables)
            several = dict.fromkeys(words)
            return " or ".join(word for word in several if word != WORDS["integer"] or WORDS["number"] not in several)
        if "const" in schema:
            return code(str(schema["const"]))
        if "enum" in schema:
            return ", ".join(code(str(value)) for value in schema["enum"] if value != "")
        if schema.get("type") == "array":
            items = schema.get("items") or (schema.get("prefixItems") or [{}])[0]
            count = f"{schema['maxItems']} times " if "prefixItems" in schema and schema.get("maxItems") else "list of "
            return f"{count}{self._type(items)}" if items else "list"
        if schema.get("type") == "object":
            [inner] = [*schema.get("patternProperties", {}).values(), schema.get("additionalProperties")][:1]
            return f"table: name to {self._type(inner)}" if isinstance(inner, dict) else "table"
        return WORDS.get(schema.get("type", "anything"), str(schema.get("type", "anything"))) + _range(schema)


def properties(schema: Schema) -> Mapping[str, Schema]:
    """Return the keys of a table, also of one for which a single value can stand."""
    tables: Sequence[Schema] = (schema, *schema.get("anyOf", ()))
    return {key: what for one in tables for key, what in one.get("properties", {}).items()}


def _short(schema: Schema) -> list[str]:
    """Name the values that can stand for a table."""
    kinds = [case["type"] for case in schema.get("anyOf", ()) if "type" in case and "properties" not in case]
    return [f"size: {SIZE}"] if kinds == ["string", "number"] else [WORDS[kind] for kind in kinds]


def _required(schema: Schema) -> set[str]:
    return {key for one in (schema, *schema.get("anyOf", ())) for key in one.get("required", ())}


def _references(schema: Any) -> Iterator[str]:
    """Yield the names of the types that a key may hold, at any depth of its lists."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].rpartition("/")[2]
        for name, inner in schema.items():
            if name != "discriminator":
                yield from _references(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _references(inner)


def _words(name: str, schema: Schema) -> str:
    """Name one of several tables that a key may hold: by the word that tells it from the others, or by its type."""
    for key, what in properties(schema).items():
        if "const" in what and key in _required(schema):
            return f"{key} = {what['const']}"
    return STEPS.get(name) or re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()


def _is_size(cases: Sequence[Schema]) -> bool:
    kinds = {case.get("type") or case.get("$ref", "").rpartition("/")[2] for case in cases}
    return kinds - {"null"} == {"Figure", "string"}


def _range(schema: Schema) -> str:
    """Say between which numbers a number is; whole numbers of a few digits alone need it."""
    least, most = schema.get("minimum"), schema.get("maximum")
    if isinstance(least, int) and isinstance(most, int) and most < 10**6:
        return f", {least} to {most}"
    return f", {least} or more" if isinstance(least, int) and schema.get("type") == "integer" else ""


def _default(schema: Schema) -> str:
    default = schema.get("default")
    if default in (None, "", [], {}):
        return ""
    if isinstance(default, bool):
        return "true" if default else "false"
    if isinstance(default, list):
        return "" if any(isinstance(one, dict) for one in default) else code(" ".join(map(str, default)))
    if isinstance(default, dict):
        value = default.get("value", "")
        return code(f"{value:g}" if isinstance(value, float) else str(value)) if value != "" else ""
    return code(str(default))
