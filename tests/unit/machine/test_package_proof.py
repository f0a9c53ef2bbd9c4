"""Debian packages of a scenario: an image of its own, what the guest proves of them, and names that there are not."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agelab.base import places
from agelab.base.errors import InputError
from agelab.debian import Archive
from agelab.machine.image import proof, sealed_image
from agelab.machine.image import root as roots
from agelab.machine.image.packer import ProofFailed
from agelab.store.artefacts import Store
from tests.build.image_builder import FILESYSTEMS, kernel, store

__all__ = ["store"]


def test_packages_are_added_and_nothing_that_they_may_load_is_removed() -> None:
    plain = roots.definition()
    served = roots.served(plain, ())
    found = roots.own_definition(plain, ["fio", "mdadm"], served)
    assert found.packages == (*plain.packages, "fio")
    assert set(found.remove) < set(plain.remove) and "/etc/mdadm" in found.remove
    assert [path for path in found.remove if "/lib/x86_64" in path or path.startswith("/usr/bin")] == []
    asked = roots.question(found, served)
    assert "fio" in asked["packages"] and asked != roots.question(plain, served)


def test_without_packages_image_and_question_are_what_they_were(store: Store) -> None:
    plain = roots.definition()
    assert (
        roots.own_definition(plain, (), roots.served(plain, ())) is plain and proof.plan_package_proof((), {}) is None
    )
    one = kernel(store)
    image = sealed_image.build(one, store, FILESYSTEMS)
    assert set(image.artefact.manifest.inputs) == {"root", "kernel", "busybox", "template", "proof", "recipe"}
    own = sealed_image.build(one, store, FILESYSTEMS, packages=["fio"], programs={"fio": ("fio", "--version")})
    assert own.key != image.key and "packages_proof" in own.artefact.manifest.inputs
    other = sealed_image.build(one, store, FILESYSTEMS, packages=["fio"], programs={})
    assert other.key not in (own.key, image.key)


def test_a_package_that_there_is_not_is_told_with_the_nearest_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Archive, "update", lambda *_, **__: None)
    monkeypatch.setattr(Archive, "_apt", lambda *_: "fio\nfsmark\ndbench\ndbench-doc\n")
    archive = Archive(Store(tmp_path), "bookworm")
    archive.require(["fio", "dbench"])
    with pytest.raises(InputError, match=r"^mine\.toml: packages: Debian bookworm has no package 'nothere'$"):
        archive.require(["fio", "nothere"], {"nothere": "mine.toml: packages: "})
    with pytest.raises(InputError) as caught:
        archive.require(["fio", "dbensh", "zzz"])
    assert str(caught.value).splitlines() == [
        "Debian bookworm has no package 'dbensh'; did you mean dbench, dbench-doc?",
        "Debian bookworm has no package 'zzz'",
    ]
    assert "main section alone" in caught.value.hint
    with pytest.raises(InputError) as caught:
        Archive(Store(tmp_path), "trixie", ("contrib",)).require(["fi"])
    assert "main section and contrib" in caught.value.hint


def test_a_program_that_does_not_run_is_told_and_not_packers_log() -> None:
    load = proof.plan_package_proof(["fio"], {})
    why = "package fio: /usr/bin/fio lacks libz.so.1 => not found"
    said = f"packer build failed (exit 1):\n==> qemu.guest: agelab proof: {why}\nmore"
    with pytest.raises(InputError, match=f"^{re.escape(why)}$"), proof.told_by_packer(load):
        raise ProofFailed(said)
    with pytest.raises(ProofFailed, match="packer build failed"), proof.told_by_packer(None):
        raise ProofFailed(said)


# ---- the guest's side ----

STAND_IN = """
import json, pathlib
def main(plan, proof): proof.write_text(plan.read_text())
"""


def prove(tmp_path: Path, programs: dict[str, list[str]]) -> "subprocess.CompletedProcess[str]":
    """Run the prover as the guest does, in a directory that stands for the guest's."""
    text = proof.PROVER.read_text().replace('Path("/run/agelab")', f"Path({str(tmp_path)!r})")
    (tmp_path / "prove.py").write_text(text)
    (tmp_path / proof.FILESYSTEMS).write_text(STAND_IN)
    (tmp_path / "plan.json").write_text("the filesystems")
    (tmp_path / proof.PACKAGES_PLAN).write_text(json.dumps({"packages": ["coreutils"], "programs": programs}))
    argv = [sys.executable, str(tmp_path / "prove.py"), str(tmp_path / "plan.json"), str(tmp_path / "proof.json")]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_the_guest_runs_each_program_and_then_proves_the_filesystems(tmp_path: Path) -> None:
    done = prove(tmp_path, {"ls": ["ls", "--version"]})
    assert done.returncode == 0 and "ls: " in done.stdout
    assert (tmp_path / "proof.json").read_text() == "the filesystems"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["no-such"], "agelab proof: program x: no-such: exit 127: no-such is not in the image"),
        (["sh", "-c", "echo broken; exit 3"], "agelab proof: program x: sh -c echo broken; exit 3: exit 3"),
    ],
)
def test_a_program_that_fails_ends_the_proof(tmp_path: Path, argv: list[str], said: str) -> None:
    done = prove(tmp_path, {"x": argv})
    assert done.returncode == 1 and said in done.stdout
    assert not (tmp_path / "proof.json").exists()


def test_the_provers_files_are_those_that_the_guest_gets() -> None:
    load = proof.plan_package_proof(["fio"], {"fio": ("fio", "--version")})
    assert load is not None
    assert load.files()[proof.FILESYSTEMS] == (places.PACKER / "prove.py").read_bytes()
