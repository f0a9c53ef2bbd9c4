"""Names that a user chose: what of them comes into paths that QEMU, libvirt and others are given."""

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from agelab.base.errors import InputError
from agelab.base.plain_path import misfit, plain_label
from agelab.cli.options import open_store, say
from agelab.kernel.debian_kernel import nearest
from agelab.machine.vm import domain, host
from agelab.machine.vm.guest import MemoryDisk
from agelab.present.view.progress import PlainProgress
from agelab.results.run_directory import RunDirectory
from agelab.scenario import control_file
from tests.build.cli import Cli
from tests.build.guest_spec import SPEC
from tests.build.hostile_runs import HOSTILE
from tests.build.run_readers import OBEYED

ORDERS = 'x",size=1M -gdb tcp::1 -monitor unix:y'
"""A control file of that name put a debugger's port into QEMU's options."""
FIT = ("plain", "Zoë", "日本語-데이터", "a+b@c=d~e.f_g-h", "ж" * 40)
UNFIT = {
    "comma": ",", "space": " ", "no-break space": "\xa0", "semicolon": ";", "ampersand": "&", "less": "<", "quote": '"',
    "apostrophe": "'", "newline": "\n", "tab": "\t", "backslash": "\\", "colon": ":", "dollar": "$", "hash": "#",
    "percent": "%", "brace": "{", "bracket": "[", "star": "*", "question": "?", "bar": "|", "escape": "\x1b",
    "direction": "\u202e", "no UTF-8": "\udcff", "line separator": "\u2028", "backquote": "`", "bang": "!",
}  # fmt: skip
PLAIN = re.compile(r"[A-Za-z0-9_-]{1,130}")


@pytest.mark.parametrize("name", FIT)
def test_a_home_of_letters_of_any_script_is_taken(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / name))
    assert open_store().home == tmp_path / name


@pytest.mark.parametrize("what", UNFIT)
def test_a_home_that_some_program_would_misread_is_refused_at_once(
    what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cli: Cli
) -> None:
    home = tmp_path / f"a{UNFIT[what]}b"
    monkeypatch.setenv("AGELAB_HOME", str(home))
    said = cli.err("run", "aging-ext4")
    assert "the store's directory cannot be" in said and "AGELAB_HOME=<directory>; fit are letters" in said
    assert repr(UNFIT[what])[1:-1] in said and not home.exists() and "Traceback" not in said


@pytest.mark.parametrize("what", UNFIT)
def test_qemu_is_given_no_file_that_it_would_misread_wherever_its_name_is_from(what: str) -> None:
    path = Path(f"/agelab/cell{UNFIT[what]}/disk")
    disk = MemoryDisk(path, 2 << 20, written=True)
    for spec in (
        replace(SPEC, disks=(*SPEC.disks, disk)), replace(SPEC, console=path), replace(SPEC, events=path),
        replace(SPEC, kernel=path), replace(SPEC, initramfs=path), replace(SPEC, preload=(path,)),
        replace(SPEC, emulator=path),
    ):  # fmt: skip
        with pytest.raises(InputError, match="a file of a guest cannot be"):
            domain.domain_xml(spec, [])


@pytest.mark.parametrize("name", [ORDERS, *HOSTILE.values(), "n" * 300, "ſtudy", "-", "..", "Zoë"])
def test_a_runs_directory_has_of_a_name_what_is_plain(name: str, tmp_path: Path) -> None:
    """A control file or a scenario file may have any name."""
    for path in (RunDirectory.create(tmp_path, name).path, RunDirectory.create(tmp_path, name).path):
        assert PLAIN.fullmatch(path.name) and path.parent == tmp_path and path.is_dir()
    assert not misfit(tmp_path / path.name)


@pytest.mark.parametrize("name", ["aging-reiserfs", "tum-2005", "fullness-or-usage-ext4-35-1", "My_own"])
def test_a_plain_name_stays_what_it_is(name: str) -> None:
    assert plain_label(name) == name


@pytest.mark.parametrize(
    "line",
    [
        "ext4 ſtudy 1", "ext4 \u212aelvin 1", "ext4-ſ study 1", "ext4 İ 1", "ext4 a.b 1", f"ext4 {'n' * 101} 1",
        'ext4 x",y 1', "ext4 ../x 1", "ext4 ext² 1",
    ],
)  # fmt: skip
def test_a_name_in_a_control_file_is_of_plain_letters(line: str, tmp_path: Path) -> None:
    """Long s and the sign for Kelvin are s and k to a search that does not care for case."""
    with pytest.raises(InputError, match=r"c\.ctl:1: names have letters a to z, digits, - and _, 100 at"):
        control_file.parse(tmp_path / "c.ctl", f"{line}\n", lambda _: b"true")


@pytest.mark.parametrize("unfit", [",size=1", " b", "'"])
def test_a_directory_for_temporary_files_that_qemu_would_misread_is_refused(
    unfit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"a{unfit}").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / f"a{unfit}"))
    with pytest.raises(InputError, match="the directory for temporary files cannot be") as raised:
        host.try_boot(tmp_path / "qemu", tmp_path / "vmlinuz", seconds=1)
    assert "TMPDIR=<directory>" in raised.value.hint


@pytest.mark.parametrize("name", ["ansi", "osc8", "bidi", "nul"])
def test_what_is_being_made_is_told_without_orders_for_a_terminal(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A directory of data, a control file's or a scenario's own, may be called anything."""
    stream = io.StringIO()
    PlainProgress(Console(file=stream)).stage(f"corpus /home/{HOSTILE[name]}/data")
    say(f"unpacking {HOSTILE[name]}")
    told = stream.getvalue() + capsys.readouterr().err
    assert "corpus /home/" in told and "unpacking" in told and not OBEYED.search(told)


LONG = "x" * 5000


@pytest.mark.parametrize(
    "words",
    [
        ["run", f"{LONG}.toml"], ["run", "--control", LONG], ["run", "aging-ext4", "--corpus", LONG],
        ["disk", "import", LONG, "--filesystem", "ext4"], ["bisect", "--continue", LONG],
        ["disk", "import", "loop", "--filesystem", "ext4"], ["run", "--control", "loop"],
    ],
)  # fmt: skip
def test_a_name_that_no_file_can_have_is_refused_in_one_line(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    said = cli.err(*words)
    assert "Traceback" not in said and len(said) < 6000
    said = said[said.index("agelab: ") :]  # after what it says of processes that a killed agelab of another test left
    assert said.count("agelab: ") == 1


def test_a_version_of_thousands_of_digits_has_no_kernel() -> None:
    assert nearest("9" * 5000, {"6.1.0-50-amd64": "6.1.176-1"})
