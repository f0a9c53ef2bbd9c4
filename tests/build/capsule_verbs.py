"""What every verb does with a capsule, up to where a guest or the mirror would be needed."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from agelab.analysis.cell_diff import CellPair
from agelab.base.errors import AgelabError
from agelab.capsule import replay
from agelab.capsule.verify import Capsule, open_capsule
from agelab.cli.options import dump
from agelab.present.view import capsule as shown
from agelab.runner.progress import Progress
from agelab.store.artefacts import Store


class Reached(AgelabError):
    """A guest, or the mirror, would be next."""


@contextmanager
def without_guests() -> Iterator[None]:
    """Have a replay end where it would ask the mirror or make QEMU."""
    with (
        patch("agelab.capsule.replay._has_qemu", return_value=True),
        patch("agelab.runner.prepare.parts.ask_packages", side_effect=Reached("the mirror is next")),
        patch("agelab.machine.qemu.obtain", side_effect=Reached("a guest is next")),
        patch("agelab.runner.execute.runner.orphans.terminate_orphans", return_value=[]),
    ):
        yield


def use(path: Path) -> list[str]:
    """Show and replay a capsule; return the lines that are told. Raises AgelabError for one that is refused."""
    found = open_capsule(path)
    said = [*shown.capsule_lines(found), json.dumps(shown.capsule_json(found), default=dump)]
    with tempfile.TemporaryDirectory(dir=path.parent) as home, without_guests():
        done = replay.replay(found, range(len(found.cells)), Store(Path(home)), Progress())
    said += [json.dumps(shown.replay_json(done), default=dump), *(one.why for one in done.cells)]
    said += compared(found)
    return said


def compared(capsule: Capsule) -> list[str]:
    """Hold each cell against the first, as a replay does."""
    first = capsule.cells[0]
    pairs = [CellPair(ran, first) for ran in capsule.cells]
    done = [replay.compare_cell(number, ran, first) for number, ran in enumerate(capsule.cells)]
    return [one.why for one in done if one] + [str(one.equal) for one in pairs]
