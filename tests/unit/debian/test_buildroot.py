"""Build roots: their parts, and programs that run in them; no compiler, no network."""

import os
from pathlib import Path

import pytest

from agelab.base import process
from agelab.base.errors import AgelabError, HostError
from agelab.debian import buildroot
from agelab.debian.buildroot import BuildFailed
from agelab.store.artefacts import Store

UNUSED = (
    "share", "bin/*lto-dump*", "lib/gcc/*/*/lto1", "lib/gcc/*/*/*.a", "src/*/arch/[!x]*",
    "src/*/include/config/[A-Z]*",
)  # fmt: skip


def unpacked(root: Path, mask: int) -> Path:
    """Unpack packages of a suite without a merged /usr, under this umask."""
    before = os.umask(mask)
    try:
        for path in (
            "bin/sh",
            "lib/x86_64-linux-gnu/libc.so.6",
            "lib64/ld.so",
            "usr/bin/mawk",
            "usr/bin/x86_64-linux-gnu-lto-dump-12",
            "usr/lib/gcc/x86_64-linux-gnu/12/cc1",
            "usr/lib/gcc/x86_64-linux-gnu/12/lto1",
            "usr/lib/gcc/x86_64-linux-gnu/12/libgcc.a",
            "usr/lib/gcc/x86_64-linux-gnu/12/include/stdarg.h",
            "usr/share/doc/copyright",
            "usr/src/linux-headers-6.1-common/arch/arm/Makefile",
            "usr/src/linux-headers-6.1-common/arch/x86/Makefile",
            "usr/src/linux-headers-6.1-amd64/include/config/auto.conf",
            "usr/src/linux-headers-6.1-amd64/include/config/MD",
            "var/lib/apt",
            "etc/passwd",
        ):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(path)
            (root / path).chmod(0o777 & ~mask)
    finally:
        os.umask(before)
    return root


def test_a_tidied_root_has_one_usr_and_nothing_unused(tmp_path: Path) -> None:
    root = unpacked(tmp_path / "root", 0o022)
    buildroot.finish_root(root, UNUSED)
    assert {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()} == {
        "usr/bin/sh",
        "usr/bin/awk",
        "usr/bin/mawk",
        "usr/lib/x86_64-linux-gnu/libc.so.6",
        "usr/lib64/ld.so",
        "usr/lib/gcc/x86_64-linux-gnu/12/cc1",
        "usr/lib/gcc/x86_64-linux-gnu/12/include/stdarg.h",
        "usr/src/linux-headers-6.1-common/arch/x86/Makefile",
        "usr/src/linux-headers-6.1-amd64/include/config/auto.conf",
    }
    assert (root / "lib").readlink() == Path("usr/lib")
    assert (root / "bin/sh").read_text() == "bin/sh"
    assert {path.name for path in root.iterdir()} == {*("usr", "bin", "lib", "lib64"), *("build", "dev", "proc", "tmp")}


def test_a_root_is_the_same_bytes_whoever_unpacked_it(tmp_path: Path) -> None:
    tars = []
    for number, mask in enumerate((0o022, 0o077)):
        root = unpacked(tmp_path / str(number), mask)
        buildroot.finish_root(root, UNUSED)
        buildroot.write_tar(root, tmp_path / f"{number}.tar")
        tars.append((tmp_path / f"{number}.tar").read_bytes())
    assert tars[0] == tars[1]


def test_a_root_without_an_awk_gets_none(tmp_path: Path) -> None:
    root = unpacked(tmp_path / "root", 0o022)
    (root / "usr/bin/mawk").unlink()
    buildroot.finish_root(root, ())
    assert not (root / "usr/bin/awk").is_symlink()


def shop(tmp_path: Path, files: list[Path]) -> tuple[Path, list[Path]]:
    """A root's tar and these files, ready for a workshop below ``made``."""
    root = unpacked(tmp_path / "root", 0o022)
    buildroot.write_tar(root, tmp_path / "root.tar")
    (tmp_path / "made").mkdir()
    return tmp_path / "root.tar", files


