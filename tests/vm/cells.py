"""Running scenarios as a user does, for the tests of real guests."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from agelab.cli.options import open_store

SMALL = Path(__file__).with_name("small.toml")
PROGRAM = str(Path(sys.executable).with_name("agelab"))


def agelab(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """One command line of agelab, in the store that the tests use."""
    return subprocess.run([PROGRAM, *words], cwd=cwd, capture_output=True, text=True, check=False)


def run(*words: str, cwd: Path | None = None, code: int = 0) -> list[dict[str, Any]]:
    """``agelab run`` with these words; the cells of its result."""
    done = agelab("run", *words, cwd=cwd)
    assert done.returncode == code, done.stdout + done.stderr
    name = done.stdout.rsplit("agelab show ", 1)[1].split()[0]
    cells: list[dict[str, Any]] = json.loads(agelab("show", name, "--json").stdout)["cells"]
    return cells


def scenario(directory: Path, steps: str, *filesystems: str, head: str = "") -> Path:
    """A scenario file like small.toml, with other variants (ext4 alone) and steps; ``head`` comes before its tables.

    It is named after the test's directory, and so are its runs: others may run at the same time.
    """
    name = directory.name.replace("_", "-")
    text = SMALL.read_text().split("[[variants]]")[0].replace('name = "small"', f'name = "{name}"')
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
