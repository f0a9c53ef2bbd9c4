"""The disks of a scenario: the one under test, and the companion beside it."""

from typing import Annotated, Literal

from pydantic import Field, PlainValidator

from agelab.model.base import Figure, Frozen, Name, Note, Origin
from agelab.model.scatter import Scatter

DrivePosition = Literal["outer", "inner"] | Annotated[int, Field(ge=0)]


def _place_on_drive(raw: object) -> object:
    if raw in ("outer", "inner") or (type(raw) is int and raw >= 0):
        return raw
    raise ValueError("Input should be 'outer', 'inner' or a whole number of MiB from the drive's start")


class PartitionUse(Frozen):
    """Position of a partition under test on its drive; no scale shrinks it."""

    drive: int = Field(default=0, ge=0, description="index in the machine's drives, from 0")
    at: Annotated[DrivePosition, PlainValidator(_place_on_drive, json_schema_input_type=DrivePosition)] = (
        Field(description="the drive's first sectors, its last ones, or MiB from its start")
    )
    origin: Origin
    note: Note = ""


class DiskUse(Frozen):
    """The disk under test: the first partition, or the first two of them in RAID-0.

    If only one partition is listed, RAID-0 takes a second drive of the same kind at the same place.
    """

    mib: Figure = Field(description="size at paper scale, MiB; in RAID-0 the partitions share it equally")
    filled_mib: Figure | None = Field(
        default=None,
        description="maximum content, MiB at paper scale, if less: the space that the host needs",
    )
    partitions: tuple[PartitionUse, ...] = Field(
        min_length=1, max_length=2, description="one, or the two members of a RAID-0"
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
    mib: Figure = Field(description="size at paper scale, MiB")
    partition: PartitionUse = Field(description="its position")
    holds: Literal["corpus"] = Field(description="its content; the steps find it at $SOURCE")
    scattered: Scatter | None = Field(
        default=None, description="the content lies scattered; by default as one copy has laid it"
    )
    origin: Origin = Field(description="origin of the choice of filesystem")
    note: Note = ""
