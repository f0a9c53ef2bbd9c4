"""The words of errors."""

import pytest

from agelab.base.errors import AgelabError, HostError, InputError, unknown


def test_unknown_name_gets_the_nearest_valid_ones() -> None:
    error = unknown("scenario", "agin", ["aging", "kernel-tree", "imaging"])
    assert str(error) == "no scenario 'agin'; did you mean aging, imaging?"
    assert error.exit_code == 2


def test_unknown_name_far_from_all_gets_all() -> None:
    assert str(unknown("variant", "zfs", ["xfs-log", "ext2"])) == "no variant 'zfs'; there are: ext2, xfs-log"


def test_unknown_name_where_nothing_is_valid() -> None:
    assert str(unknown("run", "latest", [])) == "no run 'latest'; there are none"


@pytest.mark.parametrize(("kind", "code"), [(AgelabError, 1), (InputError, 2), (HostError, 3)])
def test_exit_codes(kind: type[AgelabError], code: int) -> None:
    error = kind("what is wrong", hint="what to do")
    assert (error.exit_code, str(error), error.hint) == (code, "what is wrong", "what to do")
