"""A cell's samples, of which a run of many cells has millions: what each is, which cells share, and its value."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, overload

from agelab.results.result import Sample

Place: TypeAlias = tuple[str, int, str]
"""Step, repetition, metric."""
Value: TypeAlias = float | int | None


@dataclass(frozen=True, eq=False)
class SampleKinds:
    """What cells of one kind measured, in its order: samples without their values."""

    samples: tuple[Sample, ...]

    @cached_property
    def at(self) -> Mapping[Place, int]:
        """Each place with the number of its last sample."""
        return {(row.step, row.repetition, row.metric): at for at, row in enumerate(self.samples)}

    @cached_property
    def by_step(self) -> Mapping[tuple[str, str], Mapping[int, int]]:
        """Step and metric to each repetition with the number of its sample, in the order of the samples."""
        steps: dict[tuple[str, str], dict[int, int]] = {}
        for (step, repetition, metric), at in self.at.items():
            steps.setdefault((step, metric), {})[repetition] = at
        return steps


@dataclass(frozen=True, eq=False)
class CellSamples(Sequence[Sample]):
    """The samples of a cell in the order they came, made when one is first asked for."""

    kinds: SampleKinds
    values: Sequence[Value]

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> "CellSamples":
        """Take samples apart, unless they are."""
        if isinstance(samples, cls):
            return samples
        rows = tuple(samples)
        return cls(SampleKinds(rows), [row.value for row in rows])

    @cached_property
    def _made(self) -> Sequence[Sample]:
        rows = zip(self.kinds.samples, self.values, strict=True)
        return [kind.model_copy(update={"value": value}) for kind, value in rows]

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, at: int) -> Sample: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Sample]: ...
    def __getitem__(self, at: int | slice) -> Sample | Sequence[Sample]:
        return self._made[at]

    def __iter__(self) -> Iterator[Sample]:
        return iter(self._made)
