"""The package: what a wheel holds, and that an installed agelab does without the checkout."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pytest

import agelab
from agelab.base import places
from agelab.base.errors import InputError
from agelab.machine.vm import host
from agelab.present.report.command import repeat_command
from agelab.scenario import selection
from agelab.store.home import default_home
from tests.build import run_builder

PROJECT = Path(__file__).parents[3]
BESIDE = ("harness", "images", "packer", "scenarios")
PARTS = ("agelab", *BESIDE, "pyproject.toml", "README.md", "LICENSE", ".gitignore")
"""All that a build reads."""
OF_THE_CHECKOUT = ("agelab/setup.sh", "agelab/nearest.awk")
FOREIGN = (
    "agelab/__pycache__/cli.cpython-311.pyc", "harness/__pycache__/main.pyc", "scenarios/.mypy_cache/x.json",
    ".agelab/store/kernel/key/manifest.json", ".venv/pyvenv.cfg", "build/setup.log", "dist/agelab-0.tar.gz",
)  # fmt: skip
"""Files of a checkout in use that belong in no package."""

# What of a cell's inputs comes from agelab's own files, and the plans of its guests.
KEYS = """
import json
from pathlib import Path
from agelab.base import places
from agelab.data.corpus import Corpus
from agelab.machine.image import root, sealed_image, tools
from agelab.machine.qemu import emulator
from agelab.runner.plan import cell_inputs
from agelab.runner.plan.phases import phases
from agelab.runner.plan.guest_plan import guest_plan
from agelab.runner.request.options import RunOptions
from agelab.runner.request.request import resolve
from agelab.runner.request.request import cell_requests
from agelab.scenario import selection
from agelab.store.artefacts import file_hash

corpus = Corpus("key", Path("corpus.iso"), 42 << 20, "hash", 185, 41 << 20, "a corpus")
aging = cell_requests(resolve(RunOptions(name="aging")), 14, (), None)
print(json.dumps({
    "installed": places.INSTALLED,
    "harness": cell_inputs.harness_hash(),
    "drive": cell_inputs.drive_sources(),
    "tools": {path.name: file_hash(path) for path in tools.source_files()},
    "makers": {path.name: file_hash(path) for path in tools.source_files(tools.FILESYSTEMS)},
    "image": {
        path.name: file_hash(path) for path in (*sealed_image._PROVISIONING_FILES, *sealed_image._INITRAMFS_CODE)
    },
    "root": root.definition().model_dump(mode="json"),
    "filesystems": [one.model_dump(mode="json") for one in selection.filesystems()],
    "libraries": emulator.sources(),
    "plans": [guest_plan(one.spec, corpus, phase) for one in aging for phase in phases(one.spec.scenario, corpus)],
}))
"""


def run(argv: Sequence[str | Path], cwd: Path, code: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a program in an environment that says nothing of a checkout or a store."""
    ours = ("PYTHONPATH", "AGELAB_HOME", "XDG_DATA_HOME")
    clean = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run(
        argv, cwd=cwd, env={**clean, "COLUMNS": "200", **env}, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def pip(cwd: Path, *words: str | Path) -> None:
    run([sys.executable, "-m", "pip", *words, "--no-index", "--no-deps", "--quiet"], cwd)


def build(source: Path, directory: Path) -> Path:
    """The wheel of a project, or of an sdist."""
    pip(directory, "wheel", "--no-build-isolation", "--wheel-dir", directory, source)
    [made] = directory.glob("agelab-*.whl")
    return made


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a build reads, with more in it."""
    made = tmp_path_factory.mktemp("checkout")
    for name in PARTS:
        if (PROJECT / name).is_dir():
            shutil.copytree(PROJECT / name, made / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(PROJECT / name, made)
    for name in (*FOREIGN, "tests/unit/test_x.py", "docs/page.md"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text("of nobody's business")
    return made


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(checkout, tmp_path_factory.mktemp("wheel"))


def environment(place: Path, *paths: str, system: bool = True) -> Path:
    """The interpreter of a new environment that finds packages in these directories, too."""
    flags = ["--system-site-packages"] if system else []
    run(["/usr/bin/python3", "-m", "venv", "--without-pip", *flags, place], place.parent)
    [packages] = place.glob("lib/python3*/site-packages")
    dependencies = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "dependencies.pth").write_text("\n".join((*paths, *dependencies)))
    return place / "bin" / "python"


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment in which agelab is installed."""
    made = environment(tmp_path_factory.mktemp("installed") / "venv")
    pip(wheel.parent, "--python", made, "install", wheel)
    return made


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    made = tmp_path / "empty"
    made.mkdir()
    return made


def wanted() -> dict[str, str]:
    """The name in the wheel of each file that belongs there, and the hash of its content."""
    found = {}
    for top in ("agelab", *BESIDE):
        for path in (PROJECT / top).rglob("*"):
            name = str(path.relative_to(PROJECT))
            if path.is_file() and "__pycache__" not in path.parts and name not in OF_THE_CHECKOUT:
                found[name if top == "agelab" else f"agelab/share/{name}"] = sha256(path.read_bytes()).hexdigest()
    return found


def test_the_wheel_holds_what_is_needed_at_run_time_and_nothing_else(wheel: Path) -> None:
    with ZipFile(wheel) as file:
        names = [name for name in file.namelist() if ".dist-info/" not in name]
        found = {name: sha256(file.read(name)).hexdigest() for name in names}
        licence = file.read(f"agelab-{agelab.__version__}.dist-info/licenses/LICENSE")
    assert found == wanted()
    assert {"agelab/host-packages.txt", "agelab/share/harness/start", "agelab/share/images/init"} <= set(found)
    assert b"GNU GENERAL PUBLIC LICENSE\n                       Version 2, June 1991" in licence


def test_an_sdist_holds_the_checkout_but_nothing_foreign_and_makes_the_same_wheel(
    checkout: Path, wheel: Path, tmp_path: Path
) -> None:
    run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path], checkout)
    [sdist] = tmp_path.iterdir()
    with tarfile.open(sdist) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    there = {str(path.relative_to(checkout)) for path in checkout.rglob("*") if path.is_file()}
    assert names == there - set(FOREIGN) | {"PKG-INFO"}
    (tmp_path / "wheel").mkdir()
    assert build(sdist, tmp_path / "wheel").read_bytes() == wheel.read_bytes()


