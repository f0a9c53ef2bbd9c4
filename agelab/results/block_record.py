"""What was recorded of the requests of a cell's drives."""

from pydantic import Field

from agelab.base.types import Frozen
from agelab.results.result import Status

PLACE = "blocks"
"""The directory of the records in that of a cell."""
FILE = "blocks.json"


class StepRecord(Frozen):
    """The requests of one repetition of a step."""

    step: str
    repetition: int
    file: str = Field(description="name of its files, without their endings .iolog and .blkparse")
    requests: int = Field(description="number of requests that the drives were sent")
    lost: int = Field(description="number of events for which the guest had no room")


class RequestRecord(Frozen):
    """blocks.json."""

    status: Status = Field(description="how the pass ended; what it measured is no result")
    reason: str | None = None
    steps: tuple[StepRecord, ...]
