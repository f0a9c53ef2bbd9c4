"""Pack runs as an artefact for reviewers: their capsules, one report, and what each claim and figure takes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agelab.analysis.cells import RunResult, load, run_sets
from agelab.analysis.published.claim_verdict import ClaimVerdict
from agelab.analysis.published.phrasing import reason_text, verdict_label
from agelab.analysis.published.report import StudyReport
from agelab.base import atomic
from agelab.base.errors import InputError
from agelab.capsule.pack import SUFFIX, corpora_of, pack
from agelab.capsule.replay import replay_request
from agelab.capsule.verify import Capsule
from agelab.present.report.blocks import BlockMapFigure, Charts, FlameGraph, Part, Picture, Results, Table
from agelab.present.report.html import render
from agelab.present.report.page import build_page
from agelab.present.report.study import compare_with_study
from agelab.results.run_directory import RunDirectory
from agelab.runner.prepare import input_data
from agelab.runner.prepare.capacity import RunNeeds, needs_of
from agelab.runner.request.request import cell_requests
from agelab.store.artefacts import Store, file_hash

CAPSULES = "capsules"
REPORT = "report.html"
DECIDED = (ClaimVerdict.REPLICATED, ClaimVerdict.NOT)
"""Verdicts of claims that the runs decide."""


@dataclass(frozen=True)
class PackedRun:
    """One run of an artefact."""

    run: RunResult
    capsule: Capsule
    file: str
    """Its capsule, below the artefact's directory."""
    size: int
    """Bytes of that file."""
    sha256: str
    needs: RunNeeds | None
    """None where the run's data are no longer in the store, or lie at a place that only its user knows."""

    @property
    def seconds(self) -> float:
        """What its cells took of the host, one after the other."""
        return sum(cell.end.host_seconds for cell in self.run.cells if cell.end)


@dataclass(frozen=True)
class ShownResult:
    """A claim of a study, an answer or a figure of the report, and the runs that it is made of."""

    name: str
    verdict: str
    """The verdict or the answer; empty for a figure."""
    anchor: str
    """Where it stands in the report."""
    runs: Sequence[PackedRun]
    claim: bool = False

    @property
    def seconds(self) -> float:
        return sum(packed.seconds for packed in self.runs)

    @property
    def disk(self) -> int | None:
        """Bytes of disk that the replays of its runs take at most, one cell at a time; None if not known."""
        needs = [packed.needs for packed in self.runs]
        return max(need.disk() for need in needs if need) if all(needs) else None


@dataclass(frozen=True)
class ArtifactPart:
    """Runs that stand together in the report, and what they show."""

    title: str
    subtitle: str
    findings: Sequence[ShownResult]


@dataclass(frozen=True)
class Artifact:
    """Everything in an artefact's directory that its texts tell of."""

    runs: Sequence[PackedRun]
    parts: Sequence[ArtifactPart]

    @property
    def cells(self) -> int:
        return sum(len(packed.run.cells) for packed in self.runs)

    @property
    def carries(self) -> bool:
        """True if the capsules have kernels, images, programs and data."""
        return all(packed.capsule.artefacts for packed in self.runs)


def require_new(directory: Path) -> None:
    """Raise InputError for a directory that cannot be made, or that is there and not empty."""
    if not directory.absolute().parent.is_dir():
        raise InputError(f"{directory} cannot be made: {directory.parent} is not a directory")
    if directory.exists() and not (directory.is_dir() and not any(directory.iterdir())):
        raise InputError(f"{directory} is there and not empty", hint="name a new directory")
    try:
        with atomic.temp_dir(directory.absolute().parent):
            pass
    except OSError as error:
        raise InputError(f"{directory} cannot be written: {error.strerror}") from error


