"""The disks of a scenario: the one under test, and the companion beside it."""

from typing import Annotated, Literal, Self

from pydantic import Field, PlainValidator, model_validator

from agelab.base.types import Frozen, Name, Note, Origin, Shorthand, Size, Whole

LIMITS = {"places": (1, 4096), "at_a_time": (1, 256), "piece_kib": (4, 1 << 20)}


class Scatter(Frozen):
    """The tree of a companion disk is scattered over it (harness/scatter.py).

    This is the worst that use may have done, as a tree copied in one go is the best. No figure of it comes from a
    study.
    """

    places: Whole = Field(
        default=Whole(value=64, origin="estimated", note="a far end: a directory's files lie in 64 places"),
        description="directories in which files are written before they are moved to their own",
    )
    at_a_time: Whole = Field(
        default=Whole(value=8, origin="estimated", note="a far end: eight files lie in each other's way"),
        description="files that are written side by side",
    )
    piece_kib: Whole = Field(
        default=Whole(value=256, origin="estimated", note="a far end: two pieces of what is read ahead"),
        description="KiB of a file that are written before the next file's",
    )

    @model_validator(mode="after")
    def _limits_are_kept(self) -> Self:
        problems = [
            f"{name} is {value}, and not {least} to {most}"
            for name, (least, most) in LIMITS.items()
            if not least <= (value := getattr(self, name).value) <= most
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return self


DrivePosition = Literal["outer", "inner"] | Annotated[int, Field(ge=0)]


def _place_on_drive(raw: object) -> object:
    if raw in ("outer", "inner") or (type(raw) is int and raw >= 0):
        return raw
    raise ValueError("Input should be 'outer', 'inner' or a whole number of MiB from the drive's start")


class PartitionUse(Frozen):
    """Position of a partition under test on its drive; no scale shrinks it."""

    drive: int = Field(default=0, ge=0, description="index in the machine's drives, from 0")
    at: Annotated[DrivePosition, PlainValidator(_place_on_drive, json_schema_input_type=DrivePosition)] = Field(
        default="outer", description="the drive's first sectors, its last ones, or MiB from its start"
    )
    origin: Origin = "estimated"
    note: Note = ""


class DiskUse(Shorthand):
    """The disk under test: the first partition, or the first two of them in RAID-0.

    If only one partition is listed, RAID-0 takes a second drive of the same kind at the same place.
    """

    short_for = ("mib",)
    short_types = ("string", "number")
    mib: Size = Field(description="size at paper scale, MiB; in RAID-0 the partitions share it equally")
    filled_mib: Size | None = Field(
        default=None, description="maximum content, MiB at paper scale, if less: the space that the host needs"
    )
    partitions: tuple[PartitionUse, ...] = Field(
        default=(PartitionUse(),),
        min_length=1,
        max_length=2,
        description="one, or the two members of a RAID-0; by default one at the drive's first sectors",
    )
    drives: tuple[Annotated[str, Field(pattern=r"^model:")], ...] = Field(
        default=(), description="drives in place of the machine's: model:<name> or model:none"
    )
    chunk_kib: int | None = Field(default=None, ge=4, description="RAID-0's chunk, if the study states one")


class CompanionDiskUse(Frozen):
    """The companion disk: one more filesystem, made and filled before, that a study copied from or to.

    The steps find it at $BESIDE. Their writes to it are lost at the end of their boot.
    """

    filesystem: Name = Field(description="a file of scenarios/filesystems, without its ending")
    mib: Size = Field(description="size at paper scale, MiB")
    partition: PartitionUse = Field(description="its position")
    holds: Literal["corpus"] = Field(description="its content; the steps find it at $SOURCE")
    scattered: Scatter | None = Field(
        default=None, description="the content lies scattered; by default as one copy has laid it"
    )
    origin: Origin = Field(default="estimated", description="origin of the choice of filesystem")
    note: Note = ""
