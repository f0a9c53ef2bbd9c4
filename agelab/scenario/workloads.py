"""Programs of a scenario's steps: their files, and their job files beside the scenario's."""

import os
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agelab.base import fileio, plain_path
from agelab.base.errors import InputError, unknown
from agelab.scenario import toml_files
from agelab.scenario.metrics import Metric
from agelab.scenario.scenario import Scenario
from agelab.scenario.step import Action, Cycle, Step
from agelab.scenario.workload import GuestProgram

GUEST = "/run/agelab"
"""The directory of agelab's files in a guest."""
JOBS = "jobs"
"""The directory of job files in it."""


@dataclass(frozen=True)
class Workload:
    """What a scenario's guests need beside the files of agelab itself."""

    programs: Mapping[str, GuestProgram] = field(default_factory=dict)
    """The programs of its steps, by name."""
    jobs: Mapping[str, bytes] = field(default_factory=dict)
    """Their job files, by name."""
    packages: tuple[str, ...] = ()
    """Debian packages, sorted."""
    bring: tuple[Path, ...] = ()
    """The user's own files, as absolute paths."""
    sources: tuple[Path, ...] = ()
    """The job files where they lie."""
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    """Metrics that the registry does not have."""


NOTHING = Workload()


def program(name: str) -> GuestProgram:
    """Read a program's file by name."""
    return toml_files.read_named("programs", name, GuestProgram, "program")


def programs() -> list[GuestProgram]:
    """Read every program's file."""
    return toml_files.read_all("programs", GuestProgram)


def workload_of(scenario: Scenario, path: Path, carried: Mapping[str, bytes] | None = None) -> Workload:
    """Return what a scenario read from ``path`` needs; ``carried`` are job files in place of those beside it.

    Raises InputError that lists everything that is wrong, with its place.
    """
    wrong: list[str] = []
    programs: dict[str, GuestProgram] = {}
    jobs: dict[str, bytes] = {}
    origin: dict[str, Path] = {}
    for place, action in _actions(scenario):
        try:
            if (program := _program_of(action)) is None:
                continue
            programs[program.name] = program
            _check_arguments(program, action, scenario)
            if program.job:
                job = path.parent / action.job
                if origin.setdefault(job.name, job) != job:
                    raise InputError(f"job: {job} and {origin[job.name]} have one name: rename one of them")
                jobs[job.name] = _job(job, program, carried)
        except InputError as error:
            wrong += [f"{path}: {place}.{line}" for line in str(error).splitlines()]
    wrong += [
        f"{path}: metrics.{name}: program {program.name} has a metric of that name"
        for program in programs.values()
        for name in scenario.metrics
        if name in program.metrics
    ]
    bring = [path.parent / file for file in scenario.bring]
    if carried is None:
        wrong += [f"{path}: bring{line}" for line in _bring_problems(scenario.bring, path.parent)]
    elif bring:
        wrong.append(f"{path}: bring: this scenario came from elsewhere, and names files of this host")
    if wrong:
        raise InputError("\n".join(wrong))
    owners: tuple[Scenario | GuestProgram, ...] = (scenario, *programs.values())
    metrics = {name: own.metric for owner in owners for name, own in owner.metrics.items()}
    packages = {*scenario.packages, *(name for program in programs.values() for name in program.packages)}
    absolute = tuple(file.absolute() for file in bring)
    sources = () if carried is not None else tuple(origin.values())
    return Workload(programs, jobs, tuple(sorted(packages)), absolute, sources, metrics)


def guest_name(path: Path) -> str:
    """Return the name in the guest of a file that is brought: a package's is without .deb."""
    return path.stem if path.suffix == ".deb" else path.name


def _bring_problems(given: Sequence[str], beside: Path) -> Iterator[str]:
    """Yield what is wrong with the files that a scenario in that directory brings, each with its number."""
    first: dict[str, str] = {}
    for number, file in enumerate(given):
        name = guest_name(Path(file))
        if why := _bring_problem(file, name, beside):
            yield f"[{number}]: {file!r}: {why}"
        elif name in first:
            yield f"[{number}]: {file!r}: {first[name]!r} is called {name} in the guest, too: rename one of them"
        else:
            first[name] = file


