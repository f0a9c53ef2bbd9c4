"""What differs between two cells: first their inputs, by name, then their samples."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agelab.model.result import Sample


@dataclass(frozen=True)
class Difference:
    """One place in which two cells differ; None stands for what one of them does not have."""

    place: str
    left: Any
    right: Any


def inputs(left: Any, right: Any, place: str = "") -> Iterator[Difference]:
    """Each differing leaf of two input records, with its place: ``seeds.run``, ``qemu.command[12]``."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for key in sorted({*left, *right}):
            yield from inputs(left.get(key), right.get(key), f"{place}.{key}".lstrip("."))
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for number, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from inputs(one, other, f"{place}[{number}]")
    elif left != right:
        yield Difference(place, left, right)


def samples(left: Sequence[Sample], right: Sequence[Sample]) -> list[Difference]:
    """Each sample that one has and the other has not, or has with another value."""

    def table(rows: Sequence[Sample]) -> dict[tuple[str, int, str], Any]:
        return {(row.step, row.repetition, row.metric): row.value for row in rows}

    one, other = table(left), table(right)
    return [
        Difference(
            f"{step} {repetition} {metric}",
            one.get((step, repetition, metric)),
            other.get((step, repetition, metric)),
        )
        for step, repetition, metric in dict.fromkeys([*one, *other])
        if one.get((step, repetition, metric)) != other.get((step, repetition, metric))
    ]
