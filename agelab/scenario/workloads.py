"""Programs of a scenario's steps: their files, and their job files beside the scenario's."""

import os
import re
import shlex
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path

from agelab.base import fileio, plain_path
from agelab.base.errors import InputError, unknown
from agelab.scenario import job_files, matrix, toml_files
from agelab.scenario.guest_places import BROUGHT, GUEST, JOBS, VARIABLES
from agelab.scenario.metrics import Metric
from agelab.scenario.scenario import Scenario
from agelab.scenario.step import Action, Cycle, Step
from agelab.scenario.workload import GuestProgram


@dataclass(frozen=True)
class Workload:
    """What a scenario's guests need beside the files of agelab itself."""

    programs: Mapping[str, GuestProgram] = field(default_factory=dict)
    """The programs of its steps, by name."""
    jobs: Mapping[str, bytes] = field(default_factory=dict)
    """Their job files and what these include, by their paths from the job file's directory on."""
    packages: tuple[str, ...] = ()
    """Debian packages, sorted."""
    bring: tuple[Path, ...] = ()
    """The user's own files, as absolute paths."""
    carried: Mapping[str, bytes] | None = None
    """These files by their paths in the guest, where they came in a capsule."""
    sources: tuple[Path, ...] = ()
    """The job files where they lie."""
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    """Metrics that the registry does not have."""
    keeps_output: bool = False
    """True if what some step prints is kept."""


NOTHING = Workload()
CARRIED = "bring/"
"""What the names of files that are brought begin with, among the job files of a capsule."""
JOB_WORD = ' "$JOB"'
"""The word of a program's command that is its job file."""


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

    def load(directory: Path, name: str) -> bytes:
        job = directory / name
        if origin.setdefault(name, job) != job:
            raise InputError(f"{job} and {origin[name]} have one name: rename one of them")
        return _job(job, name, carried)

    for place, action in _actions(scenario):
        try:
            if (program := _program_of(action)) is None:
                continue
            programs[program.name] = program
            _check_arguments(program, action, scenario)
            if action.job:
                job = path.parent / action.job
                try:
                    jobs |= job_files.read(job.name, program, partial(load, job.parent))
                except InputError as error:
                    raise InputError(f"job: {error}") from error
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
    elif bring and not any(name.startswith(CARRIED) for name in carried):
        wrong.append(f"{path}: bring: this scenario came from elsewhere, and names files of this host")
    if wrong:
        raise InputError("\n".join(wrong))
    owners: tuple[Scenario | GuestProgram, ...] = (scenario, *programs.values())
    metrics = {name: own.metric for owner in owners for name, own in owner.metrics.items()}
    packages = {*scenario.packages, *(name for program in programs.values() for name in program.packages)}
    absolute = tuple(file.absolute() for file in bring)
    sources = () if carried is not None else tuple(origin.values())
    keeps = bool(programs or scenario.metrics) or any(action.keep for _, action in _actions(scenario))
    came = None
    if carried is not None:
        came = {name.removeprefix(CARRIED): data for name, data in carried.items() if name.startswith(CARRIED)}
    return Workload(programs, jobs, tuple(sorted(packages)), absolute, came, sources, metrics, keeps)


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


def bind(scenario: Scenario, workload: Workload, path: Path) -> Scenario:
    """Return the scenario of the file ``path`` with each step once for each combination of the matrix, and its command.

    Raises InputError that lists every place in them that is not on the disk under test, and every wrong combination.
    """
    wrong: list[str] = []
    used: set[str] = set()

    def combinations(action: Action, place: str) -> tuple[Action, ...]:
        program = workload.programs[action.program] if action.program else None
        texts = [action.run, action.arguments]
        if program and action.job:
            files = job_files.read(Path(action.job).name, program, workload.jobs.__getitem__)
            texts += [data.decode(errors="replace") for data in files.values()]
        axes = [axis for axis in scenario.matrix if any(job_files.uses(axis.upper(), text) for text in texts)]
        used.update(axes)
        try:
            actions = matrix.combined(action, scenario.matrix, axes)
        except ValueError as error:
            wrong.append(f"{path}: {error}")
            return (action,)
        if program:
            misplaced = chain.from_iterable(_misplaced(action, program, scenario, workload) for action in actions)
            wrong.extend(f"{path}: {place}.{problem}" for problem in islice(misplaced, toml_files.MAX_ERRORS))
        return tuple(_with_command(action, program) for action in actions)

    def bound(entry: Step, place: str) -> tuple[Step, ...]:
        if isinstance(entry, Action):
            return combinations(entry, place)
        cycle = (combinations(action, f"{place}.cycle[{at}]") for at, action in enumerate(entry.cycle))
        return (entry.model_copy(update={"cycle": tuple(chain.from_iterable(cycle))}),)

    steps = (bound(entry, f"steps[{number}]") for number, entry in enumerate(scenario.steps))
    changes = {"steps": tuple(chain.from_iterable(steps))}
    for kind in ("cases", "tests"):
        actions = (combinations(action, f"{kind}[{number}]") for number, action in enumerate(getattr(scenario, kind)))
        changes[kind] = tuple(chain.from_iterable(actions))
    complete = scenario.model_copy(update=changes)
    wrong += [
        f"{path}: matrix.{axis}: no step names ${axis.upper()}, in its command, its arguments or its job file"
        for axis in scenario.matrix
        if axis not in used
    ]
    if scenario.matrix and not wrong:
        wrong += [f"{path}: {problem}" for problem in complete.problems()]
    if wrong:
        raise InputError("\n".join([*dict.fromkeys(wrong)][: toml_files.MAX_ERRORS]))
    return complete


