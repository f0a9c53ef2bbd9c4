"""Numbers with their origin: the type of every number in a scenario, machine or drive file."""

from pydantic import Field

from agelab.model.base import Frozen, Note, Origin


class Sourced(Frozen):
    """Origin of a figure."""

    origin: Origin
    source: str = Field(default="", description="key in the file's table of sources, if it has one")
    note: Note = ""


class Figure(Sourced):
    """A number with its origin."""

    value: float = Field(ge=0, le=1e18, allow_inf_nan=False, description="in the unit of its key")


class Whole(Sourced):
    """A whole number with its origin."""

    value: int = Field(ge=0, description="in the unit of its key")


class Flag(Sourced):
    """A boolean with its origin."""

    value: bool = Field(description="true or false")
