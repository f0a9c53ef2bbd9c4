"""What virt-install prints is remembered while its packages stay as they are, and no longer."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agelab.machine.vm import domain


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    status = tmp_path / "status"
    status.write_text("Package: virtinst\n")
    monkeypatch.setattr(domain, "PACKAGES", status)
    return status


@pytest.fixture
def asked(tmp_path: Path, packages: Path) -> Callable[[], int]:
    """A call by an agelab that has just begun: how often the program has run by then."""
    kept, runs = tmp_path / "kept", tmp_path / "runs"
    kept.mkdir()
    command = ("sh", "-c", f"echo >> {runs}; echo '<domain>ü</domain>'")

    def ask() -> int:
        domain.printed.cache_clear()
        assert domain.printed(command, kept) == "<domain>ü</domain>\n"
        return runs.read_text().count("\n")

    return ask


def test_it_is_asked_once(asked: Callable[[], int]) -> None:
    assert (asked(), asked(), asked()) == (1, 1, 1)


def test_other_words_are_another_question(asked: Callable[[], int], tmp_path: Path) -> None:
    asked()
    assert domain.printed(("echo", "other"), tmp_path / "kept") == "other\n"
    assert len(list((tmp_path / "kept").iterdir())) == 2


def change_packages(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages.write_text("Package: virtinst\nVersion: 2\n")


def tell_it_of_another_qemu(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in domain.CAPABILITIES:
        packages.with_name(name).write_text("another")
    monkeypatch.setattr(domain, "HERE", packages.parent)


def damage(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [file] = packages.with_name("kept").iterdir()
    file.write_text(file.read_text().replace("domain>", "domain >"))


def make_no_text_of_it(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [file] = packages.with_name("kept").iterdir()
    file.write_bytes(b"\xff")


def put_a_directory_there(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [file] = packages.with_name("kept").iterdir()
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    "happens",
    [change_packages, tell_it_of_another_qemu, damage, make_no_text_of_it, put_a_directory_there],
    ids=lambda one: str(one.__name__),
)
def test_it_is_asked_again_when_packages_or_what_is_kept_has_changed(
    asked: Callable[[], int],
    packages: Path,
    monkeypatch: pytest.MonkeyPatch,
    happens: Callable[[Path, pytest.MonkeyPatch], None],
) -> None:
    assert (asked(), asked()) == (1, 1)
    happens(packages, monkeypatch)
    assert asked() == 2


def test_where_nobody_can_tell_whether_packages_change_nothing_is_kept(
    asked: Callable[[], int], packages: Path, tmp_path: Path
) -> None:
    packages.unlink()
    assert (asked(), asked()) == (1, 2)
    assert not list((tmp_path / "kept").iterdir())
