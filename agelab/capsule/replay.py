"""Replay a capsule: run its cells again with the packages of the first time, and compare each with what it was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from agelab.analysis.cell_diff import CellPair, ValueDifference
from agelab.analysis.cells import CellResult, load
from agelab.base import atomic, fileio, readers
from agelab.base.errors import AgelabError, InputError
from agelab.capsule import verify as schema
from agelab.capsule.verify import Capsule
from agelab.data.corpus import Corpus
from agelab.debian import Archive, PackagesVanished
from agelab.kernel import Kernel
from agelab.kernel.modules import BUILTIN, INDEX, index
from agelab.machine import qemu
from agelab.machine.image import Image
from agelab.machine.image.assemble import DESCRIPTION
from agelab.results.result import End
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute import guests, runner
from agelab.runner.prepare.parts import CarriedParts
from agelab.runner.progress import Progress
from agelab.runner.request.options import NOT_REPLAYED, RunOptions
from agelab.runner.request.request import RunRequest, resolve
from agelab.scenario import control_file, selection
from agelab.scenario.control_file import ControlFile
from agelab.scenario.history import History, Logged, Repository, Traced
from agelab.scenario.jobs import Jobs
from agelab.scenario.selection import Selection
from agelab.store import stored_disk
from agelab.store.artefacts import Artefact, Manifest, Store
from agelab.store.parcel import OneFile

IN_IMAGE = "or have it packed with --with-image"
MADE_BY_GUESTS = (guests.KIND, stored_disk.KIND)
"""Artefacts that guests with a capsule's own kernel leave: they go with its parts when the replay ends."""
Outcome = Literal["identical", "differs", "could not be rebuilt"]


@dataclass(frozen=True)
class ReplayedCell:
    """One cell of a capsule, compared with its replay."""

    number: int
    ran: CellResult
    """The cell in the capsule."""
    outcome: Outcome
    why: str
    inputs: Sequence[ValueDifference] = field(default_factory=tuple)
    samples: Sequence[ValueDifference] = field(default_factory=tuple)
    end: End | None = None
    """How the replay ended, where it ran."""

    @property
    def same_key(self) -> bool:
        return self._has_same("inputs_key")

    @property
    def same_digest(self) -> bool:
        return self._has_same("digest")

    def _has_same(self, name: str) -> bool:
        return bool(self.end and self.ran.end) and getattr(self.end, name) == getattr(self.ran.end, name)


@dataclass(frozen=True)
class ReplayedCapsule:
    """A capsule, and what became of its cells."""

    path: Path
    cells: Sequence[ReplayedCell]
    capsule: Capsule | None = None
    """None for a file that is no valid capsule."""
    run: RunDirectory | None = None
    """The replay, where there is one."""
    problem: str = ""
    """Why the file is no valid capsule."""

    @property
    def reproduced(self) -> bool:
        return bool(self.cells) and all(cell.outcome == "identical" for cell in self.cells)


def replay(
    capsule: Capsule,
    cells: Sequence[int],
    store: Store,
    progress: Progress,
    *,
    jobs: Jobs = 1,
    corpus: str | None = None,
    kernel: str | None = None,
) -> ReplayedCapsule:
    """Run these cells of a capsule again as ``run`` does, and compare them; where they cannot be rebuilt, say why."""
    try:
        done = run(capsule, cells, store, progress, jobs=jobs, corpus=corpus, kernel=kernel)
    except AgelabError as error:
        why = str(error).splitlines() + ([error.hint] if error.hint else [])
        return ReplayedCapsule(capsule.path, not_rebuilt(capsule, cells, "; ".join(why)), capsule)
    return ReplayedCapsule(capsule.path, compare_cells(capsule, cells, done), capsule, done)