def test_a_workshop_has_the_root_and_the_files_and_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "a.c"
    source.write_text("text")
    tar, files = shop(tmp_path, [source])
    with buildroot.open_workshop(tar, files, tmp_path / "made", "a test") as opened:
        assert (opened.root / "usr/bin/mawk").read_text() == "usr/bin/mawk"
        assert (opened.build / "a.c").read_text() == "text"
    assert list((tmp_path / "made").iterdir()) == []


def test_a_root_that_is_kept_is_unpacked_once_and_whole(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = unpacked(tmp_path / "root", 0o022)
    made = store.obtain("buildroot", {}, lambda directory: buildroot.write_tar(tree, directory / buildroot.ROOT_TAR))
    left = store.cache("buildroots") / f"{made.key}.partial"
    (left / "usr").mkdir(parents=True)  # by one that was killed
    root = buildroot.unpacked_root(made, store)
    assert (root / "usr/bin/mawk").read_text() == "usr/bin/mawk" and not left.exists()
    monkeypatch.setattr(process, "run", None)
    assert buildroot.unpacked_root(made, store) == root


def test_a_program_gets_nothing_of_the_host_but_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def run(argv: list[str], log: Path) -> process.Completed:
        seen.extend(argv)
        return process.Completed(0, "", "said")

    tar, files = shop(tmp_path, [])
    with buildroot.open_workshop(tar, files, tmp_path / "made", "a test") as opened:
        monkeypatch.setattr(process, "run", run)
        assert opened.run(["cc", "a.c"]) == "said"
    assert seen[0] == "bwrap" and seen[-2:] == ["cc", "a.c"]
    assert {"--unshare-all", "--new-session", "--clearenv", "--ro-bind"} <= set(seen)
    bound = seen.index("--bind")
    assert seen[bound + 1 : bound + 3] == [str(opened.build), "/build"] and seen.count("--bind") == 1


def test_a_program_that_fails_on_a_full_disk_without_a_word_is_no_fault_of_the_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(argv: list[str], log: Path) -> process.Completed:
        raise process.ProcessFailed(argv, 1, "")  # strip(1) on a disk that fills while it writes

    tar, files = shop(tmp_path, [])
    with buildroot.open_workshop(tar, files, tmp_path / "made", "a test") as opened:
        monkeypatch.setattr(process, "run", run)
        monkeypatch.setattr(buildroot, "is_disk_full", lambda directory: directory == opened.build)
        with pytest.raises(HostError, match="on this host as it is: No space left on device"):
            opened.run(["strip", "a.ko"])


@pytest.mark.parametrize(
    "text, kind, said",
    [
        ("a.c:1: error: oops", BuildFailed, r"a test does not build \(cc, exit 1\):\na\.c:1"),
        ("  CC a.o\na.c: In f:\na.c:1: error: oops\n  1 | x", BuildFailed, r"exit 1\):\na\.c:1: error"),
        ("bwrap: execvp cc: No such file or directory", BuildFailed, "does not build"),
        ("ld: final link failed: No space left on device", HostError, "on this host as it is: ld: final"),
        ("gcc: fatal error: Killed signal terminated program cc1", HostError, "on this host as it is: gcc"),
        ("Killed\nmake[2]: *** [Makefile:1158: vmlinux] Error 137", HostError, "as it is: make"),
        ("make[2]: *** [scripts/Makefile.build:250: fs/a.o] Killed", HostError, "as it is: make"),
        ("collect2: fatal error: ld terminated with signal 9 [Killed]", HostError, "as it is: collect2"),
        ("bwrap: setting up uid map: Permission denied", HostError, "bwrap cannot confine"),
    ],
    ids=[
        "error", "error first", "no program", "disk full", "no memory", "no memory to link",
        "no memory in make", "ld killed", "bwrap",
    ],
)  # fmt: skip
def test_what_goes_wrong_in_a_workshop_says_whose_fault_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, kind: type[AgelabError], said: str
) -> None:
    def run(argv: list[str], log: Path) -> process.Completed:
        raise process.ProcessFailed(argv, 1, text)

    tar, files = shop(tmp_path, [])
    with buildroot.open_workshop(tar, files, tmp_path / "made", "a test") as opened:
        monkeypatch.setattr(process, "run", run)
        with pytest.raises(AgelabError, match=said) as raised:
            opened.run(["cc"])
    assert type(raised.value) is kind
