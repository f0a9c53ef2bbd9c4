"""The base of every type that holds data from outside: frozen, and unknown keys are errors."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from agelab.model.sanitize import escape_controls, escape_json
from agelab.places import corpus_names


class Frozen(BaseModel):
    """Immutable, strict about its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _regular_expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return text


Pattern = Annotated[str, AfterValidator(_regular_expression)]
"""A regular expression."""

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
"""What a file of ours calls a thing."""

Text = Annotated[str, AfterValidator(escape_controls)]
"""Words of any length that were made elsewhere, without what a terminal obeys (agelab.model.sanitize)."""

MAX_LABEL_LENGTH = 4096
"""Characters of a name: as many as a path has bytes. A table's column is as wide as its longest."""


def _label(text: str) -> str:
    shown = escape_controls(text, kept="")
    if len(shown) > MAX_LABEL_LENGTH:
        raise ValueError(f"a name of {len(shown)} characters, and not of {MAX_LABEL_LENGTH} at most")
    return shown


Label = Annotated[str, AfterValidator(_label)]
"""The same, in one line: what stands in a table."""

JsonDetails = Annotated[dict[str, Any], AfterValidator(escape_json)]
"""What is said of a thing, name by name: as JSON has it, each text in one line."""

Origin = Annotated[
    Literal["published", "inferred", "estimated"],
    Field(description="the study or a data sheet says so; it follows from what it says; a guess"),
]
"""Where a figure comes from."""

Note = Annotated[str, Field(description="what else is to be known of it")]
"""A sentence beside a figure, for whoever reads the file."""

Defaults = Literal["period", "today"]
"""Whether mkfs and mount behave as the study had them, or as the tools do now."""

Layout = Literal["single", "raid0"]
"""How the disk under test is put together: one partition, or two that take turns."""


def _corpus_kind(name: str) -> str:
    if name not in corpus_names():
        raise ValueError(f"no such corpus; there are: {', '.join(corpus_names())}")
    return name


CorpusKind = Annotated[
    str, AfterValidator(_corpus_kind), WithJsonSchema({"type": "string", "enum": corpus_names()})
]
"""Which seeded corpus: the name of a file in ``agelab/corpus``."""
