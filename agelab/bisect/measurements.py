"""What one kernel gave with one run seed, and the memory of all that was measured: nothing is measured twice."""

from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from typing import Protocol

from pydantic import Field

from agelab.bisect.bisect_directory import BisectDirectory
from agelab.errors import HostError
from agelab.model.base import Frozen
from agelab.stats.order_statistics import exact


class OutcomeKind(StrEnum):
    """What came of a kernel."""

    MEASURED = "measured"
    NOT_MEASURED = "has no such value"
    NO_KERNEL = "cannot be had"
    NO_BUILD = "does not build"
    NO_BOOT = "does not boot"
    UNSUPPORTED = "is unsupported"
    PANICS = "panics"
    HANGS = "hangs"
    FAILS = "fails"
    INTERRUPTED = "was interrupted"


SEED_INDEPENDENT = (OutcomeKind.NO_KERNEL, OutcomeKind.NO_BUILD, OutcomeKind.NO_BOOT, OutcomeKind.UNSUPPORTED)
"""What is so whatever the run seed."""


class KernelOutcome(Frozen):
    """What one run of a kernel gave."""

    kernel: str
    seed: int
    kind: OutcomeKind
    why: str = Field("", description="where there is no value")
    value: int | float | None = None
    unit: str = ""
    run: str | None = Field(None, description="null where it did not come to a run")
    round: int | None = Field(None, description="of the wall clock")
    candidate: str = Field(
        "", description="of the wall clock: which kernel the round was for; empty: the ends"
    )

    @property
    def exact(self) -> Fraction:
        """The value of one that was measured."""
        assert self.value is not None
        return exact(self.value)

    @property
    def summary(self) -> str:
        """In one line, without the value."""
        first, *more = self.why.splitlines() or [""]
        words = " ".join([first, *(line.strip() for line in more[:1] if first.endswith(":"))])
        return f"{self.kind}: {words}" if words else str(self.kind)


class KernelMeasurer(Protocol):
    """What can measure kernels. Both raise AgelabError for what no other kernel would get past."""

    def prepare(self, kernel: str) -> KernelOutcome | None:
        """Make or fetch a kernel; None where it is there now, or what went wrong with it."""
        ...

    def run(self, kernel: str, seeds: Sequence[int]) -> list[KernelOutcome]:
        """Measure it with each of these run seeds."""
        ...


class MeasurementCache:
    """Measures through ``measure`` what the bisect's directory does not hold yet."""

    def __init__(self, directory: BisectDirectory, measurer: KernelMeasurer) -> None:
        self._directory = directory
        self._measurer = measurer
        self._known = directory.rows("measured", KernelOutcome)

    def measure(self, kernel: str, seeds: Sequence[int]) -> list[KernelOutcome]:
        """What the kernel gave with these run seeds, or the one thing that is so whatever the seed.

        Raises HostError where a run was interrupted: another attempt may come to its end.
        """
        known = {one.seed: one for one in self._known if one.kernel == kernel and one.round is None}
        if (whole := self._whole(kernel)) is not None:
            return [whole]
        if missing := [seed for seed in seeds if seed not in known]:
            found = self._measurer.run(kernel, missing)
            self._keep(found)
            known |= {one.seed: one for one in found}
            if (whole := self._whole(kernel)) is not None:
                return [whole]
        return [known[seed] for seed in seeds]

    def prepare(self, kernel: str) -> KernelOutcome | None:
        """Make a kernel ready to be measured; None, or why that cannot be."""
        if any(one.kernel == kernel and one.kind not in SEED_INDEPENDENT for one in self._known):
            return None
        if (whole := self._whole(kernel)) is None and (whole := self._measurer.prepare(kernel)):
            self._keep([whole])
        return whole

    def measure_in_round(self, kernel: str, number: int, candidate: str) -> KernelOutcome:
        """What the kernel gives now, as one run of that round; the round's number is its run seed."""
        [found] = self._measurer.run(kernel, [number])
        found = found.model_copy(update={"round": number, "candidate": candidate})
        self._keep([found])
        return found

    def rounds(self, candidate: str) -> dict[int, dict[str, KernelOutcome]]:
        """Each round that was for that kernel: number to what each kernel gave in it."""
        found: dict[int, dict[str, KernelOutcome]] = {}
        for one in self._known:
            if one.round is not None and one.candidate == candidate:
                found.setdefault(one.round, {})[one.kernel] = one
        return found

    def next_round(self) -> int:
        """A number that no round has had, finished or not."""
        return max((one.round for one in self._known if one.round is not None), default=0) + 1

    def all(self, kernel: str) -> list[KernelOutcome]:
        """All that is known of a kernel."""
        return [one for one in self._known if one.kernel == kernel]

    def _whole(self, kernel: str) -> KernelOutcome | None:
        return next(
            (one for one in self._known if one.kernel == kernel and one.kind in SEED_INDEPENDENT), None
        )

    def _keep(self, found: Sequence[KernelOutcome]) -> None:
        for one in found:
            if one.kind is not OutcomeKind.INTERRUPTED:
                self._directory.append("measured", one)
                self._known.append(one)
        if broken := next((one for one in found if one.kind is OutcomeKind.INTERRUPTED), None):
            raise HostError(
                f"run {broken.run} was interrupted: {broken.why}",
                hint=f"go on: agelab bisect --continue {self._directory.name}",
            )
