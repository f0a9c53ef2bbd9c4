"""What a user asked for, found among the files."""

from dataclasses import dataclass

from agelab.errors import InputError, unknown
from agelab.model.filesystem import Filesystem
from agelab.model.machine import Machine
from agelab.model.scenario import Scenario, Variant
from agelab.scenario import files


@dataclass(frozen=True)
class Selection:
    """A scenario and those of its variants that are to run."""

    scenario: Scenario
    variants: tuple[Variant, ...]


def scenario_names() -> list[str]:
    """The names of all scenarios."""
    return sorted(path.stem for path in files.SCENARIOS.glob("*.toml"))


def select(name: str, filesystem: str | None = None) -> Selection:
    """``aging`` is every variant of that scenario, ``aging-reiserfs`` one; ``filesystem`` narrows it down.

    The longest scenario name that matches wins, what follows it is the variant.
    Raises InputError for a name that nothing answers to, or a broken scenario file.
    """
    known = scenario_names()
    matching = [known_name for known_name in known if name == known_name or name.startswith(known_name + "-")]
    if not matching:
        every = [
            *known,
            *(f"{known_name}-{v.name}" for known_name in known for v in _scenario(known_name).variants),
        ]
        raise unknown("scenario", name, every)
    best = max(matching, key=len)
    scenario = _scenario(best)
    variants = scenario.variants
    if wanted := name[len(best) + 1 :]:
        variants = tuple(variant for variant in variants if variant.name == wanted)
        if not variants:
            raise unknown(f"variant of {best}", wanted, [variant.name for variant in scenario.variants])
    if filesystem:
        narrowed = tuple(variant for variant in variants if variant.filesystem == filesystem)
        if not narrowed:
            raise unknown(f"filesystem in {name}", filesystem, sorted({v.filesystem for v in variants}))
        variants = narrowed
    return Selection(scenario, variants)


def _scenario(name: str) -> Scenario:
    path = files.SCENARIOS / f"{name}.toml"
    scenario = files.read(path, Scenario)
    known = [file.stem for file in (files.SCENARIOS / "filesystems").glob("*.toml")]
    wrong = [
        f"{path}: variants[{number}].filesystem: {unknown('filesystem', variant.filesystem, known)}"
        for number, variant in enumerate(scenario.variants)
        if variant.filesystem not in known
    ]
    if scenario.name != name:
        wrong.append(f"{path}: name: is {scenario.name!r}, the file says {name!r}")
    if wrong:
        raise InputError("\n".join(wrong))
    return scenario


def filesystem(name: str) -> Filesystem:
    """The filesystem file of that name."""
    return files.named("filesystems", name, Filesystem, "filesystem")


def filesystems() -> list[Filesystem]:
    """Every filesystem file: what an image is to serve."""
    return files.every("filesystems", Filesystem)


def machine(name: str) -> Machine:
    """The machine file of that name."""
    return files.named("machines", name, Machine, "machine")