def test_an_installed_agelab_works_from_anywhere(python: Path, empty: Path, tmp_path: Path) -> None:
    program, home = python.with_name("agelab"), str(tmp_path)
    where = run([python, "-c", "import agelab; print(agelab.__file__)"], empty).stdout
    assert where.startswith(str(python.parents[1]))
    assert run([program, "--version"], empty).stdout == f"agelab, version {agelab.__version__}\n"
    assert run([program, "list"], empty, HOME=home).stdout == f"no runs yet; make one: {program} run aging-reiserfs\n"
    assert "Usage: agelab run " in run([program, "run", "--help"], empty).stdout
    refused = run([program, "run", "no-such"], empty, 2, HOME=home).stderr
    assert all(name in refused for name in selection.scenario_names()[:10]), "the first of them"
    report = json.loads(run([program, "doctor", "--json"], empty, HOME=home).stdout)
    found = {one["name"]: one["found"] for one in report["findings"]}
    assert found["space"].endswith(f" for {tmp_path}/.local/share/agelab")
    assert found["other packages"] == "all there"
    assert list(empty.iterdir()) == []


def test_its_inputs_and_plans_are_those_of_a_checkout(python: Path, empty: Path) -> None:
    said = [
        json.loads(run([one, "-c", KEYS], empty, PYTHONPATH=path).stdout)
        for one, path in ((sys.executable, str(PROJECT)), (python, ""))
    ]
    assert [one.pop("installed") for one in said] == [False, True]
    assert said[0] == said[1]
    assert len(said[0]["plans"]) > 30 and len(said[0]["image"]) == 7


def test_without_libvirts_binding_it_says_how_to_have_it(python: Path, empty: Path, tmp_path: Path) -> None:
    [packages] = python.parents[1].glob("lib/python3*/site-packages")
    blind = environment(tmp_path / "venv", str(packages), system=False)
    code = "import sys; from agelab.cli import main; sys.exit(main(sys.argv[1:]))"
    said = run([blind, "-c", code, "run", "aging-ext4"], empty, 3, HOME=str(tmp_path)).stderr
    assert said.startswith("agelab: libvirt's Python binding cannot be used: No module named 'libvirt")
    way = f"{blind} does not see the system's packages: make its environment with /usr/bin/python3 -m venv"
    assert f"  {way} --system-site-packages\n" in said
    report = json.loads(run([blind, "-c", code, "doctor", "--json"], empty, 3, HOME=str(tmp_path)).stdout)
    [libvirt] = [one for one in report["findings"] if one["name"] == "libvirt"]
    assert libvirt["fix"] == f"{way} --system-site-packages"


def test_a_host_without_the_binding_is_told_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(host, "LIBVIRT_BINDING", tmp_path / host.LIBVIRT_BINDING.name)
    monkeypatch.setattr("agelab.base.process.host_packages", lambda: {str(host.LIBVIRT_BINDING): "python3-libvirt"})
    assert host.binding_hint() == "install the Debian package python3-libvirt"


@pytest.mark.parametrize(
    ("named", "wanted"),
    [("/data", "/data/agelab"), ("", "/me/.local/share/agelab"), ("data", "/me/.local/share/agelab")],
)
def test_the_store_of_an_installed_copy_is_where_the_users_data_is(
    named: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "INSTALLED", True)
    monkeypatch.setenv("HOME", "/me")
    monkeypatch.setenv("XDG_DATA_HOME", named)
    monkeypatch.delenv("AGELAB_HOME", raising=False)
    assert default_home() == Path(wanted)
    monkeypatch.setenv("AGELAB_HOME", "/mine")
    assert default_home() == Path("/mine")
    monkeypatch.setenv("AGELAB_HOME", "~nobody-of-that-name/store")
    with pytest.raises(InputError, match="no place for the store") as raised:
        default_home()
    assert raised.value.hint == "set AGELAB_HOME=<directory>"


def test_a_page_of_an_installed_copy_speaks_of_no_make(monkeypatch: pytest.MonkeyPatch) -> None:
    command = {"directory": "/", "name": "aging", "options": {"seeds": "1,2"}}
    plan = run_builder.plan(command=command)
    assert repeat_command(plan) == "make scenario NAME=aging SEEDS=1,2"
    monkeypatch.setattr(places, "INSTALLED", True)
    assert repeat_command(plan) == "agelab run aging --seeds 1,2"
