"""Turn a control file and its scripts into a scenario, as a study of 2005 drove its tests."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from agelab.base import fileio
from agelab.base.errors import InputError
from agelab.base.sanitize import parse_digits
from agelab.base.types import MAX_NAME_LENGTH, ScaleName
from agelab.scenario import selection
from agelab.scenario.scenario import Scenario, Variant
from agelab.scenario.selection import Selection
from agelab.scenario.step import Experiment, is_reserved
from agelab.scenario.workloads import Workload

MAX_REPETITIONS = 9_999
TEMPLATE = "tum-2005"
"""Scenario that provides machine, drive and memory."""
NAME_PATTERN = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{MAX_NAME_LENGTH - 1}}}")
DEVICE_PATTERN = re.compile(r"/dev/[A-Za-z0-9]+([/_-][A-Za-z0-9]+)*")
DEADLINE_WORD, MAX_DEADLINE = "deadline", 2_000_000
PACKAGES_WORD = "packages"
PACKAGE_PATTERN = re.compile(r"[a-z0-9][a-z0-9+.-]{1,99}")
DEADLINES: dict[ScaleName, float] = {"quick": 600, "paper": 7200}
"""Guest seconds that a preparation and a test have each, where the control file does not say."""
GUEST_SCRIPTS = "/run/agelab/control"
"""Directory of the scripts in the guest."""


@dataclass(frozen=True)
class ControlLine:
    """One line: a test on a filesystem and its repetitions."""

    number: int
    filesystem: str
    test: str
    repetitions: int
    deadline: float | None = None
    """Guest seconds that its preparation and its test have each, or None for those of the scale."""

    @property
    def variant(self) -> str:
        """Name of the variant in results."""
        return f"{self.filesystem}-{self.test}".lower()


@dataclass(frozen=True)
class ControlFile:
    """A control file with its scripts."""

    path: Path
    lines: tuple[ControlLine, ...]
    scripts: Mapping[str, bytes]
    """Content by file name."""
    text: str = ""
    """Text of the control file."""
    packages: tuple[str, ...] = ()
    """Debian packages for the guest."""

    @property
    def data(self) -> Path | None:
        """Directory of the user's own data beside the file, or None."""
        data = self.path.parent / "data"
        return data if data.is_dir() else None

    @property
    def selection(self) -> Selection:
        """Scenario common to all lines, without variants."""
        own = {"name": "control", "summary": f"the tests of {self.path.name}", "traces": (), "unstated": ()}
        template = _template()
        workload = Workload(packages=self.packages)
        scenario = template.scenario.model_copy(update=own)
        return replace(template, scenario=scenario, variants=(), workload=workload)

    def scenario(self, line: ControlLine, scale: ScaleName) -> Scenario:
        """Return the scenario of a line's cells."""
        prepare = f"test-{line.test}-prepare.sh"
        experiment = Experiment(
            name=line.test.lower(),
            prepare=f"{GUEST_SCRIPTS}/{prepare}" if prepare in self.scripts else "",
            perform=f"{GUEST_SCRIPTS}/test-{line.test}-perform.sh",
            traced=False,
            deadline=line.deadline or DEADLINES[scale],
            origin="published",
        )
        variant = Variant(
            name=line.variant,
            filesystem=_filesystem_of(line.filesystem) or "",
            script=f"{GUEST_SCRIPTS}/filesystem-{line.filesystem}.sh",
        )
        return self.selection.scenario.model_copy(update={"variants": (variant,), "experiments": (experiment,)})


def read(path: Path) -> ControlFile:
    """Read a control file and its scripts. Raises InputError with every error and its line."""
    try:
        text = fileio.read_text(path, fileio.FORM)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise InputError(f"{path}: cannot be read: {why}") from error

    def script(name: str) -> bytes | None:
        file = path.parent / name
        try:
            return fileio.read_bytes(file, fileio.TEXT)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{file}: cannot be read: {error.strerror}") from error

    return parse(path, text, script)


