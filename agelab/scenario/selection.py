"""Find the scenario and variants that the user asked for."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

from pydantic import ValidationError

from agelab.base.errors import InputError, unknown
from agelab.scenario import toml_files
from agelab.scenario.aging_profile import Profile, is_path
from agelab.scenario.drive import Drive
from agelab.scenario.filesystem import Filesystem
from agelab.scenario.history import History, Logged, Profiled, Traced
from agelab.scenario.layout import Layout
from agelab.scenario.machine import Machine
from agelab.scenario.option_matrix import parse_matrix
from agelab.scenario.scenario import Scenario, Variant
from agelab.scenario.unstated import reading_names
from agelab.scenario.workloads import NOTHING, Workload, bind, workload_of


@dataclass(frozen=True)
class Selection:
    """A scenario and the variants to run."""

    scenario: Scenario
    variants: tuple[Variant, ...]
    text: str = ""
    """Text of the scenario file, with the variants that were asked for and are not in it."""
    workload: Workload = NOTHING
    """What its guests need beside the files of agelab itself."""
    profiles: Mapping[str, bytes] = field(default_factory=dict)
    """Aging profiles that lie beside the scenario, by ``profile_key``."""


def scenario_names() -> list[str]:
    """Return the names of all scenarios, sorted."""
    return sorted(path.stem for path in toml_files.SCENARIOS.glob("*.toml"))


def select(
    name: str,
    filesystem: str | None = None,
    log: Path | None = None,
    text: str | None = None,
    jobs: Mapping[str, bytes] | None = None,
    options: str | None = None,
    instead: str | None = None,
) -> Selection:
    """Select a scenario by name: ``aging`` with every variant, ``aging-reiserfs`` with one.

    ``filesystem`` keeps the variants of one filesystem, or of several separated by commas; one of which the scenario
    has no variant gets one, of its name, and so does a filesystem in the variant's place: ``aging-nilfs2``. In a
    scenario with histories each variant is repeated for each of them; its plain name selects all. ``log`` is an
    operation log that replaces the scenario's histories.

    The longest scenario name that matches wins; the rest is the variant. A name that ends in ``.toml`` is the user's
    own scenario file, with all its variants. ``options`` are mkfs and mount options, every combination of which is a
    variant (agelab.scenario.option_matrix); a variant's plain name selects all its combinations. ``instead`` names
    other readings of what the scenario leaves open. ``text`` replaces the file's content, ``jobs`` the job files and
    aging profiles beside it.
    Raises InputError for an unknown name or an invalid scenario file.
    """
    path, rest = (Path(name), None) if text is not None or name.endswith(".toml") else _find_scenario(name)
    text = toml_files.read_text(path) if text is None else text
    scenario = _parse_scenario(text, path)
    asked = [word.strip() for word in filesystem.split(",")] if filesystem else []
    if added := _added_variants(scenario, [*asked, *([rest] if rest else [])]):
        text += added
        scenario = _parse_scenario(text, path)
    scenario = _beside(_read_otherwise(scenario, instead), path.parent)
    scenario, profiles, sources = _with_own_profiles(scenario, path, jobs)
    workload = workload_of(scenario, path, jobs)
    scenario = bind(scenario, workload, path)
    workload = replace(workload, sources=(*workload.sources, *sources))
    if log:
        if not scenario.histories:
            raise InputError(f"--log: scenario {scenario.name} has no histories that a log could replace")
        own = Logged(name="log", engine="log", log=str(log.absolute()))
        scenario = scenario.model_copy(update={"histories": (own,)})
    try:
        scenario = scenario.with_options(parse_matrix(options) if options else ()).with_histories().with_cases()
    except ValueError as error:
        raise InputError(f"{name}: {error}") from error
    variants = scenario.variants
    if rest is not None:
        variants = tuple(variant for variant in variants if variant.is_called(rest))
        if not variants:
            names = [variant.name for variant in scenario.variants]
            raise unknown("variant", rest, names, f"in {scenario.name}")
    if filesystem:
        there = sorted({variant.filesystem for variant in variants})
        if wrong := [word for word in asked if word not in there]:
            if rest and wrong[0] in _filesystem_names():
                raise InputError(
                    f"{name} is on {', '.join(there)} alone",
                    hint=f"for another filesystem: {name.removesuffix(f'-{rest}')} --filesystem {wrong[0]}",
                )
            raise unknown("filesystem", wrong[0], sorted({*there, *_filesystem_names()}), f"in {name}")
        variants = tuple(variant for variant in variants if variant.filesystem in asked)
    for matrix in parse_matrix(options) if options else ():
        if all(variant.filesystem != matrix.filesystem for variant in variants):
            chosen = ", ".join(sorted({variant.filesystem for variant in variants}))
            raise InputError(
                f"--options {matrix.filesystem}:...: none of its variants is run; what is run has {chosen}"
            )
    return Selection(scenario, variants, text, workload, profiles)


def _read_otherwise(scenario: Scenario, instead: str | None) -> Scenario:
    """Return the scenario with other readings of what it leaves open. Raises InputError for names that it has not."""
    option, names = f"--instead {instead}", reading_names(instead)
    if strange := [name for name in names if name not in scenario.readings]:
        if not scenario.readings:
            raise InputError(f"{option}: scenario {scenario.name} leaves nothing open that it reads in another way")
        raise InputError(f"{option}: {unknown('reading', strange[0], [*scenario.readings])}")
    try:
        return scenario.read_otherwise(names) if names else scenario
    except ValueError as error:
        raise InputError(f"{option}: {error}") from error


def _added_variants(scenario: Scenario, names: Sequence[str]) -> str:
    """Return the text of a variant for each of these filesystems of which the scenario has none."""
    there = {variant.filesystem for variant in scenario.variants} | {
        name for variant in scenario.with_histories().variants for name in (variant.name, variant.plain_name)
    }
    new = [name for name in dict.fromkeys(names) if name in _filesystem_names() and name not in there]
    return "".join(f'\n[[variants]]\nname = "{name}"\nfilesystem = "{name}"\n' for name in new)


def _filesystem_names() -> list[str]:
    return [file.stem for file in (toml_files.SCENARIOS / "filesystems").glob("*.toml")]


def _beside(scenario: Scenario, directory: Path) -> Scenario:
    """Return the scenario with its traces where they lie: beside its file, if their paths are relative."""
    histories = tuple(
        history.model_copy(update={"trace": str(directory / history.trace)}) if isinstance(history, Traced) else history
        for history in scenario.histories
    )
    return scenario.model_copy(update={"histories": histories})


def profile_key(history: str) -> str:
    """Return the name under which the profile of a history is kept with the job files of a run."""
    return f"profiles/{history}"


def _with_own_profiles(
    scenario: Scenario, path: Path, carried: Mapping[str, bytes] | None
) -> tuple[Scenario, dict[str, bytes], list[Path]]:
    """Return the scenario with the aging profiles that its histories name by their paths, their content and places.

    Raises InputError that lists every error in them.
    """
    contents: dict[str, bytes] = {}
    sources: list[Path] = []
    problems: list[str] = []

    def with_profile(number: int, history: History) -> History:
        if not isinstance(history, Profiled) or not isinstance(history.profile, str):
            return history
        if not is_path(history.profile):
            return history
        key, own = profile_key(history.name), path.parent / history.profile
        try:
            if carried is None:
                contents[key] = toml_files.read_text(own).encode()
                sources.append(own)
            elif key in carried:
                contents[key] = carried[key]
            else:
                raise InputError(f"{path}: histories[{number}].profile: {own.name} is not among what was packed")
            profile = toml_files.parse(contents[key].decode(), own, Profile)
        except InputError as error:
            problems.append(str(error))
            return history
        return history.model_copy(update={"profile": profile})

    histories = tuple(with_profile(number, history) for number, history in enumerate(scenario.histories))
    if problems:
        raise InputError("\n".join(problems))
    return scenario.model_copy(update={"histories": histories}), contents, sources


def _find_scenario(name: str) -> tuple[Path, str | None]:
    """Return the scenario file for a name, and the variant in the rest of the name or None."""
    known = scenario_names()
    matching = [known_name for known_name in known if name == known_name or name.startswith(known_name + "-")]
    if not matching:
        every = [
            *known,
            *(
                f"{known_name}-{v.name}"
                for known_name in known
                for v in _read_scenario(known_name).with_options().with_histories().variants
            ),
        ]
        [near] = get_close_matches(name, every, n=1, cutoff=0.5) or known[:1]
        # For a misspelt scenario name suggest scenarios, not variants.
        raise unknown("scenario", name, known if near in known else every)
    best = max(matching, key=len)
    return toml_files.SCENARIOS / f"{best}.toml", name[len(best) + 1 :] if name != best else None


def _read_scenario(name: str) -> Scenario:
    path = toml_files.SCENARIOS / f"{name}.toml"
    return _parse_scenario(toml_files.read_text(path), path)


def _parse_scenario(text: str, path: Path) -> Scenario:
    """Parse a scenario and check the names of filesystems and machines in it."""
    scenario = toml_files.parse(text, path, Scenario)
    known = _filesystem_names()
    wrong = [
        f"{path}: variants[{number}].filesystem: {unknown('filesystem', variant.filesystem, known)}"
        for number, variant in enumerate(scenario.variants)
        if variant.filesystem not in known
    ]
    if scenario.beside and scenario.beside.filesystem not in known:
        wrong.append(f"{path}: beside.filesystem: {unknown('filesystem', scenario.beside.filesystem, known)}")
    machines = [file.stem for file in (toml_files.SCENARIOS / "machines").glob("*.toml")]
    if scenario.machine not in machines:
        wrong.append(f"{path}: machine: {unknown('machine', scenario.machine, machines)}")
    wrong += [
        f"{path}: variants[{number}].machine: {unknown('machine', variant.machine, machines)}"
        for number, variant in enumerate(scenario.variants)
        if variant.machine is not None and variant.machine not in machines
    ]
    wrong += _wrong_readings(scenario, path)
    if misnamed := toml_files.name_problem(path, scenario.name):
        wrong.append(misnamed)
    if wrong:
        raise InputError("\n".join(wrong))
    return scenario


def _wrong_readings(scenario: Scenario, path: Path) -> Iterator[str]:
    """Yield what is wrong with the other readings of what a scenario leaves open."""
    for number, one in enumerate(scenario.unstated):
        place = f"{path}: unstated[{number}].instead: "
        try:
            if one.name:
                scenario.read_otherwise([one.name])
        except ValidationError as error:
            yield from (place + line.removeprefix(f"{path}: ") for line in toml_files.error_lines(path, error))
        except ValueError as error:
            yield f"{place}{error}"


def filesystem(name: str) -> Filesystem:
    """Read a filesystem file by name."""
    return toml_files.read_named("filesystems", name, Filesystem, "filesystem")


def filesystems() -> list[Filesystem]:
    """Read every filesystem file."""
    return toml_files.read_all("filesystems", Filesystem)


def machine(name: str) -> Machine:
    """Read a machine file by name."""
    return toml_files.read_named("machines", name, Machine, "machine")


def layout(name: str) -> Layout:
    """Read a layout file by name."""
    return toml_files.read_named("layouts", name, Layout, "layout")


def with_packages_of_layouts(packages: Sequence[str], names: Iterable[str]) -> tuple[str, ...]:
    """Return these packages with those of the layouts of these names, each once."""
    own = (package for name in dict.fromkeys(names) for package in layout(name).packages)
    return tuple(dict.fromkeys((*packages, *own)))


def drive(name: str) -> Drive:
    """Read a drive file by name."""
    return toml_files.read_named("drives", name, Drive, "drive")


def drives() -> list[Drive]:
    """Read every drive file."""
    return toml_files.read_all("drives", Drive)
