"""Packages that somebody has made to do harm."""

import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from agelab.base.errors import HostError, InputError
from agelab.kernel import deb_files
from agelab.kernel.deb_files import resolve
from agelab.store.artefacts import Store
from tests.build.deb_builder import CONTROL, hostile
from tests.build.kernel_builder import RELEASE, linux, module

LINKED = f"./boot/vmlinuz-{RELEASE}"


@pytest.mark.parametrize(
    "members",
    [
        [("../evil", tarfile.REGTYPE, "")],
        [("/evil", tarfile.REGTYPE, "")],
        [("./d", tarfile.SYMTYPE, "{outside}"), ("./d/evil", tarfile.REGTYPE, "")],
        [("./d", tarfile.SYMTYPE, "../../../../.."), ("./d/evil", tarfile.REGTYPE, "")],
        [("./boot", tarfile.DIRTYPE, ""), (LINKED, tarfile.SYMTYPE, "{outside}/secret")],
        [("./boot", tarfile.DIRTYPE, ""), (LINKED, tarfile.LNKTYPE, "{outside}/secret")],
        [("./boot", tarfile.DIRTYPE, ""), (LINKED, tarfile.CHRTYPE, "")],
        [("./pipe", tarfile.FIFOTYPE, "")],
    ],
)
def test_a_hostile_package_reaches_nothing_outside(tmp_path: Path, members: list[tuple[str, bytes, str]]) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    told = [(name, kind, link.format(outside=outside)) for name, kind, link in members]
    file = hostile(tmp_path / "evil.deb", *told)
    before = set(tmp_path.rglob("*")) | set(Path("/").iterdir())
    with pytest.raises((InputError, HostError)) as raised:
        resolve(str(file), Store(tmp_path / "home"))
    assert "no file" not in str(raised.value)  # it was read
    after = {path for path in tmp_path.rglob("*") if tmp_path / "home" not in (path, *path.parents)}
    assert after | set(Path("/").iterdir()) <= before
    assert not [path for path in (tmp_path / "home").rglob("*") if path.is_symlink() or path.name == "evil"]


def test_links_that_lead_out_of_a_package_go_and_others_stay(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "lib").mkdir(parents=True)
    (tree / "lib" / "file").touch()
    links = {"in": "lib/file", "up": "../..", "headers": "/usr/src/linux-headers", "lib/up": "../lib"}
    for name, target in links.items():
        (tree / name).symlink_to(target)
    deb_files.reject_escapes(tree)
    assert {name for name in links if (tree / name).is_symlink()} == {"in", "lib/up"}
    os.mkfifo(tree / "pipe")
    with pytest.raises(deb_files.NotAKernel, match="pipe is neither"):
        deb_files.reject_escapes(tree)


@pytest.mark.parametrize("what", ["config", "vmlinuz", "modules.builtin", "kernel/fs/secret.ko"])
def test_a_link_within_a_package_leads_nowhere_else_once_it_is_moved(tmp_path: Path, what: str) -> None:
    """Within the package it leads to a file of the package; from the store it would to one of the host."""
    (tmp_path / "secret").write_bytes(b"secret")
    place, whole = "d/e/f/g", linux()
    files = {f"boot/{name}": whole[f"boot/{name}-{RELEASE}"] for name in ("vmlinuz", "config")}
    files = {f"{place}/{name.removeprefix('boot/')}": data for name, data in files.items()}
    files |= {f"{place}/{name.partition(f'{RELEASE}/')[2]}": data for name, data in whole.items() if "lib/" in name}
    files[f"{place}/kernel/fs/secret.ko"] = module()
    file = tmp_path / "tree" / place / what
    for name, data in files.items():
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_bytes(data)
    file.rename(tmp_path / "tree" / "secret")
    # As many directories up as there are from the kernel in the store to the directory of the secret.
    file.symlink_to("../" * len(f"{place}/{what}".split("/")[:-1]) + "secret")
    (tmp_path / "tree" / "lib" / "modules").mkdir(parents=True)
    (tmp_path / "tree" / "lib" / "modules" / RELEASE).symlink_to(f"../../{place}")
    (tmp_path / "tree" / "DEBIAN").mkdir()
    (tmp_path / "tree" / "DEBIAN" / "control").write_bytes(CONTROL)
    deb = tmp_path / "evil.deb"
    subprocess.run(["dpkg-deb", "--build", tmp_path / "tree", deb], check=True, stdout=subprocess.DEVNULL)
    made = resolve(str(deb), Store(tmp_path / "home"))
    assert not [path for path in made.directory.rglob("*") if path.is_symlink()]
    assert not [path for path in made.directory.rglob("*") if path.is_file() and path.read_bytes() == b"secret"]


def test_a_part_of_a_kernel_that_is_a_link_to_another_is_one_clear_error(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "kernel").mkdir(parents=True)
    (tree / "kernel" / "one.ko").write_bytes(module())
    (tree / "kernel" / "two.ko").symlink_to("one.ko")
    (tree / "modules.builtin").symlink_to("kernel/gone")
    with pytest.raises(HostError, match=r"modules\.builtin is a link to another part of it"):
        deb_files.prune_modules(tree, tmp_path)
