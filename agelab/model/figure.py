"""Numbers with where they come from: every one in a scenario, machine or drive file is one of these."""

from pydantic import Field

from agelab.model.base import Frozen, Note, Origin


class Sourced(Frozen):
    """Where a figure comes from."""

    origin: Origin
    source: str = Field(default="", description="a key of the file's table of sources, where it has one")
    note: Note = ""


class Figure(Sourced):
    """A number."""

    value: float = Field(ge=0, le=1e18, allow_inf_nan=False, description="in the unit of its key")


class Whole(Sourced):
    """A number of things that are counted."""

    value: int = Field(ge=0, description="in the unit of its key")


class Flag(Sourced):
    """Whether something is so."""

    value: bool = Field(description="true or false")
