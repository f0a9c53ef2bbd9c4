"""The whole search: the ends, the steps, the answer; a list of packages is halved here, a tree by git."""

from collections.abc import Callable, Sequence

from agelab.base.errors import InputError, Notify
from agelab.bisect import answer, git_search
from agelab.bisect.answer import BisectAnswer
from agelab.bisect.bisect_directory import BisectDirectory
from agelab.bisect.judges import Judge, SymptomJudge, VirtualClockJudge, WallClockJudge
from agelab.bisect.measurements import (
    Decision,
    FoundChange,
    KernelMeasurer,
    KernelVerdict,
    MeasurementCache,
    OutcomeKind,
)
from agelab.bisect.rules import SEEDS_NEEDED
from agelab.kernel import available, require_spec
from agelab.kernel.debian_kernel import numbers, release_of
from agelab.scenario.jobs import AUTO, Jobs
from agelab.store.artefacts import Store


def make_judge(directory: BisectDirectory, measure: KernelMeasurer, jobs: Jobs = 1) -> Judge:
    """Return the judge for a bisect; so many run seeds of an end run together, with ``auto`` all."""
    question, cache = directory.question(), MeasurementCache(directory, measure)
    if question.symptom:
        return SymptomJudge(question, cache)
    if question.clock == "wall":
        return WallClockJudge(question, cache, directory.log_detail)
    return VirtualClockJudge(question, cache, SEEDS_NEEDED if jobs == AUTO else jobs)


def run_search(directory: BisectDirectory, judge: Judge) -> BisectAnswer:
    """Search to the end and store the answer.

    Raises InputError if good is not good, bad not bad, or the two cannot be told apart, and any error that stopped a
    step.
    """
    question = directory.question()

    def decide(kernel: str) -> Decision:
        return verdict_on(directory, judge, kernel).decision

    with directory.lock():
        known = len(directory.rows("verdicts", KernelVerdict))
        more = f", {known} judged before" if known else ""
        directory.log_line(
            f"{question.candidates} kernels could be the first bad one: about {question.steps} "
            f"step{'' if question.steps == 1 else 's'}{more}"
        )
        directory.log_line(f"measuring both ends: {question.name} on good {question.good} and bad {question.bad}")
        directory.log_line(f"both ends: {judge.ends()}")
        tree = question.tree
        change = git_search.search(directory, tree, decide) if tree else halve(question.kernels, decide)
        return answer.write_answer(directory, change)


def verdict_on(directory: BisectDirectory, judge: Judge, kernel: str) -> KernelVerdict:
    """Return the known verdict on a kernel, or judge, store and log a new one."""
    question, verdicts = directory.question(), directory.rows("verdicts", KernelVerdict)
    if known := next((verdict for verdict in verdicts if verdict.kernel == kernel), None):
        return known
    skipped = sum(verdict.decision is Decision.UNDECIDED for verdict in verdicts)
    number, about = len(verdicts) + 1, max(len(verdicts) + 1, question.steps + skipped)
    step = f"step {number} of about {about}: {answer.kernel_label(question, kernel)}"
    directory.log_detail(step)
    verdict = judge.judge(kernel, directory.log_detail)
    directory.append("verdicts", verdict)
    directory.log_line(f"{step}: {describe_verdict(verdict)}")
    return verdict


def describe_verdict(verdict: KernelVerdict) -> str:
    word = "skipped" if verdict.decision is Decision.UNDECIDED else str(verdict.decision)
    undecided = verdict.kind is OutcomeKind.MEASURED and verdict.decision is Decision.UNDECIDED
    why = f"undecided, {verdict.reason}" if undecided else verdict.reason
    return f"{word}: {why}" + (f"; {verdict.note}" if verdict.note else "")


DEBIAN = "debian:"


def halve(kernels: Sequence[str], judge: Callable[[str], Decision]) -> FoundChange:
    """Find the last good and the first bad of a list whose first is good and whose last is bad.

    Each step judges the middle of the kernels neither judged nor skipped: with s skipped of n + 1 kernels at most
    ceil(log2 n) + s are judged.
    """
    good, bad = 0, len(kernels) - 1
    skipped: set[int] = set()
    while untested := [place for place in range(good + 1, bad) if place not in skipped]:
        middle = untested[len(untested) // 2]
        decision = judge(kernels[middle])
        if decision is Decision.GOOD:
            good = middle
        elif decision is Decision.BAD:
            bad = middle
        else:
            skipped.add(middle)
    return FoundChange(kernels[good], kernels[bad], tuple(kernels[good + 1 : bad + 1]))


def kernels_between(
    good: str, bad: str, named: Sequence[str], store: Store, progress: Notify, *, headers: bool
) -> list[str]:
    """Return the specs from good to bad, both included: of ``named``, or of all kernels on the mirror.

    ``headers`` leaves out kernels without headers, for which no module can be built. Raises InputError for an unknown
    version, equal ends, and a list that does not go from good to bad.
    """
    ends = [pin(spec, store, progress) for spec in (good, bad)]
    if ends[0] == ends[1]:
        raise InputError(f"good and bad are the same kernel: {ends[0]}")
    if named:
        every = list(dict.fromkeys(pin(spec, store, progress) for spec in named))
        every = [*([] if ends[0] in every else ends[:1]), *every, *([] if ends[1] in every else ends[1:])]
    else:
        every = _kernels_of_mirror(ends, store, progress, headers=headers)
    first, last = (every.index(end) for end in ends)
    if first > last:
        if named:
            raise InputError(f"--kernels: {bad} comes before {good}", hint="name them in the order from good to bad")
        every.reverse()
        first, last = (every.index(end) for end in ends)
    return every[first : last + 1]


def pin(spec: str, store: Store, progress: Notify) -> str:
    """Return a spec of an exact version. Raises InputError for an unknown version."""
    spec = require_spec(spec)
    if not spec.startswith(DEBIAN):
        return spec
    return DEBIAN + release_of(spec.removeprefix(DEBIAN), store, progress=progress)


def _kernels_of_mirror(ends: Sequence[str], store: Store, progress: Notify, *, headers: bool) -> list[str]:
    """Return all kernels of the mirror and the two ends, in the order of their versions."""
    if others := [end for end in ends if not end.startswith(DEBIAN)]:
        raise InputError(
            f"{others[0]}: only Debian's kernels have a known order",
            hint='name the kernels between good and bad in their order: --kernels "A B C"',
        )
    there = [kernel.spec for kernel in available(store, progress=progress) if kernel.headers or not headers]
    return sorted({*there, *ends}, key=by_version)


def by_version(spec: str) -> tuple[tuple[int, ...], str]:
    """Return a key that sorts Debian's kernels, the oldest first."""
    return numbers(spec), spec
