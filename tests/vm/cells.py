"""Running scenarios as a user does, for the tests of real guests."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from agelab.base.plain_path import plain_label
from agelab.cli import agelab as command
from agelab.cli.options import open_store
from agelab.scenario import selection

SMALL = Path(__file__).with_name("small.toml")
PROGRAM = str(Path(sys.executable).with_name("agelab"))


def agelab(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """One command line of agelab, in the store that the tests use."""
    return subprocess.run([PROGRAM, *words], cwd=cwd, capture_output=True, text=True, check=False)


def run(*words: str, cwd: Path | None = None, code: int = 0) -> list[dict[str, Any]]:
    """``agelab run`` with these words; the cells of its result."""
    done = agelab("run", *words, cwd=cwd)
    assert done.returncode == code, done.stdout + done.stderr
    return shown(done.stdout.rsplit("agelab show ", 1)[1].split()[0])


def shown(name: str) -> list[dict[str, Any]]:
    """The cells of a run, as ``agelab show --json`` has them; a process of its own would take half a second."""
    done = CliRunner().invoke(command, ["show", name, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    cells: list[dict[str, Any]] = json.loads(done.stdout)["cells"]
    return cells


def scenario(directory: Path, steps: str, *filesystems: str, head: str = "", mib: int = 24) -> Path:
    """A scenario file like small.toml, with other variants (ext4 alone) and steps; ``head`` comes before its tables.

    It is named after the test's directory, and so are its runs (whose label has no last dash): others may run at the
    same time. With a corpus of 16 ``mib`` or less the guest is as large as those of ``chaos.cheap``, and a copy of the
    same saved one.
    """
    name = plain_label(directory.name.replace("_", "-"))
    text = SMALL.read_text().split("[[variants]]")[0].replace('name = "small"', f'name = "{name}"')
    text = text.replace("mib = { value = 24,", f"mib = {{ value = {mib},")
    named = filesystems or ("ext4",)
    variants = "".join(f'[[variants]]\nname = "{one}"\nfilesystem = "{one}"\n\n' for one in named)
    path = directory / f"{name}.toml"
    path.write_text(f"{head}\n{text}\n{variants}\n{steps}")
    return path


def step(name: str, command: str, more: str = "") -> str:
    """One step of a scenario file."""
    return f"\n[[steps]]\nname = '{name}'\nrun = '''{command}'''\norigin = 'estimated'\n{more}\n"


def runs(path: Path) -> set[Path]:
    """The runs of a scenario file that are there."""
    return set(open_store().runs.glob(f"*-{path.stem}*"))


def newest(path: Path) -> Path:
    """The last run of a scenario file."""
    return max(runs(path), key=lambda directory: directory.stat().st_mtime)


def sampled(path: Path, before: set[Path], said: str) -> Path:
    """Wait until a run of a scenario file that was not there ``before`` has such a sample; its file of samples."""
    until = time.monotonic() + 240
    while time.monotonic() < until:
        for directory in runs(path) - before:
            samples = directory / "samples.jsonl"
            if samples.exists() and re.search(said, samples.read_text()):
                return samples
        time.sleep(0.2)
    raise AssertionError(f"no run has come to {said}")


MADE_FIRST = ("kernel", "root", "image", "corpus", "buildroot", "tools", "drive", "qemu")


def store_of_parts(home: Path, *more: str) -> Path:
    """Make a store with all that is made before a guest starts, and ``more`` kinds; without, no saved guests."""
    shared = open_store()
    (home / "store").mkdir(parents=True)
    for kind in (*MADE_FIRST, *more):
        (shared.root / kind).mkdir(parents=True, exist_ok=True)
        (home / "store" / kind).symlink_to(shared.root / kind)
    shared.cache("debs")
    (home / "cache").symlink_to(shared.home / "cache")
    return home


OWN = f"model:{selection.machine('pentium4-2800').drives[0].drive}"
COPY = step("copy", 'cp -r "$SOURCE/." copy', "sync = true")
READ = step("read", "find . -type f -print0 | xargs -0 cat > /dev/null", 'caches = "reboot"')
CONTROL = """
[control]
run = 'cp -a "$AGED/." .'
"""
MEASURES = 'measures = ["extents", "free_space"]'


def values(cell: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """Step and metric to value."""
    return {(s["step"], s["metric"]): s["value"] for s in cell["samples"]}


def measured(cell: dict[str, Any], name: str) -> dict[str, Any]:
    """Metric to value of a step."""
    return {s["metric"]: s["value"] for s in cell["samples"] if s["step"] == name}
