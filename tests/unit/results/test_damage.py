"""Damage: whatever bit is changed in the store or in a run, whoever uses it next is told, and never goes on with it."""

import gzip
import hashlib
import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from agelab.base.errors import InputError
from agelab.results import run_directory, run_lookup
from agelab.results.key_and_digest import digest
from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from agelab.store.artefacts import MANIFEST, Artefact, DamagedArtefact, Store
from tests.build import run_builder
from tests.build.cli import Cli

INPUTS = {"suite": "bookworm", "numbers": [1, 2.5], "name": "é"}
FLIPS = 16
"""Bits that are changed in each file, one at a time."""


def fill(directory: Path) -> None:
    (directory / "modules").mkdir()
    (directory / "modules" / "ext4.ko").write_bytes(random.Random(1).randbytes(5000))
    (directory / "vmlinuz").write_bytes(bytes(70_000))
    (directory / "config").write_text("CONFIG_EXT4_FS=m\n")


def flipped(path: Path, bit: int) -> bytes:
    """Change one bit of a file; what it held before."""
    before = path.read_bytes()
    after = bytearray(before)
    after[bit // 8] ^= 1 << bit % 8
    path.write_bytes(bytes(after))
    return before


def bits(path: Path) -> list[int]:
    """Some of a file's, and its first and last; the same each time."""
    size = 8 * path.stat().st_size
    return [0, size - 1, *random.Random(path.name).sample(range(size), min(FLIPS, size))]


@pytest.fixture
def kernel(tmp_path: Path) -> Artefact:
    return Store(tmp_path / "home").obtain("kernel", INPUTS, fill)


def used(home: Path) -> tuple[Artefact, list[str]]:
    """The artefact as a new process uses it, and what that process says."""
    said: list[str] = []
    return Store(home, said.append).obtain("kernel", INPUTS, fill), said


@pytest.mark.parametrize("name", ["modules/ext4.ko", "vmlinuz", "config", MANIFEST])
def test_a_flipped_bit_in_the_store_is_named_and_the_thing_made_again(
    kernel: Artefact, tmp_path: Path, name: str
) -> None:
    sound = kernel.manifest
    for bit in bits(kernel / name):
        flipped(kernel / name, bit)
        again, said = used(tmp_path / "home")
        # What a manifest says of another file is then what that file is not.
        assert len(said) == 1 and (name in said[0] or name == MANIFEST) and said[0].endswith("it is made again"), (
            bit,
            said,
        )
        assert again.manifest == sound and not again.damage()
    assert used(tmp_path / "home")[1] == []


def cut(artefact: Artefact) -> str:
    (artefact / "vmlinuz").write_bytes(bytes(69_999))
    return "vmlinuz has changed"


def lost(artefact: Artefact) -> str:
    (artefact / "config").unlink()
    return "config is missing"


def added(artefact: Artefact) -> str:
    (artefact / "modules" / "other.ko").touch()
    return "other.ko does not belong there"


def link(artefact: Artefact) -> str:
    (artefact / "config").rename(artefact.directory.parent / "config")
    (artefact / "config").symlink_to("../config")
    return "config has changed"


def moved(artefact: Artefact) -> str:
    """The manifest of another artefact, whole: its inputs do not give this key."""
    text = (artefact / MANIFEST).read_text()
    (artefact / MANIFEST).write_text(text.replace("bookworm", "trixie"))
    return f"{MANIFEST} is damaged"


@pytest.mark.parametrize("harm", [cut, lost, added, link, moved])
def test_other_damage_in_the_store_is_named_too(
    kernel: Artefact, tmp_path: Path, harm: Callable[[Artefact], str]
) -> None:
    wanted = harm(kernel)
    again, said = used(tmp_path / "home")
    assert len(said) == 1 and wanted in said[0]
    assert not again.damage()


def test_what_cannot_be_made_again_is_kept_and_refused(kernel: Artefact, tmp_path: Path) -> None:
    flipped(kernel / "vmlinuz", 5)

    def gone(directory: Path) -> None:
        raise InputError("the mirror has it no more")

    for _ in range(2):
        said: list[str] = []
        with pytest.raises(InputError, match="the mirror"):
            Store(tmp_path / "home", said.append).obtain("kernel", INPUTS, gone)
        assert "vmlinuz has changed" in said[0]
        assert (kernel / "vmlinuz").exists()


def test_each_process_reads_it_once_and_listing_reads_nothing(
    kernel: Artefact, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Artefact] = []

    def sound(artefact: Artefact) -> list[str]:
        read.append(artefact)
        return []

    monkeypatch.setattr(Artefact, "damage", sound)
    assert store.all("kernel") and store.find("kernel", kernel.key)
    store.obtain("kernel", INPUTS, fill, verify=False)
    assert read == []
    for _ in range(3):
        store.obtain("kernel", INPUTS, fill)
    assert len(read) == 1


def test_one_damaged_manifest_stands_in_nobodys_way(kernel: Artefact, store: Store) -> None:
    other = store.obtain("kernel", {"other": 1}, fill)
    (kernel / MANIFEST).write_bytes(b"\xff{")
    assert store.all("kernel") == [other] and store.unreadable("kernel") == [kernel.directory]
    with pytest.raises(DamagedArtefact, match=r"manifest\.json is damaged"):
        store.find("kernel", kernel.key)


EXTENTS = random.Random(2).randbytes(3000)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    """A run as cells leave it: one in the virtual clock with a map, one in the wall clock, one without an end."""
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / "home"))
    made = run_builder.begin(tmp_path / "home", run_builder.cells(["ext4"], (1, 2, 3)), provenance={"qemu": "7.2"})
    for number in range(3):
        samples = [run_builder.sample(step, 1.5 + number) for step in ("copy", "read")]
        back = {}
        if number == 0:
            place = made.cell_directory(0) / run_directory.map_file("aged/extents")
            place.parent.mkdir(parents=True)
            place.write_bytes(gzip.compress(EXTENTS, mtime=0))
            back = {"aged/extents": hashlib.sha256(EXTENTS).hexdigest()}
        measured = digest(Status.OK, samples, back)
        run_builder.end(
            made, number, samples, status=Status.OK if number < 2 else None, inputs={"making": {"seed": number}},
            digest=None if number else measured, maps=back, measured=measured, host_seconds=1.25,
        )  # fmt: skip
    return made


