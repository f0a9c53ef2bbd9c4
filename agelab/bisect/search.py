"""The whole search: the ends, the steps, the answer. Starting and resuming are the same."""

from collections.abc import Sequence

from agelab.base.errors import AgelabError
from agelab.bisect import answer, git_search, package_search
from agelab.bisect.answer import BisectAnswer
from agelab.bisect.bisect_directory import BisectDirectory
from agelab.bisect.judges import SymptomJudge, VirtualClockJudge, WallClockJudge
from agelab.bisect.measurements import KernelMeasurer, MeasurementCache, OutcomeKind
from agelab.bisect.verdict import Decision, Judge, KernelVerdict
from agelab.bisect.virtual_clock_rule import SEEDS_NEEDED
from agelab.scenario.jobs import AUTO, Jobs


def make_judge(directory: BisectDirectory, measure: KernelMeasurer, jobs: Jobs = 1) -> Judge:
    """Return the judge for a bisect; so many run seeds of an end run together, with ``auto`` all."""
    question, cache = directory.question(), MeasurementCache(directory, measure)
    if question.symptom:
        return SymptomJudge(question, cache)
    if question.clock == "wall":
        return WallClockJudge(question, cache, directory.log_detail)
    return VirtualClockJudge(question, cache, SEEDS_NEEDED if jobs == AUTO else jobs)


def run_search(directory: BisectDirectory, judge: Judge, step: Sequence[str]) -> BisectAnswer:
    """Search to the end and store the answer. ``step`` is the command that judges git's current commit.

    Raises InputError if good is not good, bad not bad, or the two cannot be told apart, and any error that stopped a
    step.
    """
    question = directory.question()
    with directory.lock("bisect"):
        with directory.lock("step"):  # a step may have outlived the process that started it
            known = len(directory.rows("verdicts", KernelVerdict))
            more = f", {known} judged before" if known else ""
            directory.log_line(
                f"{question.candidates} kernels could be the first bad one: about {question.steps} "
                f"step{'' if question.steps == 1 else 's'}{more}"
            )
            directory.log_line(f"both ends: {judge.ends()}")
        if question.tree:
            found = git_search.search(directory, question.tree, step)
        else:
            with directory.lock("step"):
                found = package_search.search(
                    question.kernels, lambda kernel: verdict_on(directory, judge, kernel).decision
                )
        return answer.write_answer(directory, found)


def judge_current_commit(directory: BisectDirectory, judge: Judge) -> int:
    """Judge git's current commit and return the exit status for git. Raises AgelabError if it cannot be judged."""
    question = directory.question()
    if question.tree is None:
        raise AgelabError(f"{directory.name} searches packages, not a git tree")
    with directory.lock("step"):
        git_search.copy_log(directory)
        kernel = question.tree.kernel_spec(git_search.commit_to_judge(directory))
        return git_search.exit_status(verdict_on(directory, judge, kernel).decision)


def verdict_on(directory: BisectDirectory, judge: Judge, kernel: str) -> KernelVerdict:
    """Return the known verdict on a kernel, or judge, store and log a new one."""
    question, verdicts = directory.question(), directory.rows("verdicts", KernelVerdict)
    if known := next((one for one in verdicts if one.kernel == kernel), None):
        return known
    skipped = sum(one.decision is Decision.UNDECIDED for one in verdicts)
    number, about = len(verdicts) + 1, max(len(verdicts) + 1, question.steps + skipped)
    step = f"step {number} of about {about}: {answer.kernel_label(question, kernel)}"
    directory.log_detail(step)
    verdict = judge.judge(kernel, directory.log_detail)
    directory.append("verdicts", verdict)
    directory.log_line(f"{step}: {describe_verdict(verdict)}")
    return verdict


def describe_verdict(verdict: KernelVerdict) -> str:
    """Describe a verdict in one line."""
    word = "skipped" if verdict.decision is Decision.UNDECIDED else str(verdict.decision)
    undecided = verdict.kind is OutcomeKind.MEASURED and verdict.decision is Decision.UNDECIDED
    why = f"undecided, {verdict.reason}" if undecided else verdict.reason
    return f"{word}: {why}" + (f"; {verdict.note}" if verdict.note else "")
