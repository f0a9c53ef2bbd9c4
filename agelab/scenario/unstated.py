"""What a study leaves open, and the other way to read it: a part of the scenario's file, as it would be then."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from agelab.base.types import Frozen, Name

Table = Mapping[str, Any]
FIXED = ("name", "unstated")
"""Keys of a scenario by which it and its readings are known."""


class Unstated(Frozen):
    """Something that the study leaves open, or that is not reproduced."""

    says: str = Field(min_length=1, description="what is open")
    name: Name | None = Field(default=None, description="what --instead and agelab why call the other reading")
    called: str = Field(default="", description="the other reading in a few words")
    instead: dict[str, Any] = Field(
        default={}, description="keys of this file as the other reading has them; entries of lists by their names"
    )

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if len({bool(self.name), bool(self.called), bool(self.instead)}) > 1:
            raise ValueError("name, called and instead go together: another reading has all three")
        if fixed := [key for key in FIXED if key in self.instead]:
            raise ValueError(f"instead: {fixed[0]} is the same in every reading")
        return self


def _as_table(raw: object) -> object:
    return {"says": raw} if isinstance(raw, str) else raw


OpenPoint = Annotated[Unstated, BeforeValidator(_as_table, json_schema_input_type=str | Unstated)]
"""As a file has it: a text alone, or with another reading."""


def reading_names(text: str | None) -> tuple[str, ...]:
    """Return the names of other readings in a list with commas, each once, sorted."""
    return tuple(sorted({word.strip() for word in (text or "").split(",") if word.strip()}))


def merged(old: Table, new: Table, place: str = "") -> dict[str, Any]:
    """Return a table with what another one changes of it; lists of named tables entry by entry.

    Raises ValueError for a name that a list has not, or that comes twice, and for an entry without one.
    """
    return {**old, **{key: _value(old.get(key), value, place + key) for key, value in new.items()}}


def _value(old: Any, new: Any, place: str) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return merged(old, new, f"{place}.")
    if not (_named(old) and _named(new)):
        return new
    there, names = [entry.get("name") for entry in old], [entry.get("name") for entry in new]
    for number, name in enumerate(names):
        if not isinstance(name, str):
            raise ValueError(f"{place}[{number}] has no name, by which the entry that it changes is found")
        if name not in there:
            raise ValueError(f"{place} has no {name!r}")
        if name in names[:number]:
            raise ValueError(f"{place} changes {name!r} twice")
    changes = dict(zip(names, new, strict=True))
    return [merged(entry, changes.get(entry.get("name"), {}), f"{place}.") for entry in old]


def _named(value: object) -> bool:
    """Return True for a list of tables of which one has a name, at least."""
    return (
        isinstance(value, Sequence)
        and all(isinstance(entry, dict) for entry in value)
        and any("name" in entry for entry in value)
    )
