"""Why what a worker sent is not the cell that was asked for: which of its inputs are others."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agelab.analysis.cell_diff import ValueDifference, diff_inputs
from agelab.base.errors import AgelabError
from agelab.base.fileio import read_bytes
from agelab.runner.reuse import bundle
from agelab.runner.reuse.ended_cell import CellKey

SAYS_MOST = ("version", "release", "package")
"""Last words of places that tell a reader more than hashes and commands do."""
WIDTH = 60
"""Characters of a value."""


def why(sent: bytes, key: CellKey, inputs: Path) -> str:
    """Return what differs in a cell that is not of ``key``, whose inputs are in a file; "" where that is unknown."""
    with suppress(AgelabError, OSError, ValueError):
        found = bundle.sent_cell(sent)
        differing = list(diff_inputs(json.loads(read_bytes(inputs)), found.inputs))
        if differing:
            first = min(differing, key=_rank)
            more = f", and {len(differing) - 1} more" if len(differing) > 1 else ""
            return f"{first.place} is {_cut(first.right)} there, {_cut(first.left)} here{more}"
        if found.end.evaluated_by != key.evaluated_by:
            return "another agelab has made samples of it"
    return ""


def _rank(difference: ValueDifference) -> int:
    """Order differences by what they say: the first of those that name a version, or any."""
    return 0 if difference.place.rpartition(".")[2] in SAYS_MOST else 1


def _cut(value: Mapping[str, Any] | object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= WIDTH else f"{text[:WIDTH]}..."