def run(
    capsule: Capsule,
    cells: Sequence[int],
    store: Store,
    progress: Progress,
    *,
    jobs: Jobs = 1,
    corpus: str | None = None,
    kernel: str | None = None,
) -> RunDirectory:
    """Run these cells of a capsule again. ``corpus`` and ``kernel`` are the user's, where the capsule has none.

    Raises AgelabError where the cells cannot be rebuilt here.
    """
    if kernel:  # the parts that the capsule carries belong to its own kernel
        capsule = replace(capsule, artefacts=None)
    with atomic.temp_dir(store.cache("capsules")) as place:
        asked = replay_request(capsule, cells, place, jobs=jobs, corpus=corpus, kernel=kernel)
        request = replace(asked, readable_by=readers.of_files(capsule.path))
        provided = unpack(capsule, place / "parts")
        apart = dict.fromkeys(MADE_BY_GUESTS, place / "made") if provided else {}
        fixed = Store(
            store.home, store.warn, resolutions={} if kernel else capsule.run_manifest.resolutions, apart=apart
        )
        if provided and not _has_qemu(fixed, progress):
            fixed = Store(store.home, store.warn, resolutions=store.resolutions, shared=store.shared, apart=apart)
        try:
            return runner.run_request(request, fixed, progress, provided=provided)
        except PackagesVanished as error:
            # The package lists here may be older than the run: try once more with new ones.
            Archive(fixed, error.suite, error.also_from).update()
            return runner.run_request(request, fixed, progress, provided=provided)


def _has_qemu(store: Store, progress: Progress) -> bool:
    """Make the QEMU that a store's resolutions name; False where its packages cannot be had any more.

    For a capsule that carries its guest: today's QEMU runs it, too, and the inputs tell that it is another.
    """
    try:
        qemu.obtain(store, progress.stage)
    except PackagesVanished as error:
        progress.stage(f"{error}: the cells run with today's QEMU, which is another input")
        return False
    return True


def selection_of(capsule: Capsule, log: Path | None = None) -> Selection:
    """Read the capsule's scenario, with the job files that the capsule has. Raises InputError."""
    jobs = capsule.jobs.jobs if capsule.jobs else {}
    name = f"{capsule.request.plan.scenario}.toml"
    asked = {name: str(capsule.request.options.get(name) or "") for name in ("options", "instead")}
    return selection.select(
        name, log=log, text=capsule.scenario, jobs=jobs, options=asked["options"], instead=asked["instead"]
    )


def replay_request(
    capsule: Capsule, cells: Sequence[int], place: Path, *, jobs: Jobs, corpus: str | None, kernel: str | None
) -> RunRequest:
    """Make the request for these cells, with no path of another host in it; logs are written into ``place``.

    Raises InputError for an option or value that this agelab does not know.
    """
    data = _corpus(capsule, corpus)
    asked = capsule.request.options
    file = capsule.control
    replayed = [capsule.cells[number].cell for number in cells]
    seeds = (1,) if file else tuple(dict.fromkeys(cell.seed for cell in replayed))
    words = {
        **{name: word for name, word in asked.items() if name not in NOT_REPLAYED},
        "clock": "virtual",
        "control": file.name if file else None,
        "corpus": data if asked.get("corpus") else None,  # a control file's data need no option
        "jobs": jobs,
        "kernel": _kernel(capsule, kernel),
        "seeds": seeds,
        "corpora": tuple(dict.fromkeys(cell.corpus_seed for cell in replayed)),
        "fresh": True,
    }
    name = capsule.request.plan.scenario
    options = RunOptions.from_words({"directory": str(Path.cwd()), "name": name, "options": words})
    request = resolve(options, _source(capsule, cells, place))
    return replace(
        request,
        corpus=Path(data) if data and "" in capsule.run_manifest.sources else None,
        only=frozenset(cell.name for cell in replayed),
    )


def _kernel(capsule: Capsule, given: str | None) -> str:
    """Return the spec of the kernel to replay with. Raises InputError where the user must name it."""
    spec = capsule.kernel.spec
    if given or capsule.artefacts or capsule.run_manifest.kernel:
        return given or spec
    raise InputError(
        f"the kernel {capsule.kernel.release} ({spec}) was made of files that are not in the capsule",
        hint=f"name it with --kernel, {IN_IMAGE}",
    )


