"""Replaying a capsule: what stands behind its words, and how each of its cells came out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from agelab.analysis.cells import CellPair, CellResult, ValueDifference, groups
from agelab.capsule.pack import PATH_OPTIONS
from agelab.capsule.read import Capsule
from agelab.capsule.unpack import extract
from agelab.drive import module as modules
from agelab.errors import InputError
from agelab.image import root as roots
from agelab.image import tools
from agelab.kernel import debian_kernel
from agelab.model.history import History, Logged, Repository
from agelab.results.run_directory import RunDirectory
from agelab.scenario import control_file, selection
from agelab.scenario.control_file import ControlFile
from agelab.scenario.selection import Selection
from agelab.store import key_of

IN_IMAGE = "or have it packed with --with-image"
OURS = ("erase", "filesystem", "jobs", "kernel", "seeds")
"""Words of a command that a replay says itself."""
MORE = {"disk": str, "curve": bool, "prove_all": bool, "measure": bool}
Came = Literal["identical", "differs", "could not be rebuilt"]


@dataclass(frozen=True)
class ReplayedCell:
    """How one cell of a capsule came out."""

    number: int
    ran: CellResult
    """As the capsule has it."""
    came: Came
    why: str
    """In a few words."""
    inputs: Sequence[ValueDifference] = field(default_factory=tuple)
    samples: Sequence[ValueDifference] = field(default_factory=tuple)


def answers(capsule: Capsule) -> dict[str, Any]:
    """What the capsule's words stood for, as a store takes it: the packages, each in its own version."""
    made, kernel = capsule.run_manifest, capsule.kernel
    definition = roots.definition()
    found: list[tuple[Mapping[str, Any], Any]] = [
        (roots.question(definition, selection.filesystems()), made.guest)
    ]
    if made.kernel:
        found.append((debian_kernel.question(kernel.spec.partition(":")[2]), made.kernel))
    if made.drive:
        found.append((modules.question(made.drive.suite, kernel.release, kernel.version), made.drive))
    if made.tools:
        found.append((tools.question(definition.suite), made.tools))
    return {key_of(question): answer.model_dump(mode="json") for question, answer in found}


def words(capsule: Capsule, known: Mapping[str, Any], cells: Sequence[int]) -> dict[str, Any]:
    """What the capsule's run was asked, as options of this agelab: ``known`` are these with their defaults.

    Nothing in it names a place on this host. Raises InputError for an option or a value that this agelab has not.
    """
    said = {name: word for name, word in capsule.request.words.items() if name not in (*PATH_OPTIONS, *OURS)}
    for name, word in said.items():
        if name not in known:
            if word:
                raise InputError(
                    f"the run was asked for with --{_option(name)}, which this agelab does not know"
                )
            continue
        kind = type(known[name]) if isinstance(known[name], bool | int | float) else str
        if word is not None and type(word) is not kind:
            raise InputError(f"--{_option(name)} {word!r} is no word of a command")
    if device := said.get("device"):
        control_file.require_device(str(device))
    given = {name: word for name, word in said.items() if name in known}
    seeds = dict.fromkeys(capsule.cells[number].cell.seed for number in cells)
    if capsule.control is None:
        given["seeds"] = ",".join(map(str, seeds))
    return {**known, **given, "filesystem": None, "clock": "virtual"}


def more(capsule: Capsule) -> dict[str, Any]:
    """What the run was asked beside its options. Raises InputError for what this agelab does not know."""
    said = {name: word for name, word in capsule.request.more.items() if name != "keep_disk"}
    for name, word in said.items():
        kind = MORE.get(name)
        if kind is None or (word is not None and type(word) is not kind):
            raise InputError(
                f"the run was asked for {name.replace('_', ' ')}, which this agelab does not know"
            )
    return said


def kernel(capsule: Capsule, given: str | None) -> str:
    """The spec of the kernel to replay with. Raises InputError where only the user can name it."""
    spec = capsule.kernel.spec
    if given or capsule.artefacts or capsule.run_manifest.kernel:
        return given or spec
    raise InputError(
        f"the kernel {capsule.kernel.release} ({spec}) was made of files that are not in the capsule",
        hint=f"name it with --kernel, {IN_IMAGE}",
    )


