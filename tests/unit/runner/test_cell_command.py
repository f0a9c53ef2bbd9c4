"""The command of a cell's guest, as its key has it: the same for all cells, wherever their directories are."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agelab.runner.execute import guests
from agelab.runner.execute.guests import GuestLauncher
from agelab.runner.plan.guest_plan import Boot

XML = "<domain><name>{name}</name> {cell}/plan {cell}/fork-aged/disk-0 {cell}/aged-empty /store/image/root </domain>"


class Libvirt:
    """Answers with the words of the domain."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def command_line(self, xml: str) -> list[str]:
        self.asked.append(xml)
        return ["/store/qemu/start", "-name", "guest=it", *xml.split()[1:-1]]


def command(directory: Path, libvirt: Libvirt, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command of a cell in that directory, whose guest has a name of its own."""
    guest = SimpleNamespace(name=f"agelab-{directory.name}")
    xml = XML.format(name=guest.name, cell=directory)
    for name, value in {
        "guest": lambda self, boot: guest, "_layout": lambda self, boot: None, "_real_drives": lambda self: (),
        "_domain_xml": lambda self, guest: xml, "_plan": lambda self, boot: {}, "_archive": lambda self, boot: b"",
    }.items():  # fmt: skip
        monkeypatch.setattr(GuestLauncher, name, value)
    image = SimpleNamespace(artefact=SimpleNamespace(directory=Path("/store/image")))
    corpus = SimpleNamespace(image=Path("/store/corpus/corpus.iso"))
    qemu = SimpleNamespace(artefact=SimpleNamespace(directory=Path("/store/qemu")))
    shared = SimpleNamespace(
        image=image, hypervisor=libvirt, emulator=qemu, schedule=None, are_saved=False, initramfs_sha256=""
    )
    parts: Any = (None, corpus, shared, None, {})
    launcher = GuestLauncher(directory, *parts)
    found = launcher.inputs(cast(Boot, SimpleNamespace(name="aged-")), {"fork-aged": directory / "fork-aged"})
    return list(found["command"])


def test_cells_in_other_directories_have_one_command_for_which_libvirt_is_asked_in_the_same_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    libvirt = Libvirt()
    one = command(Path("/home/a/runs/1/cells/0"), libvirt, monkeypatch)
    other = command(Path("/mnt/b/runs/2/cells/17"), libvirt, monkeypatch)
    assert one == other == ["{qemu}/start", "{cell}/plan", "{fork-aged}/disk-0", "{cell}/empty", "{image}/root"]
    assert libvirt.asked[0] == libvirt.asked[1]
    assert str(guests.ANY_CELL) in libvirt.asked[0] and "/home/a" not in libvirt.asked[0]
