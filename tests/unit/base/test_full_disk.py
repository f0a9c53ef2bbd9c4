"""A disk that is full or read-only, for real: small and closed filesystems in a mount namespace of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agelab.base import places
from tests.build import source_tree
from tests.build.kernel_builder import RELEASE, linux, package
from tests.capabilities import needs_root

UNSHARE = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
AGELAB = Path(sys.executable).with_name("agelab")


def inside(home: Path, mount: str, script: str) -> subprocess.CompletedProcess[str]:
    """Python's ``script``, with ``HOME`` for the store's directory, after a shell's ``mount``."""
    body = (
        "import os\nfrom pathlib import Path\nHOME = Path(os.environ['AGELAB_HOME'])\n"
        "from agelab import cli\nfrom agelab.base.errors import HostError\nfrom agelab.store.artefacts import Store\n"
        "from agelab.results.run_directory import RunDirectory\n" + script
    )
    words = [*UNSHARE, "sh", "-euc", f'{mount}; exec "$0" -c "$1"', sys.executable, body]
    told = {**os.environ, "AGELAB_HOME": str(home), "PYTHONPATH": str(places.PACKAGE.parent)}
    return subprocess.run(words, env=told, capture_output=True, text=True, check=False)


SMALL = 'mount -t tmpfs -o size=256k,mode=755 tmpfs "$AGELAB_HOME"'
CLOSED = 'mount --bind "$AGELAB_HOME" "$AGELAB_HOME"; mount -o remount,bind,ro "$AGELAB_HOME"'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    return made


def test_a_build_that_fills_the_disk_leaves_the_store_as_it_was(home: Path) -> None:
    script = """
def small(directory): (directory / "a").write_bytes(b"a" * 1000)
def large(directory): (directory / "b").write_bytes(b"b" * 400_000)
store = Store(HOME)
first = store.obtain("tools", {"n": 1}, small)
try:
    store.obtain("tools", {"n": 2}, large)
except HostError as error:
    print(error, "|", error.hint)
there = [path.name for path in (HOME / "store/tools").iterdir()]
print([one.key == first.key for one in store.all("tools")], first.damage(), there == [first.key])
print(store.obtain("tools", {"n": 3}, small).damage())
"""
    done = inside(home, SMALL, script)
    assert done.returncode == 0, done.stderr
    said, left, again = done.stdout.splitlines()
    assert "No space left on device" in said and "AGELAB_HOME" in said
    assert (left, again) == ("[True] [] True", "[]")


LARGER = 'mount -t tmpfs -o size=4m,mode=755 tmpfs "$AGELAB_HOME"'
SWEEP = """
store = Store(HOME)
def with_room(kib):
    filler = HOME / "filler"
    filler.unlink(missing_ok=True)
    there = os.statvfs(HOME)
    size = there.f_bavail * there.f_bsize - kib * 1024
    with filler.open("wb") as file: os.posix_fallocate(file.fileno(), 0, size)
def make_with_ever_more_room(make, kind, step):
    for kib in range(0, 2000, step):
        with_room(kib)
        try:
            make()
        except HostError as error:
            said, left = str(error), [*(HOME / "store" / kind).glob("*")]
            told = said.startswith(f"cannot write below {HOME}") and "No space left on device" in said
            print(error.exit_code, told, len(said.splitlines()), error.hint, left)
        else:
            return print([one.damage() for one in Store(HOME).all(kind)])
"""
FULL = "3 True 1 free some space, or move the store with AGELAB_HOME=<directory> []"
KERNEL = """
from agelab.kernel import resolve
make_with_ever_more_room(lambda: resolve("deb:{deb}", store), "kernel", 4)
"""
ROOT = """
import io, tarfile
from agelab.machine.image import root
with tarfile.open(HOME / "tar", "w") as tar:
    entry = tarfile.TarInfo("file")
    entry.size = 300_000
    tar.addfile(entry, io.BytesIO(os.urandom(entry.size)))
def pack(directory): root._pack(HOME / "tar", directory / root.ROOT_FILE)
make_with_ever_more_room(lambda: store.obtain("root", {}, pack), "root", 40)
"""
TREE = """
from agelab.kernel import source_tree
tree = Path("{tree}")
make_with_ever_more_room(
    lambda: source_tree.from_directory(tree, "", store, lambda line: None).check_out(), "kernel", 16
)
"""
SOURCE = """
from agelab.debian import Package
from agelab.kernel import source_tree
FILE = dict(filename="linux-source-6.6.deb", size=1, sha256="0" * 64)
class Mirror:
    suite = "bookworm"
    def __init__(self, store, suite): pass
    def versions(self, prefix): return {"linux-source-6.6": "6.6-1"}
    def package(self, name, version): return Package(name=name, version=version, **FILE)
    def download(self, packages): return [Path("{source}")]
source_tree.archives = lambda store, **options: [Mirror(store, "bookworm")]
make_with_ever_more_room(
    lambda: source_tree.from_package("6.6", store, lambda line: None).check_out(), "kernel", 16
)
"""
IMAGE = """
import pytest
from types import SimpleNamespace
from agelab.machine.image import packer, sealed_image
from tests.build import image_builder
image_builder.without_packages(store, pytest.MonkeyPatch())
try:
    sealed_image.build(image_builder.kernel(store), store, image_builder.FILESYSTEMS)
except HostError as error:
    assert str(error).startswith("proving an image takes up to 1074 MB of disk, and ") and "4 MB free" in str(error)
    sealed_image.SCRATCH = 0
packer.build = lambda work, *_: image_builder.proved(work)
sealed_image.qemu.obtain = lambda *_: SimpleNamespace(program=None)
sealed_image.packer.obtain = lambda *_: None
kernel = image_builder.kernel(store)
sealed_image.roots.obtain()
make_with_ever_more_room(lambda: sealed_image.build(kernel, store, image_builder.FILESYSTEMS), "image", 4)
"""


