"""Which tests make test-changed runs."""

import pytest

from tests.changed import OTHERS, PROJECT, affected


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        (["agelab/store/artefacts.py", "agelab/store/http.py"], ["tests/unit/store"]),
        (["agelab/store/http.py", "tests/unit/store/test_store.py"], ["tests/unit/store"]),
        (["tests/vm/test_names.py", "CHANGELOG.md"], ["tests/vm/test_names.py"]),
        (["tests/build/cells.py", "agelab/store/http.py"], ["tests/unit"]),
        (["harness/drive/drive.c"], ["tests/model", "tests/unit/machine"]),
        (["harness/boot.py"], ["tests/contract", "tests/unit/harness"]),
        (["agelab/gone/module.py", "tests/unit/store/test_gone.py", "Makefile"], []),
    ],
)
def test_the_affected_a_change_are_those_of_its_package_and_changed_ones(changed: list[str], tests: list[str]) -> None:
    assert affected(changed) == tests


def test_every_place_is_there() -> None:
    for place, tests in OTHERS.items():
        assert all((PROJECT / name).is_dir() for name in (place, *tests)), place
