"""Pack runs as an artefact for reviewers: their capsules, one report, and what each claim and figure takes.

What no program knows is a line that begins with TO DO and says what its author must write.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agelab.analysis.cells import CellResult, RunResult, load, run_sets
from agelab.analysis.published.claim_verdict import ClaimVerdict
from agelab.analysis.published.phrasing import reason_text, verdict_label
from agelab.analysis.published.report import StudyReport
from agelab.base import atomic, templates
from agelab.base.errors import InputError
from agelab.base.sanitize import escape_controls
from agelab.capsule.pack import SUFFIX, corpora_of, pack
from agelab.capsule.replay import replay_request, selection_of
from agelab.capsule.verify import Capsule
from agelab.present.report.blocks import BlockMapFigure, Charts, FlameGraph, Part, Picture, Results, Table
from agelab.present.report.command import repeat_command
from agelab.present.report.html import render
from agelab.present.report.page import build_page
from agelab.present.report.study import compare_with_study
from agelab.present.view.cell_names import count_reproduced, count_statuses
from agelab.present.view.markdown import escape as escape_markdown
from agelab.present.view.progress import format_time_left
from agelab.results.run_directory import RunDirectory
from agelab.runner.cell_times import TimeRange
from agelab.runner.prepare import input_data
from agelab.runner.prepare.capacity import RunNeeds, needs_of
from agelab.runner.request.request import cell_requests
from agelab.scenario.scenario import Citation
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


def pack_runs(runs: Sequence[RunDirectory], store: Store, directory: Path, *, carry: bool = False) -> Artifact:
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
    return PackedRun(load(run), capsule, file, path.stat().st_size, file_hash(path), _needs(capsule, store, directory))


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


FILES = ("README.md", "CHECKLIST.md", "CITATION.cff")
REPLAY = "agelab capsule replay ."
REPLAYED = "replayed.html"
"""The report of a replay; it must not replace the artefact's own."""
GIGABYTE = 10**8 * 5
"""Bytes from which a size is told in gigabytes."""


def texts(artifact: Artifact) -> Mapping[str, str]:
    """Return the text of each file by its name."""
    runs = artifact.runs
    needs = [packed.needs for packed in runs if packed.needs]
    filters: dict[str, Callable[..., str]] = {
        "text": _text,
        "value": _value,
        "time": _time,
        "size": _size,
        "command": _command,
        "statuses": _statuses,
        "repeated": lambda plan: escape_controls(repeat_command(plan), kept=""),
    }
    values = {
        "title": ", ".join(dict.fromkeys(packed.run.plan.scenario for packed in runs)),
        "runs": runs,
        "cells": [cell for packed in runs for cell in packed.run.cells],
        "parts": artifact.parts,
        "versions": dict.fromkeys(packed.capsule.run_manifest.agelab for packed in runs),
        # Another harness is an input that differs.
        "harnesses": dict.fromkeys(str(packed.run.plan.provenance.get("harness")) for packed in runs),
        "disk": max((need.disk() for need in needs), default=0),
        "memory": max((need.guests() for need in needs), default=0),
        "carries": artifact.carries,
        "citations": dict.fromkeys(filter(None, map(_cited, runs))),
        "replay": REPLAY,
        "reproduced": count_reproduced(artifact.cells, artifact.cells, len(runs), len(runs)),
        "report": REPORT,
    }
    return {name: templates.fill(f"artifact/{name}", filters, **values) for name in FILES}


def _command(shown: ShownResult) -> str:
    """Return the commands that make it again: the replays, and what prints it."""
    replays = "; ".join(f"agelab capsule replay {run.file}" for run in shown.runs)
    verb, output = ("replicate", "") if shown.claim else ("report", f" -o {REPLAYED}")
    if len(shown.runs) == 1:
        return f"`{replays}; agelab {verb} latest{output}`"
    return f"`{replays}`, then `agelab {verb} REPLAY...{output}` with the names that they print"


def _statuses(cells: Sequence[CellResult]) -> str:
    return count_statuses([cell.end_status for cell in cells])


def _text(text: str) -> str:
    """Put a text that is not ours on one line, as nothing but text."""
    return escape_markdown(escape_controls(" ".join(text.split())))


def _value(text: str) -> str:
    """Write a value as JSON, which YAML reads."""
    return json.dumps(escape_controls(text, kept=""), ensure_ascii=False)


def _time(seconds: float) -> str:
    return format_time_left(TimeRange(max(1, seconds), max(1, seconds)))


def _size(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= GIGABYTE else f"{max(size / 1e6, 0.1):.1f} MB"


def _cited(packed: PackedRun) -> Citation | None:
    """Return the study behind a run's scenario, if there is one."""
    try:
        return selection_of(packed.capsule).scenario.citation
    except InputError:  # a control file's
        return None