def _corpus(capsule: Capsule, given: str | None) -> str | None:
    """Return the path of the user's own data, or a word for those in the capsule.

    Raises InputError where the user must name them.
    """
    sources = capsule.run_manifest.sources
    source = sources.get("")
    if source is None and capsule.request.options.get("corpus"):
        # The repository that its histories pull from.
        source = next(iter(sources.values())).model_copy(update={"own": True})
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


def _source(capsule: Capsule, cells: Sequence[int], directory: Path) -> Selection | ControlFile:
    """Read the capsule's scenario or control file; its logs are written into ``directory``.

    Raises InputError for a text that this agelab cannot read, and for logs that are not in the capsule.
    """
    if capsule.control:
        _require_data(capsule, {""})
        scripts = capsule.control.scripts
        return control_file.parse(directory / capsule.control.name, capsule.control.text, scripts.get)
    name = capsule.request.plan.scenario
    sources = capsule.run_manifest.sources
    with fileio.opened(capsule.path) as file:
        carried = OneFile(file)
        logs = {
            history: carried.extract(f"logs/{history}", capsule.parcel, directory / f"log-{number}")
            for number, history in enumerate(sources)
            if sources[history].log
        }
    own = logs.get("log") if capsule.request.options.get("log") else None
    selected = selection_of(capsule, own)
    names = {capsule.cells[number].cell.variant for number in cells}
    variants = tuple(variant for variant in selected.variants if variant.name in names)
    if missing := names - {variant.name for variant in variants}:
        raise InputError(f"scenario {name} has no variant {min(missing)}")
    used = {variant.history for variant in variants}
    _require_data(capsule, {variant.history or "" for variant in variants})
    histories = [
        _history(history, logs, carried=capsule.artefacts is not None) if history.name in used else history
        for history in selected.scenario.histories
    ]
    scenario = selected.scenario.model_copy(update={"histories": tuple(histories)})
    return replace(selected, scenario=scenario, variants=variants)


def _require_data(capsule: Capsule, used: set[str]) -> None:
    """Raise InputError if a capsule with artefacts lacks the data of these histories ("": the corpus)."""
    if capsule.artefacts is None:
        return
    for name in sorted(used - {corpus.history for corpus in capsule.artefacts.corpora}):
        what = f"the data of history {name} are" if name else "the corpus is"
        raise InputError(f"{what} not in the capsule", hint="pack the run again --with-image")


def _history(history: History, logs: Mapping[str, Path], *, carried: bool) -> History:
    """Return a history without paths of another host."""
    if isinstance(history, Logged):
        if history.name not in logs:
            raise InputError(f"the log of history {history.name} is not in the capsule")
        return history.model_copy(update={"log": str(logs[history.name])})
    if isinstance(history, Repository | Traced) and not carried:
        what = "a git repository" if isinstance(history, Repository) else "a trace of block requests"
        raise InputError(
            f"history {history.name} is made of {what}, which is not in the capsule",
            hint="have it packed with --with-image",
        )
    return history


def compare_cells(capsule: Capsule, cells: Sequence[int], run: RunDirectory) -> list[ReplayedCell]:
    """Compare cells of a capsule with those of its replay."""
    replayed = {ran.cell.name: ran for ran in load(run).cells}
    compared = []
    for number in cells:
        ran = capsule.cells[number]
        other = replayed.get(ran.cell.name)
        compared += (
            [replace(compare_cell(number, ran, other), end=other.end)]
            if other
            else not_rebuilt(capsule, [number], "it did not run")
        )
    return compared


def not_rebuilt(capsule: Capsule, cells: Sequence[int], why: str) -> list[ReplayedCell]:
    """Return the outcome of cells that did not run."""
    return [ReplayedCell(number, capsule.cells[number], "could not be rebuilt", why) for number in cells]


