"""Drive and machine files: whole, honest about their figures, and as docs/drives.md shows one."""

import re
from pathlib import Path

import pytest

from agelab.base.errors import InputError
from agelab.base.types import Figure, Whole
from agelab.scenario import selection, toml_files
from agelab.scenario.drive import BOUNDS, Drive, RotatingDisk
from agelab.scenario.machine import Machine

DRIVES = selection.drives()
MACHINES = toml_files.read_all("machines", Machine)
PAGE = Path("docs/drives.md")
each_drive = pytest.mark.parametrize("drive", DRIVES, ids=lambda drive: drive.name)


def example() -> str:
    """The drive file that the page shows."""
    [text] = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return str(text)


def complaint(directory: Path, text: str) -> str:
    """Return the error about a drive file with that content."""
    path = directory / "my-disk.toml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        toml_files.read(path, Drive)
    return str(error.value)


SSD = (toml_files.SCENARIOS / "drives" / "samsung-870-evo-500.toml").read_text()


@pytest.mark.parametrize(
    ("key", "value", "wrong", "said"),
    [
        ("percent", 5.5, 0, "medium.over_provisioning_percent: 0 is not 0.01 to 1000"),
        ("percent", 5.5, 0.2, "is 1.1 lines of 864 MiB: reserve_lines and 2 that"),
        ("block_kib", 13824, 16, "block_kib 16 is less than what is programmed at once"),
        ("page_kib", 8, 20, "block_kib 13824 is no multiple of what is programmed"),
        ("page_kib", 8, 6, "page_kib 6 is no multiple of 4"),
        ("reserve_lines", 3, 1, "medium.reserve_lines: 1 is not 2 to 1000"),
        ("reserve_lines", 3, 30, "so no garbage collection could free a block"),
        ("channels", 8, 65, "medium.channels: 65 is not 1 to 64"),
        ("planes", 4, 6, "medium.planes: 6 is not 1 to 4"),
        ("per_channel", 2, 40, "320 dies in all, and not 256 at most"),
        ("fast_program_us", 320, 0, "medium.fast_program_us: 0 is not 0.001 to 1e+06"),
        ("fast_mib", 3814, 200000, "fast_mib 200000 takes more cells than the drive's"),
        ("kib", 4096, 128, "cache: kib 128 is not 192 (twice what a die programs at once)"),
    ],
)
def test_a_solid_state_drive_that_cannot_be_is_refused(
    tmp_path: Path, key: str, value: float, wrong: float, said: str
) -> None:
    words = f"{key} = {{ value = {value}"
    assert SSD.count(words) == 1
    text = SSD.replace(words, f"{key} = {{ value = {wrong}").replace("samsung-870-evo-500", "my-disk")
    assert said in complaint(tmp_path, text)


FIGURES = [
    (drive, place)
    for drive in map(selection.drive, ("samsung-hd160hj", "samsung-860-evo-500", "wd-blue-sn550-500"))
    for place, figure in drive.figures()
    if isinstance(figure, Figure | Whole)
]


@pytest.mark.parametrize(("drive", "place"), FIGURES, ids=lambda one: getattr(one, "name", one))
def test_a_figure_beyond_any_drives_is_told_with_its_place(drive: Drive, place: str) -> None:
    least, most = BOUNDS[place.rpartition(".")[2]]
    for value in (10**18, int(most) + 1, *((0,) if least else ())):
        raw = drive.model_dump(mode="json")
        *outer, name = place.split(".")
        (raw[outer[0]] if outer else raw)[name]["value"] = value
        with pytest.raises(ValueError, match=rf"{place}: {value:g} is not ".replace("+", r"\+")):
            Drive.model_validate(raw)


def test_fast_blocks_have_a_time_to_program(tmp_path: Path) -> None:
    text = re.sub(r"fast_mib = .*\n", "", SSD).replace("samsung-870-evo-500", "my-disk")
    assert "fast_mib and fast_program_us are given together" in complaint(tmp_path, text)


@each_drive
def test_a_drive_says_what_its_figures_rest_on(drive: Drive) -> None:
    assert drive == selection.drive(drive.name)
    said = " ".join(f"({figure.source}) {figure.note}" for _, figure in drive.figures())
    assert [key for key in drive.sources if f"({key})" not in said] == []
    assert [place for place, figure in drive.figures() if figure.origin != "published" and not figure.note] == []


@each_drive
def test_a_drive_has_the_size_in_its_summary(drive: Drive) -> None:
    [(size, unit)] = re.findall(r"([\d.]+) (GB|TB)", drive.summary)
    stated = float(size) * (1e9 if unit == "GB" else 1e12)
    assert drive.sectors.value * 512 == pytest.approx(stated, rel=0.002)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_a_machines_drives_are_there(machine: Machine) -> None:
    assert machine == selection.machine(machine.name)
    assert machine.drives
    for one in machine.drives:
        selection.drive(one.drive)
        assert one.note


