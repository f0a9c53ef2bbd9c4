"""The style sheet: each of its phrases finds its own bad example, and no page or help text has one."""

import pytest

from docs.make import style
from docs.make.style import Phrase

SHEET = style.read()


@pytest.mark.parametrize("phrase", SHEET.phrases, ids=lambda phrase: phrase.match)
def test_a_phrase_is_found_in_its_bad_example_and_in_no_good_one(phrase: Phrase) -> None:
    errors = list(SHEET.errors([("page.md:7", phrase.bad)]))
    assert any(error.startswith("page.md:7: ") and phrase.good in error for error in errors)
    assert list(SHEET.errors([("page.md:7", phrase.good)])) == []


def test_code_and_the_targets_of_links_are_not_prose() -> None:
    assert list(SHEET.errors([("p:1", "`is told` and [more](is-told/of its own.md)")])) == []


def test_a_sentence_that_goes_on_for_lines_is_too_long_and_a_list_is_not() -> None:
    long = [(f"p:{number}", "ten words of a sentence that goes on and on") for number in range(1, 8)]
    assert list(SHEET.errors(long)) == [f"p:1: a sentence of more than {SHEET.sentence} words: make it two"]
    assert list(SHEET.errors((place, f"- {line}") for place, line in long)) == []


def test_pages_and_help_texts_keep_to_the_sheet(capsys: pytest.CaptureFixture[str]) -> None:
    assert (style.main(), capsys.readouterr().out) == (0, "")
