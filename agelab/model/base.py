"""The base of every type that holds data from outside: frozen, and unknown keys are errors."""

from typing import Literal

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Immutable, strict about its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Origin = Literal["published", "inferred", "estimated"]
"""Where a figure comes from: the study or a data sheet says so; it follows from what it says; a guess."""

Defaults = Literal["period", "today"]
"""Whether mkfs and mount behave as the study had them, or as the tools do now."""

Layout = Literal["single", "raid0"]
"""How the disk under test is put together: one partition, or two that take turns."""
