"""A history of a filesystem: what a scenario asks an engine for, before there is a log."""

from typing import Annotated, Literal

from pydantic import Field

from agelab.model.base import Frozen, Name, Note
from agelab.model.figure import Figure


class _Named(Frozen):
    """What every history has."""

    name: Name = Field(description="what follows a variant's name: ext4-profile")
    note: Note = ""


class _Asked(_Named):
    """What every engine is asked."""

    points: int = Field(
        default=1, ge=1, le=1000, description="where the history may be stopped: each after as many bytes"
    )


class Profiled(_Asked):
    """Files come and go until they have a published profile's sizes, ages and depths."""

    engine: Literal["profile"] = Field(description="what makes it")
    profile: str = Field(description="a file of agelab/history")
    fullness: Figure = Field(description="of the disk, 0 to 1")
    overwrites: Figure = Field(description="how often the disk's bytes are written, the filling included")


class Versions(_Asked):
    """The versions of a seeded source tree, each checked out over the one before."""

    engine: Literal["history"] = Field(description="what makes it")
    fullness: Figure = Field(description="of the disk, that the tree grows to, 0 to 1")
    overwrites: Figure = Field(
        description="how often the disk's bytes are written, the first version included"
    )


class Repository(_Asked):
    """The versions of a user's git repository along first parents, each checked out over the one before."""

    engine: Literal["git"] = Field(description="what makes it")
    repository: str = Field(description="where it is")
    revision: str = Field(default="HEAD", description="its newest version")


class Churned(_Asked):
    """The cycles of scenario aging: a tree is copied in, half of its files deleted; at the end the disk is filled."""

    engine: Literal["churn"] = Field(description="what makes it")
    fullness: Figure = Field(description="of the disk, after the filling and never above before, 0 to 1")
    overwrites: Figure = Field(description="how often the disk's bytes are written, the filling left out")
    freed: Figure = Field(description="the share of all files that is deleted at the end, 0 to 1")


class Logged(_Named):
    """An operation log of the user's own (docs/operations.md); its points are its own."""

    engine: Literal["log"] = Field(description="what makes it")
    log: str = Field(description="where it is")


History = Annotated[Profiled | Versions | Repository | Churned | Logged, Field(discriminator="engine")]
