"""Bits that are changed in a real store and in real runs, and what the next command makes of it."""

import json
import random
from pathlib import Path

import pytest

from agelab.base import process
from agelab.cli.options import open_store
from agelab.results import own
from agelab.store import known_intact
from agelab.store.artefacts import MANIFEST, Store
from tests.vm.cells import agelab, scenario, step, store_of_parts

pytestmark = [pytest.mark.vm, pytest.mark.full]
OF_A_CAPSULE = ("made-of.json", "profiles.json", "scenario.toml")
"""Files of a run that a capsule alone is made of."""
KINDS = ("image", "kernel", "corpus", "qemu")


def flip(path: Path, seed: int) -> None:
    """Change one bit, somewhere."""
    chosen = random.Random(seed)
    with path.open("r+b") as file:
        at = chosen.randrange(path.stat().st_size)
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << chosen.randrange(8)]))


def test_a_bit_in_what_a_cell_is_made_of_or_in_its_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each artefact is named and made again, to the same digest; each file of the run is named, and no verb goes on."""
    real, home = open_store(), tmp_path / "home"
    (home / "store").mkdir(parents=True)
    for kind in ("kernel", "root", "buildroot", "tools", "drive", "qemu"):
        process.run(["cp", "-a", "--reflink=auto", str(real.root / kind), str(home / "store")])
    (home / "cache").symlink_to(real.home / "cache")
    monkeypatch.setenv("AGELAB_HOME", str(home))
    path = scenario(tmp_path, step("copy", 'cp -r "$SOURCE/." .', "sync = true"))
    words = ("run", str(path))
    assert agelab(*words).returncode == 0
    before = json.loads(agelab("show", "--json").stdout)["cells"][0]
    used = {kind: Store(home).all(kind) for kind in KINDS}
    for seed, kind in enumerate(KINDS):
        for artefact in used[kind]:
            sized = sorted(name for name in artefact.manifest.files if (artefact / name).stat().st_size)
            flip(artefact / (MANIFEST if kind == "corpus" else random.Random(seed).choice(sized)), seed)
    again = agelab(*words)
    assert again.returncode == 0 and "Traceback" not in again.stderr, again.stderr
    after = json.loads(agelab("show", "--json").stdout)["cells"][0]
    assert (after["inputs_key"], after["digest"]) == (before["inputs_key"], before["digest"])
    for kind in ("image", "corpus", "qemu"):
        assert f"store/{kind}/" in again.stderr, again.stderr
    assert again.stderr.count("it is made again") >= 4
    [run, *_] = sorted((home / "runs").iterdir())
    for file in sorted([*run.rglob("*.json*"), *run.glob("*.toml")]):
        if "events" in file.name:
            continue  # what the guest said: its samples are in samples.jsonl
        content = file.read_bytes()
        flip(file, 1)
        if file.suffix == own.ENDING:  # then it is a run that this store did not make: shown, and no answer
            assert not own.is_own(file.with_suffix(""), home)
            assert agelab("show", run.name).returncode == 0
            file.write_bytes(content)
            continue
        used_by = ("capsule", "pack") if file.name in OF_A_CAPSULE else ("show",)
        refused = agelab(*used_by, run.name, cwd=tmp_path)
        assert refused.returncode == 2 and run.name in refused.stderr and "Traceback" not in refused.stderr, file
        file.write_bytes(content)
    assert agelab("show", run.name).returncode == 0


def test_a_bit_below_the_filesystem_gets_into_no_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was intact a minute ago is read again by whoever starts a guest; then it is made anew."""
    home = store_of_parts(tmp_path / "home")
    corpora, path = (home / "store/corpus", scenario(tmp_path, step("copy", 'cp -r "$SOURCE/." .', "sync = true")))
    corpora.unlink()
    monkeypatch.setenv("AGELAB_HOME", str(home))
    monkeypatch.setattr(known_intact, "SETTLED", 0)
    assert agelab("run", str(path)).returncode == 0
    [before] = json.loads(agelab("show", "--json").stdout)["cells"]
    [corpus] = Store(home).all("corpus")
    image = corpus / "corpus.iso"
    content = bytearray(image.read_bytes())
    content[len(content) // 2] ^= 1
    image.write_bytes(content)
    record = home / f"cache/intact/corpus-{corpus.key}.json"
    said = {
        "boot": known_intact._boot(),
        "at": known_intact._now(),
        "state": known_intact.FileState.of(corpus.directory).hash,
    }
    record.write_text(json.dumps(said))  # the filesystem has seen no write
    refused = agelab("run", str(path))
    assert refused.returncode == 3 and "corpus.iso has changed" in refused.stderr, refused.stderr
    assert "Traceback" not in refused.stderr and not json.loads(agelab("show", "--json").stdout)["cells"][0]["digest"]
    assert agelab("run", str(path)).returncode == 0
    [after] = json.loads(agelab("show", "--json").stdout)["cells"]
    assert (after["inputs_key"], after["digest"]) == (before["inputs_key"], before["digest"])
