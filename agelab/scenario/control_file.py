"""A control file and the scripts beside it, as a scenario: the way in which a study of 2005 drove its tests."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from agelab.errors import InputError
from agelab.model.scenario import Scenario, Variant
from agelab.model.step import Experiment, taken
from agelab.scenario import selection
from agelab.scenario.selection import Selection

TEMPLATE = "tum-2005"
"""The scenario whose machine, drive and memory it has."""
NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]*", re.IGNORECASE)
DEVICE_PATTERN = re.compile(r"/dev/[A-Za-z0-9]+([/_-][A-Za-z0-9]+)*")
GUEST_SCRIPTS = "/run/agelab/control"
"""Where the guest finds them."""


@dataclass(frozen=True)
class ControlLine:
    """One line: a test on a filesystem, so many times."""

    number: int
    filesystem: str
    test: str
    repetitions: int

    @property
    def variant(self) -> str:
        """What its cells are called in results."""
        return f"{self.filesystem}-{self.test}".lower()


@dataclass(frozen=True)
class ControlFile:
    """What is to be done, and with what."""

    path: Path
    lines: tuple[ControlLine, ...]
    scripts: Mapping[str, bytes]
    """File name to content."""
    text: str = ""
    """Of the file."""

    @property
    def data(self) -> Path | None:
        """The user's own data beside the file, if there are any."""
        data = self.path.parent / "data"
        return data if data.is_dir() else None

    @property
    def selection(self) -> Selection:
        """What its cells have in common."""
        own = {"name": "control", "summary": f"the tests of {self.path.name}", "traces": (), "unstated": ()}
        template = _template()
        return replace(template, scenario=template.scenario.model_copy(update=own), variants=())

    def scenario(self, line: ControlLine) -> Scenario:
        """The scenario of that line's cells."""
        prepare = f"test-{line.test}-prepare.sh"
        experiment = Experiment(
            name=line.test.lower(),
            prepare=f"{GUEST_SCRIPTS}/{prepare}" if prepare in self.scripts else "",
            perform=f"{GUEST_SCRIPTS}/test-{line.test}-perform.sh",
            traced=False,
            origin="published",
        )
        variant = Variant(
            name=line.variant,
            filesystem=_filesystem_of(line.filesystem) or "",
            script=f"{GUEST_SCRIPTS}/filesystem-{line.filesystem}.sh",
        )
        return self.selection.scenario.model_copy(
            update={"variants": (variant,), "experiments": (experiment,)}
        )


def read(path: Path) -> ControlFile:
    """The control file and its scripts. Raises InputError with every error and its line."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise InputError(f"{path}: cannot be read: {why}") from error

    def script(name: str) -> bytes | None:
        file = path.parent / name
        return file.read_bytes() if file.is_file() else None

    return parse(path, text, script)


def parse(path: Path, text: str, script: Callable[[str], bytes | None]) -> ControlFile:
    """The control file of that text; ``script`` gives the content of one beside it. Raises as ``read`` does."""
    lines: list[ControlLine] = []
    scripts: dict[str, bytes] = {}
    wrong: list[str] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        words = raw.split()
        if not words or words[0].startswith("#"):
            continue
        if problem := _problem(words):
            wrong.append(f"{path}:{number}: {problem}")
            continue
        line = ControlLine(number, words[0], words[1], int(words[2]))
        same = next((one for one in lines if one.variant == line.variant), None)
        if same:
            wrong.append(f"{path}:{number}: line {same.number} is {line.variant} in the results already")
        lines.append(line)
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
        wrong.append(f"{path}: there is no test in it: <Filesystem> <Testname> <Repetitions>")
    if wrong:
        raise InputError("\n".join(dict.fromkeys(wrong)))
    return ControlFile(path, tuple(lines), scripts, text)


def require_device(path: str) -> None:
    """Raise InputError for what is no path by which scripts could find a disk."""
    if not DEVICE_PATTERN.fullmatch(path):
        raise InputError(f"--device {path}: name a device file, like /dev/hda3")


def _problem(words: list[str]) -> str | None:
    """What is wrong with the words of a line."""
    if len(words) != 3:
        return f"<Filesystem> <Testname> <Repetitions> are three words, not {len(words)}"
    if not all(NAME_PATTERN.fullmatch(word) for word in words[:2]):
        return "names are made of letters, digits, - and _"
    if taken(words[1].lower()):
        return f"a test cannot be called {words[1]}: what goes before it is called so in the results"
    if not (words[2].isascii() and words[2].isdigit() and 0 < int(words[2]) < 10_000):
        return f"{words[2]!r} is no number of repetitions"
    if _filesystem_of(words[0]) is None:
        names = ", ".join(_filesystems())
        return f"{words[0]} does not begin with a filesystem's name ({names}): which module would it need?"
    return None


def _filesystem_of(name: str) -> str | None:
    """The filesystem file that a script's name begins with: the longest."""
    fitting = [
        known
        for known in _filesystems()
        if name.lower() == known or name.lower().startswith((f"{known}-", f"{known}_"))
    ]
    return max(fitting, key=len, default=None)


@cache
def _filesystems() -> tuple[str, ...]:
    """The names of the filesystem files, sorted."""
    return tuple(file.name for file in selection.filesystems())


@cache
def _template() -> Selection:
    return selection.select(TEMPLATE)
