"""Names of drives."""

from pathlib import Path

import pytest

from agelab.base.errors import InputError
from agelab.machine.disk import DriveSpec, parse, parse_list


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("model:wd-wd2500jb", DriveSpec("model", "wd-wd2500jb")),
        ("model:samsung-870-evo-500?begins=used", DriveSpec("model", "samsung-870-evo-500", begins="used")),
        (" file:/a/b.img ", DriveSpec("file", "/a/b.img", "none", "native")),
        ("file:/a?cache=writeback", DriveSpec("file", "/a", "writeback", "threads")),
        ("file:/a?aio=io_uring&cache=directsync", DriveSpec("file", "/a", "directsync", "io_uring")),
        ("block:/dev/disk/by-id/usb-A_B-0:0", DriveSpec("block", "/dev/disk/by-id/usb-A_B-0:0", "none", "native")),
        ("block:/home/me/my-disk", DriveSpec("block", "/home/me/my-disk", "none", "native")),
        ("block:/dev/sdb1?aio=threads", DriveSpec("block", "/dev/sdb1", "none", "threads")),
        ("pci:0000:01:00.0", DriveSpec("pci", "0000:01:00.0")),
        ("pci:0A:1f.2", DriveSpec("pci", "0000:0a:1f.2")),
    ],
)
def test_what_a_spec_means(text: str, spec: DriveSpec) -> None:
    assert parse(text) == spec
    assert parse(str(spec)) == spec
    assert spec.real is (spec.kind != "model")


def test_a_relative_path_is_made_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse("file:disk.img").name == str(tmp_path / "disk.img")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "for example block:"),
        ("blok:/dev/sdb", "did you mean block:/dev/sdb?"),
        ("/dev/sdb", "did you mean block:/dev/sdb?"),
        ("./disk.img", "did you mean file:./disk.img?"),
        ("01:00.0", "did you mean pci:01:00.0?"),
        ("model", "did you mean model:...?"),
        ("model:", "for example model:none"),
        ("model:a b", "for example model:none"),
        ("model:a?begins=old", "begins= is one of fresh, trimmed, used"),
        ("model:a?cache=none", "begins= is one of fresh, trimmed, used"),
        ("file:", "for example file:"),
        ("file:?cache=none", "for example file:"),
        ("file:/a\nb", "for example file:"),
        ("pci:01:00", "for example pci:0000:01:00.0"),
        ("pci:0000:01:20.0", "for example pci:0000:01:00.0"),
        ("pci:0000:01:00.8", "for example pci:0000:01:00.0"),
        ("file:/a?cash=none", "the options are cache= and aio="),
        ("file:/a?none", "the options are cache= and aio="),
        ("file:/a?cache=writebak", "did you mean cache=writeback?"),
        ("file:/a?aio=x", "aio is one of native, threads, io_uring"),
        ("file:/a?cache=none&cache=unsafe", "given twice"),
        ("file:/a?cache=writeback&aio=native", "take cache=none, or aio=threads"),
    ],
)
def test_anything_else_is_answered_with_the_nearest_valid_form(text: str, says: str) -> None:
    with pytest.raises(InputError) as raised:
        parse(text)
    assert says in f"{raised.value}; {raised.value.hint}"


def test_several_drives() -> None:
    assert [spec.name for spec in parse_list("model:a,block:/dev/sdb, file:/x")] == ["a", "/dev/sdb", "/x"]
    assert len(parse_list("model:a,model:a")) == 2
    with pytest.raises(InputError, match="named twice"):
        parse_list("block:/dev/sdb,block:/dev/sdb?cache=unsafe")
    with pytest.raises(InputError, match="no drive ''"):
        parse_list("block:/dev/sdb,")