FILES = (
    *("plan.json", "samples.jsonl", "cells/0/inputs.json", "cells/0/end.json", "cells/1/end.json"),
    "cells/0/maps/aged/extents.gz",
)


def same(one: RunDirectory, shown: str) -> bool:
    """Return True if it shows the samples to the last byte."""
    return json.dumps(one.as_json()) == shown


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_in_a_run_is_named(run: RunDirectory, name: str) -> None:
    run.verify()
    shown = json.dumps(run.as_json())
    path = run.path / name
    for bit in bits(path):
        before = flipped(path, bit)
        try:
            run_lookup.find(run.path.parent, "latest")
        except InputError as error:
            assert run.name in str(error) and (name in str(error) or "has no cell" in str(error)), (bit, error)
        else:
            # Of a packed map the header has bits that say nothing, of the last sample of a cell without an end the
            # newline: the line is cut short.
            assert same(run, shown) or (name == "samples.jsonl" and bit // 8 == len(before) - 1), bit
        path.write_bytes(before)
    run.verify()


VERBS = (["show"], ["show", "--json"], ["compare", "latest", "latest"], ["sweep", "latest"], ["resume"])


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("words", [*VERBS, ["replicate", "latest"], ["list"]])
def test_no_verb_goes_on_with_damage(run: RunDirectory, name: str, words: list[str], cli: Cli) -> None:
    path = run.path / name
    flipped(path, 8 * (path.stat().st_size // 2) + 3)
    listing = words == ["list"] and not name.endswith(("plan.json", "end.json"))
    said = cli.err(*words, code=0 if listing else 2)
    assert "Traceback" not in said
    assert listing or (run.name in said and "agelab: " in said)


@pytest.mark.parametrize("name", FILES[1:])
def test_a_file_that_is_gone_or_cut_off_is_named(run: RunDirectory, name: str) -> None:
    path = run.path / name
    before = path.read_bytes()
    for left in (before[: len(before) // 2], b"", None):
        if left is None:
            path.unlink()
        else:
            path.write_bytes(left)
        if left is None and name.endswith("end.json"):
            continue  # then the cell has none, and is measured again
        with pytest.raises(InputError, match=run.name):
            run_lookup.find(run.path.parent, "latest")


def test_damage_says_how_to_measure_the_cell_again(run: RunDirectory) -> None:
    path = run.path / "samples.jsonl"
    path.write_text("".join(line for line in path.open() if not re.search('"cell":1,.*"step":"read"', line)))
    with pytest.raises(InputError, match=r"cell 1: samples\.jsonl is not what was measured") as error:
        run.verify()
    assert f"rm {run.path}/cells/1/end.json" in error.value.hint
    (run.path / "cells/1/end.json").unlink()
    run.verify()
    assert run.unfinished() == [1, 2]


def test_a_run_from_before_there_were_seals_is_read(run: RunDirectory) -> None:
    for path in (run.path / "plan.json", run.path / "cells/0/end.json", run.path / "cells/1/end.json"):
        raw = json.loads(path.read_text())
        path.write_text(json.dumps({key: raw[key] for key in raw if key not in ("seal", "measured")}))
    lines = [json.loads(line) for line in (run.path / "samples.jsonl").open()]
    (run.path / "samples.jsonl").write_text(
        "".join(json.dumps({key: line[key] for key in line if key != "seal"}) + "\n" for line in lines)
    )
    assert run_lookup.find(run.path.parent, "latest").samples()[0][0].value == 1.5
    text = (run.path / "samples.jsonl").read_text()
    (run.path / "samples.jsonl").write_text(text.replace("1.5", "1.4"))
    with pytest.raises(InputError, match=r"cell 0: samples\.jsonl is not what was measured"):
        run.verify()


@pytest.mark.parametrize(
    "text",
    [
        "[]", "1", '{"cell": "x"}', '{"step": 1}', '{"cell": 0}', "null", '{"cell": 0, "again": 2}',
        "[" * 99999,
    ],
)  # fmt: skip
def test_lines_that_are_no_samples_are_named(run: RunDirectory, text: str) -> None:
    with (run.path / "samples.jsonl").open("a") as file:
        file.write(text + "\n")
    with pytest.raises(InputError, match=r"samples\.jsonl is damaged"):
        run.samples()


def test_a_sealed_line_of_no_cell_is_named_where_it_is_the_first(run: RunDirectory) -> None:
    samples = run.path / "samples.jsonl"
    first = samples.read_bytes().splitlines()[0]
    content, seal, _ = first.partition(b',"seal":"')
    of_none = content.partition(b",")[2]
    forged = b"," + of_none + seal + hashlib.sha256(b"," + of_none + b"}").hexdigest().encode() + b'"}\n'
    samples.write_bytes(forged)
    with pytest.raises(InputError, match=r"samples\.jsonl is damaged"):
        run.samples()
