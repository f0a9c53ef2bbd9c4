"""What was measured of real drives in their day: as it is read, and the sheet's and the model's figures beside it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agelab.base.errors import InputError
from agelab.scenario import selection
from agelab.scenario.drive import RotatingDisk
from docs.make import block, catalogue
from docs.make.page import wrapped
from tests.model.native import Library, compiled
from validation import press
from validation.press import Comparison, Measurement

HEAD = ",".join(press.Row.model_fields) + "\n"
NAME = "hitachi-hds722525vlat80"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """The C files, compiled."""
    yield Library(compiled(tmp_path_factory.mktemp("press") / "drive.so", "-O2", "-shared", "-fPIC"))


def measurement(what: press.What, value: float = 1) -> Measurement:
    """A figure of a drive of which the maker states all that counts here."""
    drive = selection.drive(NAME)
    assert isinstance(drive.medium, RotatingDisk)
    return Measurement(drive, drive.medium, "HDS", what, value, "HD Tach", "the press", "a review")


def test_a_figure_is_read_in_milliseconds_or_millions_of_bytes_a_second(tmp_path: Path) -> None:
    path = tmp_path / "measured.csv"
    path.write_text(
        HEAD
        + f'{NAME},HDS,access,12.5,ms,HD Tach,press,"a review, 2004"\n'
        + f"{NAME},HDS,outer,50,MiB/s,hdparm,a user,a list\n{NAME},HDS,inner,30,MB/s,hdparm,a user,a list\n"
    )
    found = press.read(path)
    assert [(one.drive.name, one.what) for one in found] == [(NAME, what) for what in ("access", "outer", "inner")]
    assert [one.value for one in found] == pytest.approx([12.5, 52.4288, 30])
    assert found[0].source == "a review, 2004"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (f"{NAME},HDS,access,12,ms,HD Tach,press", "source"),
        (f"{NAME},HDS,seek,12,ms,HD Tach,press,a", "what"),
        (f"{NAME},HDS,access,12,MB/s,HD Tach,press,a", "unit: 'MB/s'"),
        (f"{NAME},HDS,access,nan,ms,HD Tach,press,a", "value"),
        ("hitachi,HDS,access,12,ms,HD Tach,press,a", "no drive 'hitachi'"),
        ("samsung-860-evo-500,EVO,access,12,ms,HD Tach,press,a", "has no platters"),
    ],
)
def test_a_line_that_is_none_is_an_error_with_its_number(tmp_path: Path, line: str, error: str) -> None:
    path = tmp_path / "measured.csv"
    path.write_text(f"{HEAD}{NAME},HDS,access,12,ms,HD Tach,press,a\n{line}\n")
    with pytest.raises(InputError, match=rf"(?s)measured.csv, line 3: .*{error}"):
        press.read(path)


def test_the_sheet_gives_a_read_by_its_parts() -> None:
    assert press.of_sheet(measurement("outer")) == 61.4
    assert press.of_sheet(measurement("inner")) == 29.7
    assert press.of_sheet(measurement("access")) == pytest.approx(0.52 + 8.2 + 25 / 6 + 0.011, abs=0.001)


def test_the_model_has_the_sheets_rates_and_reads_a_little_quicker_over_sectors(library: Library) -> None:
    for what in ("outer", "inner"):
        one = measurement(what)
        assert press.of_model(library, one) == pytest.approx(press.of_sheet(one), rel=0.01)
    access = measurement("access")
    assert 0.97 < press.of_model(library, access) / press.of_sheet(access) < 1  # outer tracks hold more of them


@pytest.mark.parametrize(
    ("sheet", "model", "off"),
    [(104, 96, "neither"), (104, 110, "the model"), (110, 112, "the sheet"), (110, 125, "both")],
)
def test_what_is_off_is_the_sheet_or_the_model(sheet: float, model: float, off: str) -> None:
    one = Comparison(measurement("access", 100), sheet, model)
    assert one.off == off
    assert one.model_off == pytest.approx(model - 100)


def test_the_page_has_each_figure_and_its_source() -> None:
    one = replace(measurement("outer", 60), source="a review, 2004")
    text = press.page_table([Comparison(one, 61.4, 61.2)])
    assert f"| `{NAME}` | outer rate, MB/s | 60 | 61.4 | 61.2 | 102.3 % | 102.0 % | neither |" in text
    assert f"- `{NAME}`, outer: HDS, HD Tach, by the press: a review, 2004." in text


def test_the_page_is_of_todays_figures_and_model() -> None:
    [table] = catalogue.read().named("press")
    made = wrapped(press.page_table(press.compare(press.read())))
    assert block.find(table).body == made.strip("\n"), table.command
