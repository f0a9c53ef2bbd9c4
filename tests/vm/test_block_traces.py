"""What a modelled drive is sent, recorded in a real guest beside a cell, and sent to a disk again."""

from pathlib import Path

import pytest

from agelab.cli.options import open_store
from agelab.machine.block_trace import reader as trace_reader
from agelab.results import run_lookup
from agelab.results.records import BLOCKS, RequestRecord
from tests.vm.cells import agelab, run

pytestmark = [pytest.mark.vm, pytest.mark.full]
HOWTO = Path(__file__).parents[2] / "docs/howto"


def requests(text: str) -> list[tuple[str, int, int]]:
    trace = trace_reader.read(text.splitlines(), "trace")
    return [(request.kind, request.first, request.size) for request in trace.requests]


def test_the_requests_of_a_trace_come_out_again_and_recording_changes_no_digest() -> None:
    done = agelab("run", str(HOWTO / "replay.toml"), "--blocks", "--fresh")
    assert done.returncode == 0, done.stdout + done.stderr
    name = done.stdout.rsplit("agelab show ", 1)[1].split()[0]
    recorded = run_lookup.find(open_store().runs, name)
    came_out = (recorded.path / "cells" / "0" / BLOCKS / "replay-1.iolog").read_text()
    assert requests(came_out) == requests((HOWTO / "copy.iolog").read_text())
    assert all(
        step.lost == 0 for step in (recorded.beside(0, RequestRecord) or pytest.fail("nothing was recorded")).steps
    )
    [cell] = run(str(HOWTO / "replay.toml"), "--fresh")
    end = recorded.end(0)
    assert end and (cell["inputs_key"], cell["digest"]) == (end.inputs_key, end.digest)
