"""One repetition of a step, as the guest's plan has it."""

from dataclasses import asdict, dataclass
from typing import Any

from agelab.data.corpus import Corpus
from agelab.scenario.metrics import METRICS
from agelab.scenario.step import Action, Caches

HOST_ONLY = ("output",)
"""Fields of which the guest is told nothing."""


@dataclass(frozen=True)
class StepOutput:
    """What the host reads of what a step prints."""

    program: str | None = None
    """The program that printed it; None for the numbers of ``records``."""
    records: tuple[str, ...] = ()

    @classmethod
    def of(cls, action: Action) -> "StepOutput | None":
        """Return what is read of a step; None where the guest reports the whole numbers of registered metrics."""
        if action.program is not None:
            return cls(program=action.program)
        own = any(metric not in METRICS for metric in action.records)
        return cls(records=action.records) if own else None


@dataclass(frozen=True)
class StepPlan:
    """One repetition of a step. The fields are the guest's (harness/plan.py)."""

    name: str
    repetition: int
    run: str
    caches: Caches
    sync: bool
    pause: float
    expect: tuple[int, ...]
    refuses: tuple[str, ...]
    deadline: float
    moves: int | None
    records: tuple[tuple[str, str], ...]
    disk: int = 0
    trace: tuple[str, ...] | None = None
    cut_after: tuple[float, float] | None = None
    """The window in which the power is cut; the guest is told the moment."""
    fail_after: float | None = None
    """Seconds after which a drive stops answering."""
    output: StepOutput | None = None
    """What the host reads of what it prints; None for nothing."""

    @classmethod
    def of(cls, action: Action, repetition: int, corpus: Corpus) -> "StepPlan":
        output = StepOutput.of(action)
        reported = () if output else action.records
        return cls(
            name=action.name,
            repetition=repetition,
            run=action.run,
            caches=action.caches,
            sync=action.sync,
            pause=action.pause,
            expect=action.expect,
            refuses=action.refuses,
            deadline=action.deadline,
            moves=corpus.content_bytes if action.moves == "corpus" else None,
            records=tuple((metric, METRICS[metric].unit) for metric in reported),
            cut_after=action.cut_after,
            output=output,
        )

    def to_json(self, cut_at: float | None) -> dict[str, Any]:
        """Return the step of a plan, its power cut after so many seconds; without a cut or a drive that
        fails there is no such field."""
        told = asdict(self) | {"cut_after": cut_at}
        return {
            name: value
            for name, value in told.items()
            if name not in HOST_ONLY and (name not in ("cut_after", "fail_after") or value is not None)
        }