def corpus(capsule: Capsule, given: str | None) -> str | None:
    """What stands for the user's own data. Raises InputError where only the user can name it."""
    source = capsule.run_manifest.sources.get("")
    if source is None or not source.own:
        if given:
            raise InputError("--corpus: the run had no data of a user's own")
        return None
    if given and capsule.artefacts:
        raise InputError("--corpus: the run's data are in the capsule")
    if given or capsule.artefacts:
        return given or "the capsule's"
    raise InputError(
        f"the corpus is missing ({source.description}, sha256 {source.sha256[:12]} as an image)",
        hint=f"name it with --corpus, {IN_IMAGE}",
    )


def chosen(capsule: Capsule, cells: Sequence[int], directory: Path) -> Selection | ControlFile:
    """The capsule's scenario or control file, as this agelab reads it; its logs are written into ``directory``.

    Raises InputError for what this agelab does not know, and for what is not in the capsule.
    """
    if capsule.control:
        scripts = capsule.control.scripts
        return control_file.parse(directory / capsule.control.name, capsule.control.text, scripts.get)
    name = capsule.request.plan.scenario
    sources = capsule.run_manifest.sources
    logs = {
        one: extract(capsule, f"logs/{one}", directory / f"log-{n}")
        for n, one in enumerate(sources)
        if sources[one].log
    }
    own = logs.get("log") if capsule.request.words.get("log") else None
    found = selection.select(f"{name}.toml", log=own, text=capsule.scenario)
    wanted = {capsule.cells[number].cell.variant for number in cells}
    variants = tuple(variant for variant in found.variants if variant.name in wanted)
    if missing := wanted - {variant.name for variant in variants}:
        raise InputError(f"scenario {name} has no variant {min(missing)}")
    used = {variant.history for variant in variants}
    histories = [
        _history(one, logs, carried=bool(capsule.artefacts)) if one.name in used else one
        for one in found.scenario.histories
    ]
    scenario = found.scenario.model_copy(update={"histories": tuple(histories)})
    return replace(found, scenario=scenario, variants=variants)


def _history(one: History, logs: Mapping[str, Path], *, carried: bool) -> History:
    """A history without places of another machine."""
    if isinstance(one, Logged):
        if one.name not in logs:
            raise InputError(f"the log of history {one.name} is not in the capsule")
        return one.model_copy(update={"log": str(logs[one.name])})
    if isinstance(one, Repository) and not carried:
        raise InputError(
            f"history {one.name} is made of a git repository, which is not in the capsule",
            hint="have it packed with --with-image",
        )
    return one


def verdicts(capsule: Capsule, cells: Sequence[int], run: RunDirectory) -> list[ReplayedCell]:
    """How the cells of a capsule came out in a run."""
    found = {
        (ran.cell.variant, ran.cell.layout, ran.cell.seed): ran
        for group in groups(run)
        for ran in group.cells.values()
    }
    came = []
    for number in cells:
        ran = capsule.cells[number]
        other = found.get((ran.cell.variant, ran.cell.layout, ran.cell.seed))
        came += [judged(number, ran, other)] if other else missing(capsule, [number], "it did not run")
    return came


def missing(capsule: Capsule, cells: Sequence[int], why: str) -> list[ReplayedCell]:
    """The verdict on cells that did not come to run."""
    return [ReplayedCell(number, capsule.cells[number], "could not be rebuilt", why) for number in cells]


def judged(number: int, ran: CellResult, other: CellResult) -> ReplayedCell:
    """Identical is what has the same key and the same digest; without a digest, all that the cell says."""
    pair = CellPair(ran, other)
    end = other.end
    if end is None or not other.finished or ran.end is None:
        return ReplayedCell(number, ran, "differs", f"it did not end: {end.reason if end else 'interrupted'}")
    if pair.equal and (ran.end.inputs_key, ran.end.reason) == (end.inputs_key, end.reason):
        return ReplayedCell(number, ran, "identical", end.digest or f"{end.status}: {end.reason}")
    if pair.inputs:
        same = "" if pair.samples else "; every sample is the same"
        names = ", ".join(dict.fromkeys(difference.name for difference in pair.inputs))
        return ReplayedCell(number, ran, "differs", f"other inputs: {names}{same}", pair.inputs, pair.samples)
    if pair.samples:
        why = f"the inputs are the same, {len(pair.samples)} of {pair.compared} samples are not"
        return ReplayedCell(number, ran, "differs", why, (), pair.samples)
    ended = [f"{one.place}: {one.left} | {one.right}" for one in pair.endings] or [
        f"{ran.end.reason} | {end.reason}"
    ]
    return ReplayedCell(number, ran, "differs", f"the samples are the same; {ended[0]}")


def _option(name: str) -> str:
    return name.replace("_", "-")
