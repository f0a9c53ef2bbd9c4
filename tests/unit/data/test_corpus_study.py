"""The corpora of the studies: their figures, the same shape at every size, archives that tar reads."""

import hashlib
import io
import tarfile
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from pydantic import ValidationError

from agelab.base import process
from agelab.base.errors import InputError
from agelab.base.places import corpus_names
from agelab.data.corpus import CorpusSpec, artefact, make, tar
from agelab.data.corpus.definition import DirectoryTree, FileSort, StudyCorpus, definition
from agelab.data.corpus.random_content import PIECE, content, pieces, source
from agelab.data.corpus.study_data import plan
from agelab.data.corpus.tar import Tarball
from agelab.data.corpus.tree import PlannedFile, write
from agelab.store.artefacts import Store

KINDS = ["fedorchuk-2005", "fedorchuk-2008", "piszcz-2006", "tum-2005"]
QUICK = 16
# Of 2 MB, archives not compressed, so that they hold for every zlib.
GOLDEN_TREES = {
    "fedorchuk-2005": "67d6d835dbcbf28f74794dc3b9054ea1dc8870766d7d52e485c660e2d4748ee6",
    "fedorchuk-2008": "edcc39497e29ddc2faee83fe580fd3ac34eb044b5eed6c94b8d4cbc4e5f3ff88",
    "piszcz-2006": "cf5c0f6c9507568c1d226cf6b8d8de2e4028a7ca741035f5ddbf4514de93f37d",
    "tum-2005": "64db8551ca6d0129128f1a6aca7b7d402d076b245c86fb20c0f9325ea660db48",
}


def study(kind: str) -> StudyCorpus:
    what = definition(kind)
    assert isinstance(what, StudyCorpus)
    return what


