"""What a copied byte costs: exactly its price, the same at each boot, and nothing where nothing is copied."""

from pathlib import Path

import pytest

from agelab import kernel
from agelab.cli.options import open_store
from agelab.machine.image import tools
from agelab.runner.bench import bench
from agelab.scenario import selection
from tests.vm.chaos import both_cores_busy
from validation.machines import CALLS, instructions

pytestmark = pytest.mark.vm
PRICE = {"read": 2048, "written": 5120}
"""Instructions for 1024 bytes: two and five a byte."""


@pytest.mark.parametrize(
    "spec", [kernel.DEFAULT, *(pytest.param(spec, marks=pytest.mark.full) for spec in ("debian:6.12", "debian:7.2"))]
)
def test_a_byte_costs_its_price_whatever_the_host_does(spec: str, tmp_path: Path) -> None:
    store, machine = open_store(), selection.machine("pentium3-500")
    program = tools.obtain(store, sources=CALLS)["calls"]
    with bench(store, spec, tmp_path) as place:
        free = instructions(place, program, machine, {"read": 0, "written": 0})
        priced = instructions(place, program, machine, PRICE)
        with both_cores_busy():
            assert instructions(place, program, machine, PRICE) == priced
    assert priced["file_reread"] - free["file_reread"] == pytest.approx(2, rel=0.01)
    assert priced["file_rewrite"] - free["file_rewrite"] == pytest.approx(5, rel=0.01)
    for call in ("pipe_bytes", "stat", "null_io", "mem_write"):
        assert priced[call] == pytest.approx(free[call], rel=0.02)  # where a timer tick falls
