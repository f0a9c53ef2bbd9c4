"""Whole numbers in words: of ASCII digits, of any length, up to a limit."""

import pytest
from click.testing import CliRunner

from agelab.base.errors import InputError
from agelab.base.sanitize import parse_digits
from agelab.cli.store import store
from agelab.runner.execute.guests import boot_timeout

MANY = "9" * 5000


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("0", 0), ("7", 7), ("100", 100), ("0" * 5000 + "7", 7), ("000", 0), ("101", None), (MANY, None), ("", None),
        ("-1", None), ("+1", None), ("1_0", None), (" 1", None), ("1\n", None), ("²", None), ("٣", None), ("1.0", None),
    ],
)  # fmt: skip
def test_only_ascii_digits_up_to_the_limit_are_a_number(word: str, number: int | None) -> None:
    assert parse_digits(word, 100) == number


@pytest.mark.parametrize("word", [MANY, "0", "x", "٣", "-1"])
def test_a_patience_that_is_no_number_is_refused(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGELAB_PATIENCE", word)
    with pytest.raises(InputError, match="a whole number from 1 to 1000000000"):
        boot_timeout("virtual")


@pytest.mark.parametrize("word", [MANY, f"{MANY}G", "٣", ""])
def test_a_size_that_is_no_number_is_refused(word: str) -> None:
    done = CliRunner().invoke(store, ["prune", "--to", word])
    assert done.exit_code == 2 and "is not a size; write for example 40M" in done.output
