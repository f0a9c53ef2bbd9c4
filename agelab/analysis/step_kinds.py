"""The kinds of work that steps do: a host is as noisy in all steps of one kind.

The kinds are few, and the same on every host and filesystem: a step of every cell (mkfs, mount ...) is its own kind, a
scenario's or a user's own is known by the programs that its command names, not by what it is called.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agelab.scenario.step import CHECKING, IMPLICIT, REBUILDING, RECOVERING, StepId

OTHER = "other"
RECOVERY = "recovery"
PROGRAMS = {
    "write": ("cp", "dd", "git", "ln", "mkdir", "mv", "replay", "split", "spool", "tar", "tee", "touch", "truncate"),
    "delete": ("rm", "rmdir", "unlink", "-delete"),
    "read": ("cat", "df", "du", "find", "grep", "ls", "md5sum", "random-read", "sha256sum", "stat", "wc"),
}  # fmt: skip
"""Kind to the programs that do such work. A command that names several is of the first kind listed here."""
_WORD = re.compile(r"[\w.-]+", re.ASCII)


def kind_of_command(command: str) -> str:
    """Return the kind of a step's command, a text for sh(1)."""
    words = set(_WORD.findall(command))
    return next((kind for kind, names in PROGRAMS.items() if words.intersection(names)), OTHER)


@dataclass(frozen=True)
class StepKinds:
    """The kinds of a cell's steps."""

    commands: Mapping[str, str]
    """The command of each step, by ``<phase>/<step>`` and ``<step>``."""

    def kind_of(self, step: str) -> str:
        """Return the kind of a step named as in samples: ``copy``, ``control/mount``, ``strace/read1/open``."""
        found = StepId.parse(step)
        name = found.name
        if name in IMPLICIT:
            return name
        if name in (*RECOVERING, CHECKING, REBUILDING):
            return RECOVERY
        known = next((self.commands[one] for one in (step, name, found.group) if one in self.commands), None)
        return OTHER if known is None else kind_of_command(known)


def kinds_of_cell(inputs: Mapping[str, Any]) -> StepKinds:
    """Return the kinds of the steps that a cell's inputs plan."""
    found: dict[str, str] = {}
    for phase, name, command in _planned(inputs):
        found.setdefault(f"{phase}/{name}", command)
        found.setdefault(name, command)
    return StepKinds(found)


def _planned(inputs: Mapping[str, Any], phase: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield phase, step and command of each step in the guests' plans."""
    for key, value in inputs.items():
        if not isinstance(value, Mapping):
            continue
        if key != "plan":
            yield from _planned(value, str(key))
        elif isinstance(steps := value.get("steps"), list):
            for step in steps:
                if isinstance(step, Mapping) and {"name", "run"} <= step.keys():
                    yield phase, str(step["name"]), str(step["run"])