def pack_runs(
    runs: Sequence[RunDirectory], store: Store, directory: Path, *, carry: bool = False
) -> Artifact:
    """Write capsules and report of these runs into an empty directory.

    Raises InputError for a run that cannot be packed, with the reason.
    """
    (directory / CAPSULES).mkdir()
    packed = {run.name: _pack(run, store, directory, carry=carry) for run in runs}
    loaded = [packed_run.run for packed_run in packed.values()]
    page = build_page(loaded)
    atomic.write(directory / REPORT, render(page).encode())
    parts = []
    for group, part in zip(run_sets(loaded), page.parts, strict=True):
        report, _ = compare_with_study(group)
        findings = (
            *(_claims(report, part, packed) if report else ()),
            *_shown(part, [packed[run.name] for run in group.runs]),
        )
        parts.append(ArtifactPart(part.title, part.subtitle, findings))
    return Artifact(tuple(packed.values()), parts)


def _pack(run: RunDirectory, store: Store, directory: Path, *, carry: bool) -> PackedRun:
    file = f"{CAPSULES}/{run.name}{SUFFIX}"
    capsule = pack(run, store, directory / file, carry=carry)
    path = directory / file
    return PackedRun(
        load(run), capsule, file, path.stat().st_size, file_hash(path), _needs(capsule, store, directory)
    )


def _needs(capsule: Capsule, store: Store, place: Path) -> RunNeeds | None:
    """Return what a replay takes of its host."""
    sources = capsule.run_manifest.sources
    own = any(source.own for source in sources.values()) and capsule.artefacts is None
    try:
        with atomic.temp_dir(place) as logs:
            request = replay_request(
                capsule,
                range(len(capsule.cells)),
                logs,
                jobs=1,
                corpus="the user's" if own else None,
                kernel=capsule.kernel.spec,
            )
        data = corpora_of(capsule.run_manifest, store)
        shrink = request.shrink(data.get("") if request.corpus else None)
        specs = [cell.spec for cell in cell_requests(request, shrink, (), None)]
        corpora = [input_data.carried_data(data, spec.variant.history, spec.corpus_seed) for spec in specs]
        return needs_of(request, specs, corpora)
    except InputError:
        return None


def _claims(report: StudyReport, part: Part, packed: Mapping[str, PackedRun]) -> Iterator[ShownResult]:
    """Yield the claims that a side decides, with its verdict."""
    sides = dict(report.sides)
    for claim, judged in report.claims:
        for letter, judgement in judged:
            if judgement.verdict in DECIDED:
                name = f"{claim.says} ({claim.id}, {verdict_label(letter, judgement)})"
                runs = [packed[run] for run in sides[letter].names]
                text = f"{judgement.verdict}: {reason_text(judgement)}"
                yield ShownResult(name, text, f"{part.id}-claims", runs, claim=True)


def _shown(part: Part, runs: Sequence[PackedRun]) -> Iterator[ShownResult]:
    """Yield the answers and the figures of a part of the report."""
    for number, answer in enumerate(part.answers, 1):
        text = f"{answer.named}. {answer.verdict}" if answer.named else answer.verdict
        yield ShownResult(answer.question, text, f"{part.id}-answer-{number}", runs)
    for section in part.sections:
        for title in dict.fromkeys(_titles(section.blocks)):
            yield ShownResult(title, "", section.id, runs)


def _titles(blocks: Iterable[object]) -> Iterator[str]:
    """Yield the titles of the figures and tables among these blocks."""
    for block in blocks:
        if isinstance(block, Charts | Picture | BlockMapFigure | FlameGraph):
            yield block.title
        elif isinstance(block, Table | Results):
            yield block.caption


def capsules_in(directory: Path) -> list[Path]:
    """List the capsules of an artefact, or of any directory. Raises InputError where there is none."""
    try:
        capsules = sorted(
            path
            for place in (directory, directory / CAPSULES)
            if place.is_dir()
            for path in place.iterdir()
            if path.suffix == SUFFIX
        )
    except OSError as error:
        raise InputError(f"{directory} cannot be read: {error.strerror}") from error
    if not capsules:
        raise InputError(f"{directory} has no capsule, nor has {directory / CAPSULES}")
    return capsules