@cache
def planned(kind: str, part: int = 1, seed: int = 1) -> dict[str, PlannedFile | Tarball]:
    """Path to file, of a corpus that is that part of the study's."""
    found = plan(study(kind), study(kind).bytes // part, seed)
    return {file.path: file for file in found if isinstance(file, PlannedFile | Tarball)}


def below(kind: str, path: str, part: int = 1, seed: int = 1) -> list[PlannedFile]:
    """The files of a tree, in the open or in an archive."""
    found = planned(kind, part, seed)
    if (archive := found.get(path)) and isinstance(archive, Tarball):
        return list(archive.members)
    return [file for file in found.values() if isinstance(file, PlannedFile) and file.path.startswith(f"{path}/")]


def directories(files: Sequence[PlannedFile]) -> set[str]:
    return {file.path.rsplit("/", up)[0] for file in files for up in range(1, file.path.count("/") + 1)}


def unpacked(kind: str, size: int) -> list[PlannedFile | Tarball]:
    found = [file for file in plan(study(kind), size, 1) if isinstance(file, PlannedFile | Tarball)]
    return [replace(file, gzip=False) if isinstance(file, Tarball) else file for file in found]


def sorts(kind: str) -> list[tuple[str, DirectoryTree, FileSort]]:
    """Every sort of file, its tree, and the name at the top that it is found under."""
    trees = [(tree.path, tree) for tree in study(kind).trees]
    trees += [(archive.path, archive.tree) for archive in study(kind).archives]
    return [(path, tree, sort) for path, tree in trees for sort in tree.sorts]


def of_sort(tree: DirectoryTree, sort: FileSort, files: Sequence[PlannedFile]) -> list[int]:
    endings = tuple(ending for ending, _ in sort.endings)
    return sorted(file.size for file in files if len(tree.sorts) == 1 or file.path.endswith(endings))


def small_archive(gzip: bool = False) -> Tarball:
    deep = "/".join(["root", "somewhere-deep" * 3, "a" * 60, "b"])
    files = (
        PlannedFile("root/b", 1000, "source"),
        PlannedFile("root/a/c", 512, "packed"),
        PlannedFile("root/a-d", 0, "prose"),
        PlannedFile(deep, 7, "prose"),
    )
    return Tarball("x.tar", files, gzip, 1_000_000_000)


@pytest.mark.parametrize("kind", KINDS)
def test_the_tree_is_the_golden_one(kind: str, tmp_path: Path) -> None:
    assert write(unpacked(kind, 2_000_000), 1, tmp_path, listed=False).sums == GOLDEN_TREES[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_two_builds_are_bit_identical_and_hold_what_was_planned(kind: str, tmp_path: Path) -> None:
    spec = CorpusSpec(kind=kind, bytes=2_000_000, seed=5)
    one, two = (make(spec, Store(tmp_path / name)) for name in ("one", "two"))
    assert one.sha256 == two.sha256 == hashlib.sha256(two.image.read_bytes()).hexdigest()
    out = tmp_path / "out"
    process.run(["xorriso", "-no_rc", "-osirrox", "on", "-indev", str(one.image), "-extract", "/", str(out)])
    names = {f"{path.name}/" if path.is_dir() else path.name for path in out.iterdir()}
    assert names == set(study(kind).names)
    files = [path for path in out.rglob("*") if path.is_file()]
    assert (len(files), sum(path.stat().st_size for path in files)) == (one.files, one.content_bytes)
    assert one.content_bytes == pytest.approx(spec.bytes, rel=0.03)
    for directory in (out, *(path for path in out.rglob("*") if path.is_dir())):
        directory.chmod(0o755)  # so that pytest can tidy up


def test_the_study_of_2008_has_its_figures() -> None:
    assert study("fedorchuk-2008").names == ("cd.iso", "film.avi", "music/", "portage/")
    found = planned("fedorchuk-2008")
    assert (found["film.avi"].size, found["cd.iso"].size) == (3_400_000_000, 586_000_000)
    music = below("fedorchuk-2008", "music")
    assert len(music) == 16
    assert all(10_000_000 <= file.size <= 27_000_000 for file in music)
    assert sum(file.size for file in music) == pytest.approx(357_000_000, abs=16)
    portage = below("fedorchuk-2008", "portage")
    assert len(portage) == 120_000
    assert sum(file.size for file in portage) == pytest.approx(229_000_000, rel=1e-3)
    assert sum(200 <= file.size < 4000 for file in portage) > 0.8 * len(portage)


def test_a_tree_can_have_another_number_of_files_whose_bytes_together_stay() -> None:
    own = study("fedorchuk-2008")
    few = own.with_files({"portage": 10_000})
    assert few.bytes == own.bytes and own.with_files({}) == own
    before, after = (plan(what, what.bytes // QUICK, 1) for what in (own, few))
    portage = [file for file in after if file.path.startswith("portage/")]
    assert len(portage) == 10_000 // QUICK
    assert sum(file.size for file in portage) == pytest.approx(229_000_000 / QUICK, rel=1e-3)
    assert [file for file in after if file not in portage] == [
        file for file in before if not file.path.startswith("portage/")
    ]
    for wrong in (own.with_files, definition("debian-iso").with_files):
        with pytest.raises(InputError, match="files: "):
            wrong({"ports": 1})
    for count in (0, 229_000_001):
        with pytest.raises(InputError, match=f"^corpus fedorchuk-2008: files: portage: {count} files are not 1 to"):
            own.with_files({"portage": count})


def test_the_study_of_2005_has_its_figures() -> None:
    assert study("fedorchuk-2005").names == ("data/", "film.avi", "ports.tar.gz")
    found = planned("fedorchuk-2005")
    assert found["film.avi"].size == 693_000_000
    data = below("fedorchuk-2005", "data")
    assert sum(file.size for file in data) == pytest.approx(830_000_000, rel=1e-4)
    sound = [file.size for file in data if file.path.endswith(".mp3")]
    assert 1_500_000 <= min(sound) <= max(sound) <= 6_000_000
    ports = below("fedorchuk-2005", "ports.tar.gz")
    assert len(ports) > 100_000
    assert sum(file.size for file in ports) == pytest.approx(124_000_000, rel=1e-3)
    assert sum(file.size < 1000 for file in ports) > 0.7 * len(ports)


def test_the_kernel_and_the_tree_of_eight_tests_have_their_figures() -> None:
    for kind, name, files, size in (
        ("piszcz-2006", "linux.tar", 18_435, 217_000_000),
        ("tum-2005", "filetree.tar", 200_000, 2_415_000_000),
    ):
        assert study(kind).names == (name,)
        assert len(below(kind, name)) == files
        assert planned(kind)[name].size == pytest.approx(size, rel=1e-3)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_the_shape_is_the_same_at_every_size(kind: str, seed: int) -> None:
    for path, tree, sort in sorts(kind):
        files = below(kind, path, QUICK, seed)
        sizes = of_sort(tree, sort, files)
        fewer = sort.smaller == "number"
        assert len(sizes) == pytest.approx(sort.files.value / (QUICK if fewer else 1), abs=0.5)
        assert sum(sizes) == pytest.approx(sort.bytes.value / QUICK, rel=1e-3)
        if len(sizes) > 50:
            middle = sort.at(1, 2)
            assert sizes[len(sizes) // 2] == pytest.approx(middle, rel=0.15)
            assert sizes[len(sizes) * 9 // 10] == pytest.approx(sort.at(9, 10), rel=0.15)
        assert max(sizes) <= sort.sizes[-1][1] * 1.1
        depths = Counter(file.path.count("/") - 1 for file in files)
        for depth, weight in enumerate(tree.nesting.weights):
            share = len(files) * weight / sum(tree.nesting.weights)
            assert depths[depth] == pytest.approx(share, abs=1)
        assert len(files) / tree.nesting.each < 1.5 * len(directories(files)) + 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_name_is_there_once(kind: str) -> None:
    for path, _, _ in sorts(kind):
        files = below(kind, path)
        assert len({file.path for file in files} | directories(files)) == len(files) + len(directories(files))


def test_another_seed_is_other_data() -> None:
    one, two = ({file.path for file in below("piszcz-2006", "linux.tar", QUICK, seed)} for seed in (1, 2))
    assert len(one & two) < len(one) / 20


@pytest.mark.parametrize("kind", KINDS)
def test_every_figure_has_an_origin_and_a_reason_and_the_means_agree(kind: str) -> None:
    what = study(kind)
    stated = [what.date, *what.singles, *(archive.bytes for archive in what.archives)]
    for _, tree, sort in sorts(kind):
        stated += [sort, sort.files, sort.bytes, tree.nesting]
        assert sort.total(1000) / 1000 == pytest.approx(sort.bytes.value / sort.files.value, rel=0.02)
    assert all(figure.why for figure in stated)


def test_an_archive_is_read_by_both_tars(tmp_path: Path) -> None:
    archive = small_archive()
    made = b"".join(archive.pieces(3))
    assert (len(made), len(made) % tar.RECORD) == (archive.size, 0)
    with tarfile.open(fileobj=io.BytesIO(made)) as opened:
        entries = opened.getmembers()
        for file in archive.members:
            read = opened.extractfile(file.path)
            assert read
            assert read.read() == b"".join(file.pieces(3))
    names = [entry.name for entry in entries]
    assert names[:5] == ["root", "root/a-d", "root/a", "root/a/c", "root/b"]
    assert {(entry.uid, entry.gid, entry.uname, entry.mtime) for entry in entries} == {(0, 0, "root", 10**9)}
    assert {(entry.mode, entry.isdir()) for entry in entries} == {(0o755, True), (0o644, False)}
    (tmp_path / "x.tar").write_bytes(made)
    listed = process.run(["tar", "-tf", str(tmp_path / "x.tar")]).stdout.splitlines()
    assert [name.rstrip("/") for name in listed] == names
    assert max(map(len, names)) > 100
    (tmp_path / "x.tar.gz").write_bytes(b"".join(small_archive(gzip=True).pieces(3)))
    assert process.run(["tar", "-tzf", str(tmp_path / "x.tar.gz")]).stdout.splitlines() == listed


def test_entries_are_in_the_order_of_their_names() -> None:
    archive = planned("tum-2005", 1000)["filetree.tar"]
    with tarfile.open(fileobj=io.BytesIO(b"".join(archive.pieces(1)))) as opened:
        names = [entry.name + "/" * entry.isdir() for entry in opened]
    assert names == sorted(names)
    assert len(names) > 200


def test_the_ports_compress_as_the_studys_did() -> None:
    archive = planned("fedorchuk-2005", QUICK)["ports.tar.gz"]
    made = b"".join(archive.pieces(1))
    assert len(made) == pytest.approx(24_200_000 / QUICK, rel=0.02)
    assert made[:4] == b"\x1f\x8b\x08\x00"
    assert made[4:8] == bytes(4)  # no date
    assert len(zlib.decompress(made, 31)) == archive.size


def test_nothing_large_is_held_in_memory() -> None:
    [first, second] = pieces(1, "a", PIECE + 5, "packed")
    assert (len(first), len(second)) == (PIECE, 5)
    assert first[:100] == content(1, "a", 100)
    assert second != first[:5]
    archive = planned("piszcz-2006", 100)["linux.tar"]
    assert max(map(len, archive.pieces(1))) < PIECE


def test_program_text_has_the_size_asked_for() -> None:
    assert [len(source(1, "a", size)) for size in (0, 1, 7, 8, 100, 100_003)] == [0, 1, 7, 8, 100, 100_003]
    assert source(1, "a", 1000) != source(2, "a", 1000)


def test_the_compressor_is_an_input_of_what_is_compressed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[dict[str, object]] = []
    monkeypatch.setattr(artefact, "obtain", lambda store, inputs, build, **_: seen.append(inputs))
    for kind in corpus_names():
        make(CorpusSpec(kind=kind, bytes=2_000_000, seed=1), Store(tmp_path))
    assert [inputs["kind"] for inputs in seen if "compressor" in inputs] == ["fedorchuk-2005"]


def test_an_unknown_kind_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValidationError, match=r"there are: debian-iso, fedorchuk-2005, .* tum-2005"):
        CorpusSpec(kind="fedorchuk", bytes=2_000_000, seed=1)
