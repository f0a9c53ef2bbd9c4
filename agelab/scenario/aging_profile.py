"""Aging profiles: what sizes, ages and depths the files of a history have (agelab/data/history/profile.py)."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from agelab.base.types import Frozen, Name, WithOrigin

MAX_CLASSES, MAX_DEPTH, MAX_DIRECTORIES = 1000, 255, 1_000_000
Weight = Annotated[int, Field(ge=0, lt=2**53)]
Bound = Annotated[int, Field(ge=0, lt=2**63)]


def is_path(name: str) -> bool:
    """Return True if a profile's name is the path of a file of the user's."""
    return "/" in name or name.endswith(".toml")


class WeightedClasses(WithOrigin):
    """Classes of files with weights."""

    weights: tuple[Weight, ...] = Field(
        min_length=1, max_length=MAX_CLASSES, description="how many of the files are in each class"
    )

    @model_validator(mode="after")
    def _one_counts(self) -> Self:
        if not any(self.weights):
            raise ValueError("weights: one at least must be above 0")
        return self

    def shares(self) -> list[float]:
        """Return the share of files in each class."""
        whole = sum(self.weights)
        return [weight / whole for weight in self.weights]


class BoundedClasses(WeightedClasses):
    """Classes by value with weights: each reaches from the previous bound up to its own; one up to 0 is the value 0."""

    upto: tuple[Bound, ...] = Field(
        min_length=1, max_length=MAX_CLASSES, description="each class's largest value, rising"
    )

    @model_validator(mode="after")
    def _each_has_a_weight(self) -> Self:
        if len(self.upto) != len(self.weights) or list(self.upto) != sorted(set(self.upto)):
            raise ValueError("upto must rise, and each class have a weight")
        return self


class DepthClasses(WeightedClasses):
    """Weights of files with 1, 2, 3 ... directories above them, and the number of directories at each depth."""

    directories: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        min_length=1, max_length=MAX_DEPTH, description="how many there are at each depth"
    )

    @model_validator(mode="after")
    def _each_has_a_weight(self) -> Self:
        if len(self.directories) != len(self.weights):
            raise ValueError("each depth has a weight and a number of directories")
        if sum(self.directories) > MAX_DIRECTORIES:
            raise ValueError(f"directories: {MAX_DIRECTORIES:,} together at most")
        return self


class Profile(Frozen):
    """Distributions of size, age and depth of the files on a filesystem."""

    name: Name = Field(description="what reports call it")
    title: str = Field(description="the study that they are from")
    read_by: str = Field(default="", description="who read them off that study, and how")
    sizes: BoundedClasses = Field(description="bytes; a class up to 0 is of empty files")
    ages: BoundedClasses = Field(description="in any unit: the oldest is the whole history")
    depths: DepthClasses = Field(description="directories above a file")

    @model_validator(mode="after")
    def _time_goes_on(self) -> Self:
        if not self.mean_size:
            raise ValueError("sizes: every file would be empty: give a class above 0 bytes a weight")
        if not self.ages.upto[-1]:
            raise ValueError("ages: upto must end above 0")
        return self

    @property
    def mean_size(self) -> float:
        """Bytes of a file on average: within a class each size is as likely."""
        lows = (0, *self.sizes.upto)
        mean = ((low + 1 + upto) / 2 if upto else 0.0 for low, upto in zip(lows, self.sizes.upto, strict=False))
        return sum(share * size for share, size in zip(self.sizes.shares(), mean, strict=True))
