"""Base and common fields of every type for data from outside, and the type of every number in a data file."""

import re
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from agelab.base.places import corpus_names, layout_names
from agelab.base.sanitize import escape_controls, escape_json


class Frozen(BaseModel):
    """Immutable model that rejects unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Shorthand(Frozen):
    """Table that one value of a file can stand for: ``disk = "320 MiB"`` is ``disk = { mib = "320 MiB" }``."""

    short_for: ClassVar[tuple[str, ...]]
    """The keys that have the value."""
    short_types: ClassVar[tuple[str, ...]]
    """JSON's types of the value."""

    @model_validator(mode="before")
    @classmethod
    def _spell_out(cls, raw: object) -> object:
        short = isinstance(raw, str | int | float) and not isinstance(raw, bool)
        return dict.fromkeys(cls.short_for, raw) if short else raw

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema of a file's value, the short one or the table; results have the table alone."""
        reference = handler(core_schema)
        if handler.mode == "validation":
            schema = handler.resolve_ref_schema(reference)
            table = {key: schema.pop(key) for key in [*schema] if key not in ("title", "description")}
            schema["anyOf"] = [*({"type": kind} for kind in cls.short_types), table]
        return reference


def is_empty(value: object) -> bool:
    """Return True for the value of a field that is left out where it says nothing: older records have no such field."""
    return not value


def _regular_expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return text


Pattern = Annotated[str, AfterValidator(_regular_expression)]
"""A regular expression."""

MAX_NAME_LENGTH = 100
"""Maximum length of a name that becomes part of a file's name."""
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=MAX_NAME_LENGTH)]
"""Name of a thing in a data file."""

SUITES = ("bullseye", "bookworm", "bookworm-backports", "trixie", "trixie-backports", "forky", "sid")
"""The suites of Debian that a user may ask for, the oldest first; a misspelt one is no mirror out of reach."""


def _suite(name: str) -> str:
    if name not in ("", *SUITES):
        raise ValueError(f"no such suite of Debian; there are: {', '.join(SUITES)}")
    return name


DebianSuite = Annotated[str, AfterValidator(_suite), WithJsonSchema({"type": "string", "enum": ["", *SUITES]})]
"""A suite of Debian; empty: the usual one."""


AlsoFrom = Literal["contrib", "experimental"]
"""Packages of Debian beside a suite's main ones: its component contrib, or those of experimental that it has not."""

Text = Annotated[str, AfterValidator(escape_controls)]
"""Untrusted text of any length, with control characters escaped (agelab.base.types)."""

MAX_LABEL_LENGTH = 4096
"""Maximum length of a name in characters, that of a path. A table's column is as wide as its longest name."""


@lru_cache(10_000)  # a run's samples have few names, many times each
def _label(text: str) -> str:
    shown = escape_controls(text, kept="")
    if len(shown) > MAX_LABEL_LENGTH:
        raise ValueError(f"a name of {len(shown)} characters, and not of {MAX_LABEL_LENGTH} at most")
    return shown


Label = Annotated[str, AfterValidator(_label)]
"""Untrusted text for one line of a table: control characters and line breaks escaped."""

JsonDetails = Annotated[dict[str, Any], AfterValidator(escape_json)]
"""Untrusted JSON object whose texts are escaped for one line each."""

Origin = Annotated[
    Literal["published", "inferred", "calibrated", "estimated"],
    Field(
        description="the study or a data sheet states it; it follows from such a statement; it is fitted to published "
        "measurements that are not the study's; an estimate"
    ),
]
"""Origin of a figure."""


class WithOrigin(Frozen):
    """A value with its origin, and in ``why`` what it is and the reason for it."""

    origin: Origin
    why: str = Field(description="what it is, and the reason for it")


Note = Annotated[str, Field(description="additional remark")]
"""Remark on a figure for readers of the file."""

Defaults = Literal["period", "today"]
"""Behaviour of mkfs and mount: as in the study's days, or as today."""
ScaleName = Literal["quick", "paper"]


def _layout_name(name: str) -> str:
    if name not in layout_names():
        raise ValueError(f"no such layout; there are: {', '.join(layout_names())}")
    return name


LayoutName = Annotated[str, AfterValidator(_layout_name), WithJsonSchema({"type": "string", "enum": layout_names()})]
"""Structure of the disk under test: a file of scenarios/layouts (agelab.scenario.layout)."""


def _corpus_kind(name: str) -> str:
    if name not in corpus_names():
        raise ValueError(f"no such corpus; there are: {', '.join(corpus_names())}")
    return name


CorpusKind = Annotated[str, AfterValidator(_corpus_kind), WithJsonSchema({"type": "string", "enum": corpus_names()})]
"""Name of a seeded corpus: a file in ``agelab/data/corpus``."""


class Sourced(Frozen):
    """Origin of a figure."""

    origin: Origin = "estimated"
    source: str = Field(default="", description="key in the file's table of sources, if it has one")
    note: Note = ""


class Figure(Sourced, Shorthand):
    """A number with its origin; a number alone is an estimate."""

    short_for = ("value",)
    short_types = ("number",)

    value: float = Field(ge=0, le=1e18, allow_inf_nan=False, description="in the unit of its key")


MIB_IN = {
    "KiB": 2**-10,
    "MiB": 1,
    "GiB": 2**10,
    "TiB": 2**20,
    "kB": 1e3 / 2**20,
    "MB": 1e6 / 2**20,
    "GB": 1e9 / 2**20,
}
"""MiB in each unit of a size."""


def _in_mib(raw: object) -> object:
    if not isinstance(raw, str):
        return raw
    number = re.fullmatch(rf"([0-9]+(?:\.[0-9]+)?) ?({'|'.join(MIB_IN)})", raw)
    if number is None:
        raise ValueError(f'a size is a number with a unit, like "320 MiB" ({", ".join(MIB_IN)})')
    return float(number[1]) * MIB_IN[number[2]]


Size = Annotated[Figure, BeforeValidator(_in_mib, json_schema_input_type=Figure | str)]
"""A size: ``"320 MiB"``, or a number of MiB."""


class Whole(Sourced, Shorthand):
    """A whole number with its origin; a number alone is an estimate."""

    short_for = ("value",)
    short_types = ("integer",)

    value: int = Field(ge=0, description="in the unit of its key")


class Flag(Sourced):
    """A boolean with its origin."""

    value: bool = Field(description="true or false")
