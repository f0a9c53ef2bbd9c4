"""Histories of a filesystem, as a scenario requests them from an engine."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from agelab.base.types import Figure, Frozen, Name, Note
from agelab.scenario.aging_profile import Profile


class _Named(Frozen):
    """Fields of every history."""

    name: Name = Field(description="suffix of the variant's name: ext4-profile")
    note: Note = ""


class _Asked(_Named):
    """Fields of every engine."""

    points: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="number of points, after equal numbers of bytes, where the history may be stopped",
    )


def _profile_tag(raw: object) -> str:
    return "~profile" if isinstance(raw, dict | Profile) else "~name"


class Profiled(_Asked):
    """Create and delete files until they match a profile's sizes, ages and depths."""

    engine: Literal["profile"] = Field(description="engine")
    profile: Annotated[
        Annotated[str, Tag("~name")] | Annotated[Profile, Tag("~profile")], Discriminator(_profile_tag)
    ] = Field(
        description="one of agelab list profiles, or a file of your own: ./mine.toml, from the scenario's file on"
    )
    fullness: Figure = Field(description="share of the disk, 0 to 1")
    overwrites: Figure = Field(description="bytes written, the filling included, as a multiple of the disk's size")


class Versions(_Asked):
    """Check out the versions of a seeded source tree, one over the other."""

    engine: Literal["history"] = Field(description="engine")
    fullness: Figure = Field(description="share of the disk to which the tree grows, 0 to 1")
    overwrites: Figure = Field(
        description="bytes written, the first version included, as a multiple of the disk's size"
    )


class Repository(_Asked):
    """Check out the versions of a user's git repository along first parents, one over the other."""

    engine: Literal["git"] = Field(description="engine")
    repository: str = Field(description="path of the repository")
    revision: str = Field(default="HEAD", description="newest version")


class Churned(_Asked):
    """Repeat the cycles of scenario aging: copy a tree in, delete half of its files; at the end fill the disk."""

    engine: Literal["churn"] = Field(description="engine")
    fullness: Figure = Field(description="share of the disk after the filling, and maximum before it, 0 to 1")
    overwrites: Figure = Field(description="bytes written, without the filling, as a multiple of the disk's size")
    freed: Figure = Field(description="share of all files that is deleted at the end, 0 to 1")


class Pulled(_Asked):
    """Pull the versions of a git repository one after the other: a seeded one like a source tree, or a user's."""

    engine: Literal["pulls"] = Field(description="engine")
    pulls: Figure = Field(description="number of pulls at paper scale, divided as sizes are")
    fullness: Figure = Field(description="share of the disk that the seeded tree takes in the beginning, 0 to 1")
    repository: str = Field(default="", description="path of a repository in place of the seeded one")
    revision: str = Field(default="HEAD", description="newest version")

    def at_shrink(self, shrink: float) -> "Pulled":
        """Return the history with its number of pulls at that scale, one for each point at least."""
        pulls = max(self.points, round(self.pulls.value / shrink))
        return self.model_copy(update={"pulls": self.pulls.model_copy(update={"value": pulls})})


class Logged(_Named):
    """Replay the user's own operation log (docs/operations.md), which has its own points."""

    engine: Literal["log"] = Field(description="engine")
    log: str = Field(description="path of the log")


class Traced(_Named):
    """Send the disk the requests of a trace: an iolog, blkparse's text, a table of MSR, Alibaba, Tencent or SPC."""

    engine: Literal["iolog"] = Field(description="engine")
    trace: str = Field(description="path of the trace, from the scenario's file on")
    device: str = Field(
        default="", description="which device, file, disk or volume of the trace, where it has requests to several"
    )
    before: int = Field(
        default=1 << 20,
        ge=0,
        multiple_of=512,
        description="bytes of the traced device before the place where the disk under test begins",
    )


History = Annotated[
    Profiled | Versions | Repository | Churned | Pulled | Logged | Traced, Field(discriminator="engine")
]