def _misplaced(action: Action, program: GuestProgram, scenario: Scenario, workload: Workload) -> Iterator[str]:
    """Yield the places of a step's program that are not on the disk under test."""
    known = {**VARIABLES, **dict.fromkeys((*scenario.sizes, *scenario.counts), "1"), **action.environment}
    if scenario.bring:
        known["BROUGHT"] = f"{GUEST}/{BROUGHT}"
    if action.job:
        for problem in job_files.misplaced(Path(action.job).name, program, workload.jobs, known):
            yield f"job: {problem}"
    yield from job_files.misplaced_arguments(action.arguments, program, known)


def _with_command(action: Action, program: GuestProgram | None) -> Action:
    if not program and not action.environment:
        return action
    run = command(program, action) if program else action.run
    given = " ".join(f"{name}={shlex.quote(value)}" for name, value in action.environment.items())
    return action.model_copy(update={"run": f"export {given}\n{run}" if given else run})


def command(program: GuestProgram, action: Action) -> str:
    """Return the shell's command for a program in a step; without a job file there is no word ``"$JOB"`` in it."""
    if not action.job:
        return f"{program.run.replace(JOB_WORD, '')} {action.arguments}".rstrip()
    return f"JOB={GUEST}/{JOBS}/{Path(action.job).name}\n{program.run} {action.arguments}".rstrip()


def _actions(scenario: Scenario) -> Sequence[tuple[str, Action]]:
    """Return every step and test with its place in the file."""
    actions: list[tuple[str, Action]] = []
    for number, step in enumerate(scenario.steps):
        if isinstance(step, Cycle):
            actions += [(f"steps[{number}].cycle[{at}]", action) for at, action in enumerate(step.cycle)]
        else:
            actions.append((f"steps[{number}]", step))
    for kind in ("cases", "tests"):
        actions += [(f"{kind}[{number}]", action) for number, action in enumerate(getattr(scenario, kind))]
    return actions


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
    alone = program.without_job and program.without_job in action.arguments
    if program.job and not action.job and not alone:
        other = f", or arguments with {program.without_job}" if program.without_job else ""
        raise InputError(f"job: is missing: program {program.name} takes a {program.job}{other}")
    if action.job and not program.job:
        raise InputError(f"job: program {program.name} takes none: give it arguments")
    if "\n" in action.arguments:
        raise InputError("arguments: they are one line")
    if program.unread and (word := re.search(program.unread, action.arguments)):
        raise InputError(
            f"arguments: {word[0].strip()}: leave it out: what {program.name} prints without it is what is read"
        )
    if program.brought and program.brought not in (Path(file).name for file in scenario.bring):
        raise InputError(
            f'program: {program.name} is in no Debian package: bring = ["./{program.brought}"], a static program'
        )


def _job(path: Path, name: str, carried: Mapping[str, bytes] | None) -> bytes:
    """Return the text of a job file, or of one that it includes. Raises InputError for one that cannot be read."""
    if not all(map(_is_plain, name.split("/"))):
        raise InputError(f"{name!r}: its name may have letters, digits and . _ + - alone")
    if carried is not None:
        if name not in carried:
            raise InputError(f"{name} is not among what was packed")
        return carried[name]
    try:
        data = fileio.read_bytes(path, fileio.FORM)
        data.decode()
    except FileNotFoundError:
        raise unknown(f"file in {path.parent}", path.name, _files(path.parent)) from None
    except ValueError:
        raise InputError(f"{path}: it is no text, or no path") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
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
