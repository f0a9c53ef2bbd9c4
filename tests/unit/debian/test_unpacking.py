"""Packages and source archives that are small, and would fill the disk."""

import io
import lzma
import subprocess
import tarfile
from pathlib import Path

import pytest

from agelab.base import fileio
from agelab.base.errors import HostError, InputError
from agelab.debian import unpacking
from agelab.kernel import deb_files, elf
from tests.build import kernel_builder

MIB = 1 << 20


def tar(*members: tuple[str, int]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, size in members:
            entry = tarfile.TarInfo(name)
            entry.size = size
            archive.addfile(entry, io.BytesIO(bytes(size)))
    return made.getvalue()


def sparse(directory: Path) -> bytes:
    """A file of 1 TB without any content."""
    with (directory / "empty").open("wb") as file:
        file.truncate(1 << 40)
    subprocess.run(["tar", "-C", directory, "--sparse", "-cf", directory / "tar", "./empty"], check=True)
    return (directory / "tar").read_bytes()


def package(path: Path, data: bytes) -> Path:
    parts = {"debian-binary": b"2.0\n", "control.tar": tar(("./control", 10)), "data.tar.xz": lzma.compress(data)}
    whole = b"!<arch>\n"
    for name, content in parts.items():
        whole += f"{name:16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode() + content
        whole += b"\n" * (len(content) % 2)
    path.write_bytes(whole)
    return path


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "PACKAGE_BYTES", 4 * MIB)
    monkeypatch.setattr(unpacking, "SOURCE_BYTES", 4 * MIB)
    monkeypatch.setattr(unpacking, "MOST_NAMES", 100)


BOMBS = {
    "one file": (tar(("./zeros", 64 * MIB)), "0.00390625 GiB"),
    "many bytes": (tar(*((f"./{number}", MIB) for number in range(64))), "0.00390625 GiB"),
    "many files": (tar(*((f"./{number}", 0) for number in range(1000))), "100 files and directories"),
    "deep": (tar((f"./{'a/' * 300}b", 0)), "100 files and directories"),
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_package_is_refused_before_it_fills_the_disk(tmp_path: Path, bomb: str) -> None:
    data, most = BOMBS[bomb]
    deb = package(tmp_path / "a.deb", data)
    assert deb.stat().st_size < MIB
    with pytest.raises(InputError, match=rf"a\.deb is too large: it unpacks to more than {most}"):
        unpacking.unpack(deb, tmp_path / "out")
    made = list((tmp_path / "out").rglob("*"))
    assert sum(path.stat().st_size for path in made if path.is_file()) <= 4 * MIB and len(made) < 1000


@pytest.mark.usefixtures("small")
def test_a_sparse_file_counts_as_large_as_it_is(tmp_path: Path) -> None:
    deb = package(tmp_path / "a.deb", sparse(tmp_path))
    with pytest.raises(InputError, match="unpacks to more than"):
        unpacking.unpack(deb, tmp_path / "out")


@pytest.mark.usefixtures("small")
def test_what_is_small_enough_is_unpacked(tmp_path: Path) -> None:
    deb = package(tmp_path / "a.deb", tar(("./a/b", 3 * MIB), *((f"./c/{number}", 9) for number in range(90))))
    unpacking.unpack(deb, tmp_path / "out")
    assert (tmp_path / "out/a/b").stat().st_size == 3 * MIB and len(list((tmp_path / "out/c").iterdir())) == 90


@pytest.mark.usefixtures("small")
def test_a_source_archive_has_the_same_limits(tmp_path: Path) -> None:
    archive = tmp_path / "linux.tar.xz"
    archive.write_bytes(lzma.compress(tar(("linux/fs/Kconfig", 5))))
    unpacking.unpack_source(archive, tmp_path / "out")
    assert (tmp_path / "out/fs/Kconfig").stat().st_size == 5
    archive.write_bytes(lzma.compress(tar(("linux/zeros", 64 * MIB))))
    with pytest.raises(InputError, match=r"linux\.tar\.xz is too large"):
        unpacking.unpack_source(archive, tmp_path / "other")


@pytest.mark.parametrize("data", [b"no tar" * 1000, tar(("./a", 3 * MIB))[: 2 * MIB]])
def test_a_damaged_package_is_another_error(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(HostError):
        unpacking.unpack(package(tmp_path / "a.deb", data), tmp_path / "out")


def test_modules_are_weighed_before_they_are_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deb_files, "PACKAGE_BYTES", 4 * MIB)
    monkeypatch.setattr(deb_files, "_MAX_ARGUMENTS", 2)
    for number, size in enumerate((1, 1, 1, 3)):
        plain = tmp_path / f"{number}.ko"
        plain.write_bytes(bytes(size * MIB))
        subprocess.run(["zstd", "-q", "--rm", plain], check=True)
    with pytest.raises(InputError, match="unpacks to more than"):
        deb_files._decompress(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.ko", "1.ko", "2.ko.zst", "3.ko.zst"]
    (tmp_path / "3.ko.zst").unlink()
    deb_files._decompress(tmp_path)
    assert (tmp_path / "2.ko").stat().st_size == MIB


def test_a_packed_module_that_is_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fileio, "PROGRAM", 8 * MIB)
    path = tmp_path / "a.ko.xz"
    path.write_bytes(lzma.compress(bytes(64 * MIB)))
    with pytest.raises(HostError, match="more than 8 MiB"):
        elf.read_module(path, "modules/a.ko.xz")


def test_a_kernel_that_is_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is used as it is: the guest unpacks it, or does not boot."""
    monkeypatch.setattr(fileio, "PROGRAM", 1 * MIB)
    image = b"\x7fELF\x02" + bytes(4 * MIB)
    zstd = subprocess.run(["zstd", "-qc"], input=image, capture_output=True, check=True).stdout
    for packed in (zstd + bytes(4), lzma.compress(image), kernel_builder.gzip(image)):
        assert elf.unpack(kernel_builder.bzimage(packed)) is None
