"""Replaying a capsule: what stands behind its words, and how each of its cells came out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from agelab.capsule.read import Capsule
from agelab.capsule.unpack import extract
from agelab.drive import module as modules
from agelab.errors import InputError
from agelab.image import root as roots
from agelab.image import tools
from agelab.kernel import packaged
from agelab.model.history import Logged, Repository
from agelab.results import compare
from agelab.results.compare import Difference, Pair, Ran
from agelab.scenario import control, selection
from agelab.scenario.control import ControlFile
from agelab.scenario.selection import Selection

IN_IMAGE = "or have it packed with --with-image"
Came = Literal["identical", "differs", "could not be rebuilt"]


@dataclass(frozen=True)
class Verdict:
    """How one cell of a capsule came out."""

    number: int
    ran: Ran
    """As the capsule has it."""
    came: Came
    why: str
    """In a few words."""
    inputs: Sequence[Difference] = field(default_factory=tuple)
    samples: Sequence[Difference] = field(default_factory=tuple)


def answers(capsule: Capsule) -> dict[str, Any]:
    """What the capsule's words stood for, as a store takes it: the packages, each in its own version."""
    from agelab.store import key_of

    made, kernel = capsule.made, capsule.kernel
    definition = roots.definition()
    found: list[tuple[Mapping[str, Any], Any]] = [
        (roots.question(definition, selection.filesystems()), made.guest)
    ]
    if made.kernel:
        found.append((packaged.question(kernel.spec.partition(":")[2]), made.kernel))
    if made.drive:
        found.append((modules.question(made.drive.suite, kernel.release, kernel.version), made.drive))
    if made.tools:
        found.append((tools.question(definition.suite), made.tools))
    return {key_of(question): answer.model_dump(mode="json") for question, answer in found}


def chosen(capsule: Capsule, cells: Sequence[int], directory: Path) -> Selection | ControlFile:
    """The capsule's scenario or control file, as this agelab reads it; its logs are written into ``directory``.

    Raises InputError for what this agelab does not know, and for what is not in the capsule.
    """
    if capsule.control:
        scripts = capsule.control.scripts
        return control.parse(directory / capsule.control.name, capsule.control.text, scripts.get)
    name = capsule.asked.plan.scenario
    found = selection.select(f"{name}.toml", text=_of_log(capsule))
    wanted = {capsule.cells[number].cell.variant for number in cells}
    variants = tuple(variant for variant in found.variants if variant.name in wanted)
    if missing := wanted - {variant.name for variant in variants}:
        raise InputError(f"scenario {name} has no variant {min(missing)}")
    histories = [_history(capsule, one, n, directory) for n, one in enumerate(found.scenario.histories)]
    scenario = found.scenario.model_copy(update={"histories": tuple(histories)})
    return replace(found, scenario=scenario, variants=variants)