def parse(path: Path, text: str, script: Callable[[str], bytes | None]) -> ControlFile:
    """Parse a control file; ``script`` returns the content of a script beside it, or None. Raises as ``read`` does."""
    lines: dict[str, ControlLine] = {}
    scripts: dict[str, bytes] = {}
    wrong: list[str] = []
    deadline: float | None = None
    packages: set[str] = set()
    for number, raw in enumerate(text.splitlines(), start=1):
        words = raw.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] == DEADLINE_WORD:
            if problem := _deadline_problem(words):
                wrong.append(f"{path}:{number}: {problem}")
            else:
                deadline = float(words[1])
            continue
        if words[0] == PACKAGES_WORD:
            unfit = [word for word in words[1:] if not PACKAGE_PATTERN.fullmatch(word)]
            if unfit or not words[1:]:
                wrong.append(f"{path}:{number}: {PACKAGES_WORD} <name> ...: names of Debian packages")
            packages.update(words[1:])
            continue
        if problem := _problem(words):
            wrong.append(f"{path}:{number}: {problem}")
            continue
        line = ControlLine(number, words[0], words[1], int(words[2]), deadline)
        if line.variant in lines:
            same = lines[line.variant]
            wrong.append(f"{path}:{number}: line {same.number} is {line.variant} in the results already")
            continue
        lines[line.variant] = line
        for name, needed in (
            (f"filesystem-{line.filesystem}.sh", True),
            (f"test-{line.test}-prepare.sh", False),
            (f"test-{line.test}-perform.sh", True),
        ):
            content = script(name)
            if content is not None:
                scripts[name] = content
            elif needed:
                wrong.append(f"{path}:{number}: there is no {path.parent / name}")
    if not lines and not wrong:
        wrong.append(f"{path}: it has no test: <Filesystem> <Testname> <Repetitions>")
    if wrong:
        raise InputError("\n".join(dict.fromkeys(wrong)))
    return ControlFile(path, tuple(lines.values()), scripts, text, tuple(sorted(packages)))


def require_device(path: str) -> None:
    """Raise InputError for a path that cannot be a device file."""
    if not DEVICE_PATTERN.fullmatch(path):
        raise InputError(f"--device {path}: name a device file, like /dev/hda3")


def _problem(words: list[str]) -> str | None:
    """Return what is wrong with the words of a line, or None."""
    if len(words) != 3:
        return f"<Filesystem> <Testname> <Repetitions> are three words; there are {len(words)}"
    if not all(NAME_PATTERN.fullmatch(word) for word in words[:2]):
        return f"names have letters a to z, digits, - and _, {MAX_NAME_LENGTH} at most"
    if is_reserved(words[1].lower()):
        return f"a test cannot be called {words[1]}: the name is reserved for a step before the test"
    if not parse_digits(words[2], MAX_REPETITIONS):
        return f"{words[2][:20]!r} is not a number of repetitions: 1 to {MAX_REPETITIONS}"
    if _filesystem_of(words[0]) is None:
        names = ", ".join(_filesystems())
        return f"{words[0]} does not begin with a filesystem's name ({names}): which module would it need?"
    return None


def _deadline_problem(words: list[str]) -> str | None:
    """Return what is wrong with the words of a deadline, or None."""
    if len(words) != 2 or not parse_digits(words[1], MAX_DEADLINE):
        return f"{DEADLINE_WORD} <seconds>: a whole number of the guest's seconds, {MAX_DEADLINE} at most"
    return None


def _filesystem_of(name: str) -> str | None:
    """Return the longest filesystem name that begins a script's name, or None."""
    fitting = [
        known
        for known in _filesystems()
        if name.lower() == known or name.lower().startswith((f"{known}-", f"{known}_"))
    ]
    return max(fitting, key=len, default=None)


@cache
def _filesystems() -> tuple[str, ...]:
    """Return the names of the filesystem files, sorted."""
    return tuple(file.name for file in selection.filesystems())


@cache
def _template() -> Selection:
    return selection.select(TEMPLATE)
