"""The seeded corpus: the same bytes everywhere, the same shape at every size."""

import hashlib
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from agelab.base import process
from agelab.base.errors import HostError
from agelab.base.hashing import key_of
from agelab.data.corpus import CorpusSpec, artefact, make
from agelab.data.corpus.cd import plan
from agelab.data.corpus.definition import Cd, definition
from agelab.data.corpus.random_content import SeededRandom, content, prose
from agelab.data.corpus.tree import MD5_LIST, md5_list_size, write
from agelab.store.artefacts import Store

QUICK = 40_625_000
PAPER = 650_000_000
# Of the tree, not of the image, so that it holds for every xorriso.
GOLDEN_TREE = "375fcc02102d646ec03e1730122d075236bc7020201250a22244c89b878063a3"
GOLDEN_PLAN = "115154cdf59e60cb9f2f773837e061014fad3b3ede6d3b96143954bc173ad8e2"
# Of the 40 MB that docs/corpus.md begins with, made by an xorriso that calls itself 1.5.4.
GOLDEN_KEY = "2a01d48a005e14fdd80789af1fec393bddc398e90eb6de92d6b9ce99f6825efb"


@pytest.fixture
def cd() -> Cd:
    what = definition("debian-iso")
    assert isinstance(what, Cd)
    return what


def test_the_tree_is_the_golden_one(cd: Cd, tmp_path: Path) -> None:
    files = plan(cd, 2_000_000, seed=1)
    assert write(files, 1, tmp_path, listed=True).sums == GOLDEN_TREE


def test_the_paper_scale_plan_is_the_golden_one(cd: Cd) -> None:
    assert key_of([[file.path, file.size, file.text] for file in plan(cd, PAPER, seed=1)]) == GOLDEN_PLAN


def test_what_is_in_the_store_stays_in_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[dict[str, object]] = []
    monkeypatch.setattr(artefact, "obtain", lambda store, inputs, build, **_: seen.append(inputs))
    make(CorpusSpec(bytes=40_000_000, seed=1), Store(tmp_path))
    assert key_of({"recipe": artefact.RECIPE, **seen[0]}) == GOLDEN_KEY


def test_numbers_and_contents_come_from_hashes_alone() -> None:
    draws = SeededRandom(7, "test")
    assert [draws.below(1000) for _ in range(6)] == [455, 640, 402, 43, 589, 32]
    assert content(7, "a", 8).hex() == "a5441233945c37b6"
    assert prose(7, "a", 24) == b"loeariamhhncsn car  aiet"


def test_neither_hash_seed_nor_locale_matter(cd: Cd) -> None:
    program = (
        "from agelab.data.corpus.definition import definition; from agelab.data.corpus.cd import plan;"
        "print(plan(definition('debian-iso'), 5_000_000, 3))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": number, "LC_ALL": locale, "PYTHONUTF8": "1"},
            cwd=Path(__file__).parents[3],
            check=True,
            capture_output=True,
        ).stdout
        for number, locale in (("1", "C"), ("2", "de_DE.UTF-8"))
    }
    assert seen == {f"{plan(cd, 5_000_000, 3)}\n".encode()}


def test_two_builds_are_bit_identical(tmp_path: Path) -> None:
    spec = CorpusSpec(bytes=3_000_000, seed=5)
    one, two = (make(spec, Store(tmp_path / name)) for name in ("one", "two"))
    assert one.sha256 == two.sha256 == hashlib.sha256(two.image.read_bytes()).hexdigest()
    assert (one.key, one.files, one.content_bytes) == (two.key, two.files, two.content_bytes)
    assert one.size == one.image.stat().st_size >= one.content_bytes
    assert b"xorriso" not in one.image.read_bytes().lower(), "a key would differ where its version does"