def test_the_pages_example_is_a_drive(tmp_path: Path) -> None:
    path = tmp_path / "my-disk.toml"
    path.write_text(example())
    assert isinstance(toml_files.read(path, Drive).medium, RotatingDisk)


def test_every_error_of_a_drive_is_told(tmp_path: Path) -> None:
    broken = example()
    for before, after in (
        ("outer_mb_s = { value = 100", "outer_mb_s = { value = 40"),
        ("full_stroke_ms = { value = 16", "full_stroke_ms = { value = 30"),
        ("write_average_ms = { value = 9.5", "write_average_ms = { value = 7"),
        ("heads = { value = 4", "heads = { value = 0"),
        ("kib = { value = 16384", "kib = { value = 16320"),
        ("segments = { value = 16", "segments = { value = 32"),
        ('mb_per_s = { value = 300, origin = "published", source = "sheet" }', "mb_per_s = { value = 0 }"),
        ('sheet = "Maker', 'paper = "Maker'),
    ):
        assert before in broken
        broken = broken.replace(before, after)
    assert "interface.mb_per_s: 0 is not" in complaint(tmp_path, broken)
    said = complaint(
        tmp_path, broken.replace("mb_per_s = { value = 0 }", 'mb_per_s = { value = 0, origin = "published" }')
    )
    for problem in (
        "medium: outer_mb_s 40 is less than inner_mb_s 50",
        "medium: full_stroke_ms 30: with this track_to_track_ms and average_ms the seek curve rises all the way only"
        " from 11.30 to 23.90",
        "medium: write_average_ms 7 is less than average_ms 8.5",
        "medium.heads: 0 is not 1 to 1000",
        "cache: a segment (510 KiB) must hold read_ahead_kib (512)",
        "interface.mb_per_s: 0 is not 0.01 to 100000",
        "interface.mb_per_s: is published, and names no source",
        "sectors: no source 'sheet' in sources",
    ):
        assert problem in said, said


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('kind = "disk"', 'kind = "tape"', 'medium: kind must be "disk", "flash" or "ssd"'),
        ('kind = "disk"\n', "", 'medium: kind must be "disk", "flash" or "ssd"'),
        ("rpm = { value = 7200", "rpm = { value = 7200.5", "medium.rpm.value: Input should be a valid"),
        ("average_ms = { value = 8.5", "average_ms = { value = 0.5", "medium: not track_to_track_ms 0.8 <= "),
        ('name = "my-disk"', 'name = "My disk"', "name: String should match pattern"),
    ],
)
def test_a_wrong_figure_is_told_with_its_place(tmp_path: Path, before: str, after: str, said: str) -> None:
    assert said in complaint(tmp_path, example().replace(before, after, 1))


def test_a_dilation_that_no_timer_survives_is_refused(tmp_path: Path) -> None:
    text = (toml_files.SCENARIOS / "machines" / "pentium4-2800.toml").read_text()
    path = tmp_path / "pentium4-2800.toml"
    path.write_text(text.replace("shift = 0", "shift = 5"))
    stands_for = re.escape(f"{round(selection.machine('pentium4-2800').instruction_ns / 32, 6):g}")
    with pytest.raises(InputError, match=rf"shift is 5: .* stand for {stands_for} s\. .* the nearest shift is 0"):
        toml_files.read(path, Machine)
    path.write_text(text.replace("shift = 0", "shift = 1"))
    one, other = toml_files.read(path, Machine), selection.machine("pentium4-2800")
    wanted = pytest.approx(other.instruction_ns, abs=2e-6)
    assert other.dilation == wanted and 2 * one.dilation == wanted


def test_a_machines_swap_is_on_one_of_its_drives(tmp_path: Path) -> None:
    text = (toml_files.SCENARIOS / "machines" / "pentium3-500.toml").read_text()
    path = tmp_path / "pentium3-500.toml"
    path.write_text(text.replace("drive = 1\n", "drive = 3\n"))
    with pytest.raises(InputError, match=r"swap\.drive is 3: there are 3 drives, from 0"):
        toml_files.read(path, Machine)


def test_a_file_that_calls_itself_by_another_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "drives").mkdir()
    (tmp_path / "drives" / "other.toml").write_text(example())
    monkeypatch.setattr(toml_files, "SCENARIOS", tmp_path)
    with pytest.raises(InputError, match=r"other\.toml: name: is .*, the file's name is 'other'"):
        selection.drive("other")