def compare_cell(number: int, ran: CellResult, other: CellResult) -> ReplayedCell:
    """Compare a cell with its replay: identical with the same key and digest, or without a digest the same ending."""
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
    ended = [f"{difference.place}: {difference.left} | {difference.right}" for difference in pair.endings] or [
        f"{ran.end.reason} | {end.reason}"
    ]
    return ReplayedCell(number, ran, "differs", f"the samples are the same; {ended[0]}")


def unpack(capsule: Capsule, directory: Path) -> CarriedParts | None:
    """Write the artefacts of a capsule into an empty directory; return None if it has none.

    Raises InputError if they are incomplete.
    """
    if capsule.artefacts is None:
        return None
    with fileio.opened(capsule.path) as file:
        taken = _Extraction(capsule, OneFile(file), directory)
        return CarriedParts(taken.image(), taken.module(), taken.tools(), taken.corpora(), capsule.run_manifest)


class _Extraction:
    """Extracts the artefacts of one capsule."""

    def __init__(self, capsule: Capsule, file: OneFile, directory: Path) -> None:
        assert capsule.artefacts is not None
        self._file = file
        self._capsule, self._carried = capsule, capsule.artefacts
        self._directory = directory

    def image(self) -> Image:
        capsule, place = self._capsule, self._directory / "image"
        files = dict(capsule.description.files)
        for name in files:
            if name not in schema.IMAGE_FILES:
                raise InputError(f"{capsule.path}: an image has no {name!r}")
            self._extract(f"artefacts/image/{name}", place / name)
        self._extract(schema.IMAGE, place / DESCRIPTION)
        self._modules(place)
        files[DESCRIPTION] = capsule.members[schema.IMAGE].sha256
        known = capsule.kernel
        of_kernel = Artefact(
            capsule.description.kernel.key, place, Manifest(kind="kernel", inputs=known.inputs, files={})
        )
        kernel = Kernel(known.spec, known.release, known.version, known.suite, artefact=of_kernel)
        key = str(capsule.request.plan.provenance.get("image"))
        artefact = Artefact(key, place, Manifest(kind="image", inputs={}, files=files))
        return Image(kernel, artefact, capsule.description)

    def _modules(self, place: Path) -> None:
        """Extract the kernel's modules under their numbers, and write an index of them."""
        capsule = self._capsule
        self._extract(schema.BUILTIN, place / BUILTIN)
        if schema.CONFIG in capsule.members:
            self._extract(schema.CONFIG, place / "config")
        ours = []
        for number, info in enumerate(capsule.modules):
            path = f"modules/{number}.ko"
            self._extract(f"artefacts/kernel/{number}.ko", place / path)
            ours.append(info.model_copy(update={"path": path}))
        (place / INDEX).write_bytes(index(ours))

    def module(self) -> Path | None:
        """Return the module of the modelled drive, or None."""
        if self._carried.module is None:
            return None
        target = self._directory / "drive" / f"{self._carried.module}.ko"
        return self._extract("artefacts/drive/module.ko", target)

    def tools(self) -> dict[str, Path]:
        """Return the guest's own programs by name."""
        place = self._directory / "tools"
        return {
            name: self._extract(f"artefacts/tools/{number}", place / str(number))
            for number, name in enumerate(self._carried.tools)
        }

    def corpora(self) -> dict[str, Corpus]:
        corpora = {}
        for number, carried in enumerate(self._carried.corpora):
            name = f"artefacts/corpora/{number}"
            image = self._extract(name, self._directory / "corpora" / str(number) / "corpus.iso")
            size = self._capsule.members[name].size
            facts = {name: getattr(carried, name) for name in schema.CORPUS_FIELDS}
            corpora[carried.history] = Corpus(carried.sha256, image, size, **facts)
        return corpora

    def _extract(self, name: str, target: Path) -> Path:
        target.parent.mkdir(parents=True, exist_ok=True)
        return self._file.extract(name, self._capsule.parcel, target)
