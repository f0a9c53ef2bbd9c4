"""The texts of an artefact for reviewers: README.md, CHECKLIST.md and CITATION.cff (agelab/base/templates/artifact).

What no program knows is a line that begins with TO DO and says what its author must write.
"""

import json
from collections.abc import Callable, Mapping, Sequence

from agelab.analysis.cells import CellResult
from agelab.base import templates
from agelab.base.errors import InputError
from agelab.base.sanitize import escape_controls
from agelab.capsule.replay import selection_of
from agelab.present.artifact import REPORT, Artifact, PackedRun, ShownResult
from agelab.present.report.command import repeat_command
from agelab.present.view.cell_names import count_reproduced, count_statuses
from agelab.present.view.markdown import escape as escape_markdown
from agelab.present.view.progress import format_time_left
from agelab.runner.cell_times import TimeRange
from agelab.scenario.scenario import Citation

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