def test_a_second_call_takes_it_from_the_store_and_nothing_else_is_left_there(tmp_path: Path) -> None:
    spec = CorpusSpec(bytes=1_000_000, seed=1)
    first = make(spec, Store(tmp_path))
    written = first.image.stat().st_mtime_ns
    assert make(spec, Store(tmp_path)) == first
    assert first.image.stat().st_mtime_ns == written
    assert sorted(path.name for path in first.image.parent.iterdir()) == ["about.json", "corpus.iso", "manifest.json"]


def test_the_image_holds_the_tree_read_only_and_dated(cd: Cd, tmp_path: Path) -> None:
    made = make(CorpusSpec(bytes=1_000_000, seed=1), Store(tmp_path / "store"))
    out = tmp_path / "out"
    process.run(["xorriso", "-no_rc", "-osirrox", "on", "-indev", str(made.image), "-extract", "/", str(out)])
    files = [path for path in out.rglob("*") if path.is_file()]
    assert len(files) == made.files
    assert sum(path.stat().st_size for path in files) == made.content_bytes
    assert {path.stat().st_mode & 0o7777 for path in files} == {0o444}
    assert {int(path.stat().st_mtime) for path in files} == {cd.date.value}
    process.run(["md5sum", "--check", "--quiet", MD5_LIST], cwd=out)
    for directory in (out, *(path for path in out.rglob("*") if path.is_dir())):
        directory.chmod(0o755)  # so that pytest can tidy up


def test_another_seed_is_other_data_of_the_same_shape(cd: Cd) -> None:
    one, two = plan(cd, QUICK, 1), plan(cd, QUICK, 2)
    assert {file.path for file in one}.isdisjoint({file.path for file in two} - {single.path for single in cd.singles})
    assert content(1, "x", 64) != content(2, "x", 64)
    assert sorted(file.size for file in one) != sorted(file.size for file in two)
    assert len(one) == pytest.approx(len(two), rel=0.03)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("size", [QUICK, PAPER])
def test_the_shape_is_the_same_at_every_size(cd: Cd, size: int, seed: int) -> None:
    files = plan(cd, size, seed)
    sizes = sorted(file.size for file in files)
    debs = sorted(file.size for file in files if file.path.endswith(".deb"))
    assert sum(sizes) + md5_list_size([file.path for file in files]) == pytest.approx(size, rel=1e-4)
    assert size / len(files) == pytest.approx(281_000, rel=0.06)
    assert statistics.mean(debs) == pytest.approx(386_000, rel=0.02)
    assert statistics.median(debs) == pytest.approx(68_000, rel=0.12)
    assert debs[len(debs) * 9 // 10] == pytest.approx(850_000, rel=0.15)
    assert max(sizes) <= cd.cap.value
    assert sizes[-1] > 5_000_000
    depths = [file.path.count("/") for file in files]
    assert statistics.mean(depths) == pytest.approx(3.65, abs=0.15)
    assert max(depths) == 5


def test_the_files_are_sorted_and_named_once(cd: Cd) -> None:
    paths = [file.path for file in plan(cd, PAPER, 1)]
    assert paths == sorted(set(paths))
    assert MD5_LIST not in paths
    assert all(path.isascii() and len(path.rpartition("/")[2]) < 64 for path in paths)


def test_packages_do_not_compress_and_prose_does() -> None:
    import zlib

    packed, text = content(1, "a", 200_000), prose(1, "a", 200_000)
    assert len(zlib.compress(packed)) > 199_000
    assert len(zlib.compress(text)) < 130_000
    assert max(len(line) for line in text.splitlines()) < 1000


def test_too_little_space_is_said_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=5_000_000))
    with pytest.raises(HostError, match=r"needs 8\d MB .* 5 MB free"):
        make(CorpusSpec(bytes=40_000_000, seed=1), Store(tmp_path))
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.parent.name != "locks"]


@pytest.mark.parametrize("size", [0, 999_999, 5_000_000_001])
def test_a_size_without_a_sensible_shape_is_refused(size: int) -> None:
    with pytest.raises(ValidationError):
        CorpusSpec(bytes=size, seed=1)