def _bring_problem(given: str, name: str, beside: Path) -> str:
    """Return what is wrong with a file that is brought, or with its name in the guest; empty where nothing is."""
    path = beside / given
    if given.startswith("~"):
        return "~ stands for no home here: write the whole path"
    if name in ("", ".", ".."):
        return "it has no name that the guest could know it by: name the directory itself, as in ../suite"
    if bad := plain_path.misfit(Path(name)):
        return f"its name has {bad!r}: rename it; fit are {plain_path.ALLOWED}"
    if unicodedata.normalize("NFKC", name) != name:
        return "its name has characters that look like others: rename it"
    if not os.path.exists(path):  # noqa: PTH110 - false also for what can be no path
        return f"{path} is not there"
    target = path.resolve()
    if path.is_symlink() and not any(map(target.is_relative_to, (beside.resolve(), path.parent.resolve()))):
        return f"it is a link out of its directory: name what it leads to, {target}"
    return ""


def bind(scenario: Scenario, workload: Workload) -> Scenario:
    """Return the scenario with the command of each program in its steps."""
    if not workload.programs:
        return scenario

    def bound(action: Action) -> Action:
        if action.program is None:
            return action
        return action.model_copy(update={"run": command(workload.programs[action.program], action)})

    def step(entry: Step) -> Step:
        if isinstance(entry, Cycle):
            return entry.model_copy(update={"cycle": tuple(map(bound, entry.cycle))})
        return bound(entry)

    changes = {"steps": tuple(map(step, scenario.steps)), "tests": tuple(map(bound, scenario.tests))}
    return scenario.model_copy(update=changes)


def command(program: GuestProgram, action: Action) -> str:
    """Return the shell's command for a program in a step."""
    job = f"JOB={GUEST}/{JOBS}/{Path(action.job).name}\n" if program.job else ""
    return f"{job}{program.run} {action.arguments}".rstrip()


def _actions(scenario: Scenario) -> Sequence[tuple[str, Action]]:
    """Return every step and test with its place in the file."""
    actions: list[tuple[str, Action]] = []
    for number, step in enumerate(scenario.steps):
        if isinstance(step, Cycle):
            actions += [(f"steps[{number}].cycle[{at}]", action) for at, action in enumerate(step.cycle)]
        else:
            actions.append((f"steps[{number}]", step))
    return actions + [(f"tests[{number}]", test) for number, test in enumerate(scenario.tests)]


def _program_of(action: Action) -> GuestProgram | None:
    """Return a step's program, if it has one. Raises InputError."""
    if action.program is None:
        return None
    if action.run:
        raise InputError("run: there is a program already: leave one of them out")
    try:
        return program(action.program)
    except InputError as error:
        raise InputError(f"program: {error}") from error


def _check_arguments(program: GuestProgram, action: Action, scenario: Scenario) -> None:
    """Raise InputError where a program lacks its job file, has one too many, or is not brought."""
    if program.job and not action.job:
        raise InputError(f"job: is missing: program {program.name} takes a {program.job}")
    if action.job and not program.job:
        raise InputError(f"job: program {program.name} takes none: give it arguments")
    if "\n" in action.arguments:
        raise InputError("arguments: they are one line")
    if program.brought and program.brought not in (Path(file).name for file in scenario.bring):
        raise InputError(
            f'program: {program.name} is in no Debian package: bring = ["./{program.brought}"], a static program'
        )


def _job(path: Path, program: GuestProgram, carried: Mapping[str, bytes] | None) -> bytes:
    """Return the text of a job file. Raises InputError for one that cannot be read."""
    if not _is_plain(path.name):
        raise InputError(f"job: {path.name!r}: its name may have letters, digits and . _ + - alone")
    if carried is not None:
        if path.name not in carried:
            raise InputError(f"job: {path.name} is not among what was packed")
        return carried[path.name]
    try:
        data = fileio.read_bytes(path, fileio.FORM)
        data.decode()
    except FileNotFoundError:
        near = unknown(f"{program.job} in {path.parent}", path.name, _files(path.parent))
        raise InputError(f"job: {near}") from None
    except ValueError:
        raise InputError(f"job: {path}: it is no text, or no path") from None
    except OSError as error:
        raise InputError(f"job: {path}: cannot be read: {error.strerror}") from error
    return data


def _is_plain(name: str) -> bool:
    return (
        name.isascii()
        and name[:1] not in ("", ".")
        and all(character.isalnum() or character in "._+-" for character in name)
    )


def _files(directory: Path) -> list[str]:
    """Return the names of the files of a directory, as far as it can be read."""
    try:
        return [entry.name for entry in directory.iterdir() if entry.is_file()]
    except (OSError, ValueError):
        return []
