"""A suite: a user's directory of test programs, or one of them, as a scenario with a case for each test."""

import os
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from json import dumps
from pathlib import Path

from pydantic import Field

from agelab.base.errors import InputError, unknown
from agelab.base.types import MAX_NAME_LENGTH, Frozen
from agelab.scenario import toml_files
from agelab.scenario.guest_places import BROUGHT
from agelab.scenario.workload import TEST

PATIENCE = 200
"""Times a test's own time, and as many minutes, after which the guest is given up: its clock may run fast."""
MOST_PATIENCE = 2_000_000
"""The longest deadline of a step."""
NOT_FIT = re.compile(r"[^a-z0-9_-]+")


@dataclass(frozen=True)
class Test:
    """A test of a suite."""

    file: str
    """The program's name in its suite."""
    case: str
    """The name of its case."""


@dataclass(frozen=True)
class Suite:
    """The tests of a directory, or a single one."""

    path: Path
    tests: tuple[Test, ...]

    @property
    def name(self) -> str:
        """A name that a scenario can have."""
        return _name(self.path.stem)

    def only(self, names: Sequence[str]) -> "Suite":
        """Return the suite with these of its tests. Raises InputError for names that it has not."""
        files = [test.file for test in self.tests]
        if strange := [name for name in names if name not in files]:
            raise unknown("test", strange[0], files, f"in {self.path}")
        return Suite(self.path, tuple(test for test in self.tests if not names or test.file in names))

    def scenario(
        self, filesystems: Sequence[str], timeout: float, disk_mib: int, memory_mib: int, packages: Sequence[str] = ()
    ) -> str:
        """Return the text of the scenario in which each test is a case."""

        lines = [
            f"name = {dumps(self.name)}",
            f"summary = {dumps(f'the tests of {self.path.name}, each in its own guest')}",
            f"bring = [{dumps(str(self.path))}]",
            f"packages = {dumps([*packages])}",
            "corpus = 4",
            f"memory = {memory_mib}",
            f"disk = {disk_mib}",
            f"variants = {dumps([*filesystems])}",
        ]
        for test in self.tests:
            lines += [
                "",
                "[[cases]]",
                f"name = {dumps(test.case)}",
                f"program = {dumps(TEST)}",
                f"arguments = {dumps(f'--timeout {timeout:g} {self._command(test)}')}",
                f"deadline = {min(PATIENCE * (timeout + 60), MOST_PATIENCE):.0f}",
            ]
        return "\n".join(lines) + "\n"

    def _command(self, test: Test) -> str:
        """Return the shell's words for a test, in the guest."""
        if self.path.is_file():
            return shlex.quote(test.file)
        return f'"${BROUGHT.upper()}"/{shlex.quote(self.path.name)}/{shlex.quote(test.file)}'


def read(path: Path) -> Suite:
    """Return the suite of a directory or of a program. Raises InputError where there is none."""
    path = path.absolute()
    if not path.exists():
        raise InputError(f"suite {path}: it is not there")
    there = sorted(path.iterdir()) if path.is_dir() else [path]
    files = [file.name for file in there if file.is_file() and os.access(file, os.X_OK)]
    if not files:
        what = "no file directly in it is executable" if path.is_dir() else "it is not executable"
        raise InputError(f"suite {path}: {what}", hint="chmod +x what is a test")
    tests = tuple(Test(file, _name(file)) for file in files)
    for case, count in Counter(test.case for test in tests).items():
        if count > 1:
            same = [test.file for test in tests if test.case == case]
            raise InputError(f"suite {path}: {' and '.join(same)} would both be called {case}: rename one")
    return Suite(path, tests)


def _name(file: str) -> str:
    return NOT_FIT.sub("-", file.lower()).strip("-_")[: MAX_NAME_LENGTH // 2] or TEST


class Expected(Frozen):
    """A file of known failures."""

    expect: dict[str, str] = Field(
        default={}, description="tests that fail, as tables name them, * for anything, and why"
    )

    def why(self, test: str) -> str | None:
        """Return why a test is known to fail; None where it is not."""
        return next((why for pattern, why in self.expect.items() if fnmatchcase(test, pattern)), None)


def read_expected(path: Path) -> Expected:
    """Read a file of known failures. Raises InputError that says what is wrong with it."""
    return toml_files.parse(toml_files.read_text(path), path, Expected)
