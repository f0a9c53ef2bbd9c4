"""Parts of pages that say what the code says: whole in the repository, in words that a user knows."""

import re
from pathlib import Path

import pytest

from agelab.base.verbs import VERBS
from docs.make import generated
from docs.make.page import DOCS, PROJECT

PAGES = sorted(DOCS.rglob("*.md"))
REFERENCE = DOCS / "reference"


def test_pages_say_what_the_code_says_and_one_that_does_not_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [page for page, _ in generated.stale()] == []
    whole = (REFERENCE / "result.md").read_text()
    old = tmp_path / "docs/result.md"
    old.parent.mkdir()
    old.write_text(whole.replace("| `elapsed` |", "| `elapsd` |", 1))
    monkeypatch.setattr(generated, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(generated, "PROJECT", tmp_path)
    make = (PROJECT / "options.mk").read_text()
    (tmp_path / "options.mk").write_text(make.replace("KERNEL", "KERNAL", 1))
    told = {str(page): text for page, text in generated.stale()}
    assert told == {"options.mk": make, "docs/result.md": whole}
    generated.write()
    assert (tmp_path / "options.mk").read_text() == make
    assert old.read_text() == whole and "docs/result.md says" in capsys.readouterr().out


def test_a_mark_without_text_gets_it_and_other_text_stays() -> None:
    other = "\n\nMore.\n<!-- table: x made: 2026-01-01 -->\n<!-- end -->\n"
    begun = f"# Page\n\n<!-- generated: metrics -->\n<!-- end -->{other}"
    page = generated.expand(begun)
    assert page.startswith("# Page\n\n<!-- generated: metrics -->\n| metric |") and "| `elapsed` |" in page
    assert page.endswith(f"<!-- end -->{other}")
    assert generated.expand(page) == page


def test_every_mark_has_an_end() -> None:
    marks = [line for page in PAGES for line in page.read_text().splitlines() if line.startswith("<!-- generated:")]
    assert len(marks) == sum(len(generated.BLOCK.findall(page.read_text())) for page in PAGES) > 15


@pytest.mark.parametrize("page", ["scenario", "files", "result"])
def test_types_are_words_and_links_lead_to_a_heading_of_the_page(page: str) -> None:
    text = (REFERENCE / f"{page}.md").read_text()
    keys = "".join(found[0] for found in re.finditer(r"<!-- generated: keys.*?<!-- end -->", text, re.S))
    held = {row.split(" | ")[1] for row in keys.splitlines() if row.startswith("| `")}
    named = {re.sub(r"`[^`]*`|\(#[^)]*\)", "", one) for one in held}
    assert [one for one in named if re.search(r"[A-Z]", one)] == []
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    slugs = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    assert set(re.findall(r"\]\(#([^)]*)\)", text)) <= set(slugs) and len(slugs) == len(set(slugs))


def test_a_scenarios_keys_are_said_as_they_are_written() -> None:
    text = (REFERENCE / "scenario.md").read_text()
    assert '| `disk` | size: `"320 MiB"` or [table](#disk) | required |' in text
    assert (
        "### `disk.partitions`, `beside.partition`\n" in text
        and "### `steps`, `cases`, `tests`, `steps.cycle`: a step" in text
    )
    assert "| `pause` | number | `0` | seconds before it |" in text


def test_a_row_that_several_tables_have_alike_is_in_one_of_them() -> None:
    for page, kinds in (("scenario", 1), ("files", 2)):
        text = (REFERENCE / f"{page}.md").read_text()
        rows = re.findall(r"`estimated` \| the study or a data sheet states it", text)
        assert len(rows) == kinds
    assert "Also, of [several tables](#keys-of-several-tables-machine): `origin`, `source`, `note`." in text


def test_variants_that_are_alike_but_for_their_names_share_a_row() -> None:
    text = (REFERENCE.parent / "studies/fedorchuk-2005.md").read_text()
    assert "| `jfs-sata`, `jfs-pata` | `jfs` | single |" in text


def test_the_page_of_verbs_has_each_with_examples() -> None:
    text = (REFERENCE / "cli.md").read_text()
    for verb in VERBS:
        assert f"\n### agelab {verb}\n" in text
    assert "agelab run aging-reiserfs  " in text and "Also, as of [agelab run](#agelab-run): `--kernel`" in text
