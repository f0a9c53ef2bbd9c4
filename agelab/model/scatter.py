"""How a companion disk lies that has been in use for long."""

from typing import Self

from pydantic import Field, model_validator

from agelab.model.base import Frozen, Whole

LIMITS = {"places": (1, 4096), "at_a_time": (1, 256), "piece_kib": (4, 1 << 20)}


class Scatter(Frozen):
    """The tree of a companion disk is scattered over it (harness/scatter.py).

    It is the far end of what use may have done, as a tree that was copied in one go is the near one; no figure of it
    comes from a study.
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
