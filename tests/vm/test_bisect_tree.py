"""The guilty commit of 72 is found by building and measuring kernels: slower, worse placed, hanging."""

import json
from pathlib import Path

import pytest

from agelab.cli.options import open_store
from bench import planted
from tests.vm.cells import agelab

pytestmark = [pytest.mark.vm, pytest.mark.full]
AT_MOST = (planted.COMMITS - 1).bit_length() + 2
"""Steps beside those that are skipped."""


@pytest.mark.parametrize("guilty", planted.GUILTY, ids=lambda one: one.name)
def test_a_planted_regression_is_found(guilty: planted.Planted, tmp_path: Path) -> None:
    tree = tmp_path / "linux.git"
    commits = planted.make(tree, open_store())
    done = agelab("bisect", *planted.question(guilty, tree), "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    [name] = answer["names"]
    assert name.endswith(f'"{guilty.subject}"') and commits[guilty.name].startswith(name.split()[0])
    assert answer["steps"] <= AT_MOST + answer["skipped"]
