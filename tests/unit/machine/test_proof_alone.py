"""Each filesystem's proof begins with what the guest had, and what it leaves is its own failure (packer/prove.py)."""

import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from packer import prove


@pytest.fixture
def guest(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A guest of mounts, processes and modules that are lists."""
    state = SimpleNamespace(mounts={"/"}, processes={1: "/sbin/init"}, modules=["overlay"], stuck=set())
    state.modules = ["overlay"]

    def run(argv: list[str]) -> None:
        if argv[0] == "insmod":
            state.modules.insert(0, Path(argv[1]).stem)
        elif argv[0] == "rmmod":
            if argv[1] in state.stuck:
                raise prove.Failed(f"rmmod {argv[1]}: in use")
            state.modules.remove(argv[1])

    def ended(process: int, _: int) -> None:
        del state.processes[process]

    monkeypatch.setattr(prove, "run", run)
    monkeypatch.setattr(prove, "PATIENCE", 0.0)
    monkeypatch.setattr(prove, "mounts", lambda: set(state.mounts))
    monkeypatch.setattr(prove, "processes", lambda: dict(state.processes))
    monkeypatch.setattr(prove, "inserted", lambda: list(state.modules))
    monkeypatch.setattr(os, "kill", ended)
    monkeypatch.setattr(subprocess, "run", lambda argv, **_: state.mounts.discard(argv[-1]))
    return state


def test_the_modules_of_a_filesystem_are_there_for_its_proof_alone(guest: SimpleNamespace) -> None:
    with prove.alone([("crc32c_generic", False), ("mine", False)]):
        assert guest.modules == ["mine", "crc32c_generic", "overlay"]
    assert guest.modules == ["overlay"]


@pytest.mark.parametrize(
    ("kind", "what", "said"),
    [
        ("mounts", "/run/proof", "it leaves behind: /run/proof mounted"),
        ("processes", (7, "/sbin/mined"), "it leaves behind: /sbin/mined running"),
        ("stuck", "mine", "it leaves behind: module mine: rmmod mine: in use"),
    ],
)
def test_what_a_filesystem_leaves_is_named_and_taken_away(
    guest: SimpleNamespace, kind: str, what: Any, said: str
) -> None:
    with pytest.raises(prove.Failed, match=f"^{said}$"), prove.alone([("mine", False)]):
        if kind == "processes":
            guest.processes[what[0]] = what[1]
        else:
            getattr(guest, kind).add(what)
    assert guest.mounts == {"/"} and guest.processes == {1: "/sbin/init"}


def test_the_first_failure_is_the_reason(guest: SimpleNamespace) -> None:
    with pytest.raises(prove.Failed, match=r"^mkfs: exit 1$"), prove.alone([("mine", False)]):
        guest.mounts.add("/run/proof")
        raise prove.Failed("mkfs: exit 1")
    assert guest.mounts == {"/"} and guest.modules == ["overlay"]


def test_the_proof_of_the_next_one_does_not_fail_for_it(
    guest: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def proof(item: dict[str, Any], _: Path) -> None:
        if item["filesystem"] == "first":
            guest.processes[9] = "/sbin/firstd"

    monkeypatch.setattr(prove, "prove", proof)
    monkeypatch.setattr(prove, "MOUNTPOINT", tmp_path / "proof")
    items: list[dict[str, object]] = [
        {"filesystem": name, "defaults": "today", "modules": []} for name in ("first", "second")
    ]
    (tmp_path / "plan").write_text(json.dumps({"device": "/dev/null", "items": items}))
    prove.main(tmp_path / "plan", tmp_path / "proof.json")
    told = {one["filesystem"]: one["reason"] for one in json.loads((tmp_path / "proof.json").read_text())}
    assert told == {"first": "it leaves behind: /sbin/firstd running", "second": None}