@pytest.mark.parametrize(
    ("script", "kinds", "stored"),
    [(KERNEL, 10, "[[]]"), (TREE, 5, "[]"), (SOURCE, 5, "[]"), (ROOT, 5, "[[]]"), (IMAGE, 5, "[[]]")],
    ids=["kernel", "tree", "source", "root", "image"],
)
def test_what_finds_no_room_at_one_of_its_steps_is_told_in_a_line_and_leaves_nothing_behind(
    script: str, kinds: int, stored: str, home: Path, tmp_path: Path
) -> None:
    """Programs unpack a kernel, import its source, pack a root; agelab writes an index, archives, manifests."""
    deb, tree = (package(tmp_path, f"linux-image-{RELEASE}", linux()), source_tree.files(tmp_path / "tree"))
    (tree / "kernel/large").write_bytes(os.urandom(100_000))
    packed = subprocess.run(["tar", "-C", tmp_path, "-cJf", "-", "tree"], check=True, capture_output=True)
    name = "usr/src/linux-source-6.6.tar.xz"
    made = {"{deb}": deb, "{tree}": tree, "{source}": package(tmp_path, "source", {name: packed.stdout})}
    for word, path in made.items():
        script = script.replace(word, str(path))
    done = inside(home, LARGER, SWEEP + script)
    assert done.returncode == 0, done.stderr
    *failed, sound = done.stdout.splitlines()
    assert failed == [FULL] * len(failed) and len(failed) >= kinds
    assert sound == stored


RUN = """
import errno
from agelab.results.result import Cell, End, RunPlan, Sample, Status
from agelab.results import run_lookup
from agelab.results.key_and_digest import digest
def filled():
    try:
        with (HOME / "filler").open("wb", buffering=0) as file:
            while file.write(b"x" * 512): pass
    except OSError as error:
        assert error.errno == errno.ENOSPC
def full(what):
    try:
        what()
    except OSError as error:
        return error.errno == errno.ENOSPC
names = dict(variant="ext4", filesystem="ext4", layout="single", kernel="6.1", machine="m", defaults="period")
cell = Cell(**names, drives=(), seed=1)
run = RunDirectory.create(HOME / "runs", "aging")
told = dict(scenario="aging", scale="quick", clock="virtual", provenance={"x": "y" * 5000})
plan = RunPlan(run=run.name, cells=(cell, cell), **told)
sample = Sample(step="copy", metric="elapsed", value=1.5, unit="s")
"""


def test_a_plan_that_finds_no_room_is_no_run(home: Path) -> None:
    script = RUN + "filled()\nprint(full(lambda: run.write_plan(plan)))\nprint(run_lookup.all_runs(HOME / 'runs'))\n"
    done = inside(home, SMALL, script)
    assert (done.returncode, done.stdout.split()) == (0, ["True", "[]"]), done.stderr


