"""Simulate a bisect: a file has each kernel's result, and each measurement is counted.

As a program (``python -m tests.build.simulated_bisect DIRECTORY``) it searches in a process of its own.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from agelab.base.errors import HostError
from agelab.bisect import git_search, search
from agelab.bisect.answer import BisectAnswer
from agelab.bisect.bisect_directory import BisectDirectory, BisectQuestion
from agelab.bisect.judges import Judge
from agelab.bisect.measurements import KernelOutcome, OutcomeKind
from agelab.bisect.search import run_search
from agelab.results.measure import MEAN, Measure
from agelab.store.artefacts import Store

LAST = 64
"""The last commit or kernel, bad; the first is 0."""
BEHAVIOUR, CALLS = "behaviour.json", "calls"


class Toy:
    """Measures by looking it up: kernel (or a commit's subject) to a value, a list of values by seed, or a kind."""

    def __init__(self, directory: BisectDirectory) -> None:
        self._directory = directory
        self._question = directory.question()
        self._behaviour: dict[str, Any] = json.loads((directory.path / BEHAVIOUR).read_text())

    def prepare(self, kernel: str) -> KernelOutcome | None:
        if self._what(kernel) in (OutcomeKind.NO_BUILD, OutcomeKind.UNSUPPORTED):
            return KernelOutcome(kernel=kernel, seed=0, kind=self._what(kernel), why="it does not compile")
        return None

    def run(self, kernel: str, seeds: Sequence[int]) -> list[KernelOutcome]:
        if wrong := self.prepare(kernel):
            return [wrong]
        return [self._one(kernel, seed) for seed in seeds]

    def _what(self, kernel: str) -> Any:
        return self._behaviour[name_of(self._question, kernel)]

    def _one(self, kernel: str, seed: int) -> KernelOutcome:
        name, what = name_of(self._question, kernel), self._what(kernel)
        with (self._directory.path / CALLS).open("a") as file:
            file.write(f"{name} {seed}\n")
        if what == "disk full":
            raise HostError("the disk is full", hint="free some space")
        if what == "killed":  # once: as if the machine had lost its power
            self._behaviour[name] = "dead"
            mend = {**self._behaviour, name: 2.0}
            (self._directory.path / BEHAVIOUR).write_text(json.dumps(mend))
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "slow":  # a guest that takes a while, and a moment to be ended
            try:
                (self._directory.path / "begun").touch()
                time.sleep(60)
            finally:
                time.sleep(0.5)
                (self._directory.path / "tidied").touch()
        if isinstance(what, str):
            return KernelOutcome(
                kernel=kernel, seed=seed, kind=OutcomeKind(what), why="so it was planted", run=f"run-{name}"
            )
        if self._question.symptom:
            return KernelOutcome(kernel=kernel, seed=seed, kind=OutcomeKind.MEASURED, run=f"run-{name}")
        value = what[(seed - 1) % len(what)] if isinstance(what, list) else what
        return KernelOutcome(
            kernel=kernel, seed=seed, kind=OutcomeKind.MEASURED, value=value, unit="s",
            run=f"run-{name}-{seed}",
        )  # fmt: skip


def name_of(question: BisectQuestion, kernel: str) -> str:
    """The made-up name of a kernel: of a commit its subject."""
    return kernel if question.tree is None else _subject(question.tree.path, question.tree.commit_of(kernel))


@cache
def _subject(tree: str, commit: str) -> str:
    git = ["git", "-C", tree, "-c", "safe.directory=*"]
    shown = subprocess.run([*git, "log", "-1", "--format=%s", commit], capture_output=True, check=True, text=True)
    return shown.stdout.strip()


def history(path: Path, commits: int) -> None:
    """A git tree with so many commits that pass for kernels: their subjects are 0, 1, ..., their tags v6.0, ..."""
    stream = ["feature done", "reset refs/heads/main"]
    for number in range(commits):
        makefile = f"VERSION = 6\nPATCHLEVEL = {number}\n"
        stream += ["commit refs/heads/main", f"mark :{number + 1}", f"committer a <a@b> {1_000_000 + number} +0000"]
        stream += [f"data {len(str(number))}", str(number)]
        if number == 0:
            for name in ("kernel/a.c", "fs/a.c", "arch/x86/Kconfig", "Kconfig"):
                stream += [f"M 644 inline {name}", "data 0", ""]
        stream += ["M 644 inline Makefile", f"data {len(makefile)}", makefile]
        stream += [f"reset refs/tags/v6.{number}", f"from :{number + 1}", ""]
    git = ["git", "-C", str(path)]
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(path)], check=True, env=ENV)
    text = "\n".join([*stream, "done", ""]).encode()
    subprocess.run([*git, "fast-import", "--quiet"], input=text, check=True, env=ENV)
    subprocess.run([*git, "reset", "--quiet", "--hard", "main"], check=True, env=ENV)


ENV = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_NAME": "a" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "a@b" for who in ("AUTHOR", "COMMITTER")},
}


def asked(store: Store, behaviour: Mapping[str, object], **other: Any) -> BisectDirectory:
    """A bisect of these made-up kernels, in the order in which they stand there, but for what is said otherwise."""
    kernels = other.get("kernels", tuple(behaviour))
    symptom = other.get("symptom")
    said: dict[str, Any] = {
        "directory": "/",
        "name": "small-ext4",
        "variant": "ext4",
        "words": {"jobs": 1, "scale": "quick"},
        "clock": "virtual",
        "good": "G",
        "bad": "B",
        "kernels": kernels,
        "candidates": len(kernels) - 1,
        "metric": None if symptom else Measure("copy", MEAN, "elapsed"),
        "rounds": 60,
        "alpha": "1/100",
        "seed": 1,
        **other,
    }
    directory = BisectDirectory.create(store, BisectQuestion(**said))
    (directory.path / BEHAVIOUR).write_text(json.dumps(behaviour))
    return directory


def asked_of_tree(
    store: Store, path: Path, behaviour: Mapping[str, object], good: str, bad: str, **other: Any
) -> BisectDirectory:
    """A bisect of that git tree."""
    found, count = git_search.resolve_tree(path, good, bad, "")
    kernels = (found.kernel_spec(found.good), found.kernel_spec(found.bad))
    return asked(store, behaviour, tree=found, kernels=kernels, candidates=count, **other)


def planted(first_bad: int, last: int = LAST, **other: object) -> dict[str, object]:
    """Values of 1 s before that commit and 2 s from it on, but for those that are said."""
    values: dict[str, object] = {str(one): 2.0 if one >= first_bad else 1.0 for one in range(last + 1)}
    return {**values, **{name.removeprefix("at_"): value for name, value in other.items()}}


def carry_out(directory: BisectDirectory) -> BisectAnswer:
    return run_search(directory, judge(directory))


def judge(directory: BisectDirectory) -> Judge:
    return search.make_judge(directory, Toy(directory))


def calls(directory: BisectDirectory) -> list[str]:
    """Return the measurements in order: kernel and seed."""
    path = directory.path / CALLS
    return path.read_text().splitlines() if path.exists() else []


if __name__ == "__main__":
    carry_out(BisectDirectory(Path(sys.argv[1])))