def test_what_had_landed_before_the_disk_was_full_stays_and_the_rest_follows_once_there_is_room(home: Path) -> None:
    script = (
        RUN
        + """
run.write_plan(plan)
run.append(0, sample)
measured = digest(Status.OK, [sample], {})
run.finish(0, End(status=Status.OK, digest=measured, measured=measured, host_seconds=1))
run.append(1, sample)
end = End(status=Status.OK, host_seconds=1, reason="r" * 5000)
filled()
landed = 0
while not full(lambda: run.append(1, sample)): landed += 1
print(full(lambda: run.finish(1, end)), run.unfinished())
print(len(run.samples()[0]), len(run.samples()[1]) == 1 + landed)
run_lookup.find(HOME / "runs", "latest")
(HOME / "filler").unlink()
run.restart_cell(1)
run.append(1, sample)
run.finish(1, end)
run.verify()
print(len(run.samples()[1]), run.unfinished())
"""
    )
    done = inside(home, SMALL, script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["True [1]", "1 True", "1 []"]


VERBS = (
    *(["list"], ["show"], ["list", "disks"], ["corpus", "list"], ["list", "kernels"], ["resume"]),
    *(["run", "aging-ext4"], ["age", "aging-ext4"], ["corpus", "make"], ["calibrate", "aging-ext4"]),
)


EACH = """
import contextlib, io, json
for verb in {verbs!r}:
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        code = cli.main(verb)
    print(json.dumps([code, said.getvalue()]))
"""


@pytest.mark.parametrize("mount", [SMALL + '; cat /dev/zero > "$AGELAB_HOME/filler" 2> /dev/null || :', CLOSED])
def test_every_verb_says_in_a_line_that_it_cannot_write(home: Path, mount: str) -> None:
    done = inside(home, mount, EACH.format(verbs=VERBS))
    assert done.returncode == 0, done.stderr
    for verb, line in zip(VERBS, done.stdout.splitlines(), strict=True):
        code, said = json.loads(line)
        assert "Traceback" not in said and code in (0, 2, 3), (verb, said)
        wrote = "No space left" in said or "Read-only" in said or "MB free" in said
        looked = code == 0 or "there are no runs" in said
        assert (wrote and code == 3) or looked, (verb, said)


APT = """
import shutil
from agelab.debian import Archive, host_suite
real = HOME / "apt-get"
shutil.copy("/usr/bin/apt-get", real)
false = HOME / "false"
false.write_text(f'''#!/bin/sh
case "$*" in *--print-uris*) exec {real} "$@" ;; esac
cat /dev/zero > {HOME}/filler
echo "E: Failed to fetch it: write (28: No space left on device)" >&2
{then}
''')
false.chmod(0o755)
assert os.system(f"mount --bind {false} /usr/bin/apt-get") == 0
try:
    Archive(Store(HOME), host_suite()).update()
except HostError as error:
    print(error, "|", error.hint)
"""


@pytest.mark.parametrize("then", ["exit 100", "rm {HOME}/filler; exit 100", "sleep 1000"])
def test_an_apt_that_finds_no_room_is_told_in_a_line_also_where_it_then_waits_without_end(
    then: str, home: Path
) -> None:
    done = inside(home, LARGER, APT.replace("{then}", then))
    said, advice = done.stdout.split(" | ")
    assert said.startswith(f"cannot write below {home}: ") and "No space left on device" in said, done.stderr
    assert advice == "free some space, or move the store with AGELAB_HOME=<directory>\n"


REPORT = """
from tests.build import run_builder
run = run_builder.begin(HOME, run_builder.cells(["ext4"]))
run_builder.end(run, 0, [run_builder.sample()])
page = HOME / "report.html"
page.write_text("the old page")
filled()
print(cli.main(["report", run.name, "--force", "-o", str(page)]))
print(page.read_text(), sorted(path.name for path in HOME.iterdir()))
(HOME / "filler").unlink()
print(cli.main(["report", run.name, "--force", "-o", str(page)]), page.read_text().startswith("<!DOCTYPE html>"))
"""


def test_a_page_that_finds_no_room_leaves_the_old_one(home: Path) -> None:
    done = inside(home, LARGER, RUN + REPORT)
    assert "Traceback" not in done.stderr and "No space left on device" in done.stderr, done.stderr
    failed, left, *_, again = done.stdout.splitlines()
    assert (failed, left) == ("3", "the old page ['filler', 'report.html', 'runs', 'secret']")
    assert again == "0 True"


FULL_EXT4 = """
from agelab.base.errors import is_disk_full
before = is_disk_full(HOME)
try:
    with (HOME / "filler").open("wb", buffering=0) as file:
        while file.write(bytes(1024)): pass
except OSError: pass
print(before, is_disk_full(HOME))
"""


@needs_root
def test_a_disk_is_full_where_nothing_can_be_written_whatever_it_says_is_free(home: Path) -> None:
    """ext4 keeps some blocks for itself, which statvfs(3) counts as free."""
    image = home.with_name("image")
    with image.open("wb") as file:
        file.truncate(40 << 20)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    done = inside(home, f'mount -o loop "{image}" "$AGELAB_HOME"', FULL_EXT4)
    assert done.stdout == "False True\n", done.stderr
