"""Faults in the guest, injected for real: each cell gets its status in the kernel's own words, and the next one runs."""

import base64
import gzip
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agelab import kernel as kernels
from agelab.cli.common import open_store
from agelab.drive import module
from tests.vm.cells import SMALL, real_guests, run, step

pytestmark = real_guests

SOURCES = Path(__file__).with_name("trouble")


@cache
def insert() -> str:
    """Shell that loads the module of trouble/ into the guest's kernel, behind which ``how=`` follows."""
    store = open_store()
    built = module.obtain(kernels.resolve(kernels.DEFAULT, store), store, sources=SOURCES)
    text = base64.b64encode(gzip.compress(built.read_bytes(), mtime=0)).decode()
    return f"echo {text} | base64 -d | gzip -d > /run/trouble.ko; insmod /run/trouble.ko how="


def faults(directory: Path, commands: dict[str, str], head: str = "") -> Path:
    """A scenario with a cell for each command, on the smallest guest there is: a step of it, then one more.

    Every cell has the same steps: which command is its own, its filesystem's label says.
    """
    name = directory.name.replace("_", "-")
    text = SMALL.read_text().split("[[variants]]")[0].replace('name = "small"', f'name = "{name}"')
    text = text.replace("mib = { value = 24,", "mib = { value = 1,").replace("value = 320,", "value = 48,")
    variants = "".join(
        f'[[variants]]\nname = "{one}"\nfilesystem = "ext4"\nmkfs_options = ["-L", "{one}"]\n\n'
        for one in commands
    )
    cases = "".join(f"{one})\n{command}\n;;\n" for one, command in commands.items())
    body = step("fault", f'case "$(e2label "$DEVICE")" in\n{cases}esac', "deadline = 600")
    path = directory / f"{name}.toml"
    path.write_text(f"{head}\n{text}\n{variants}\n{step('before', 'true')}{body}{step('after', 'true')}")
    return path


def ran(path: Path) -> dict[str, dict[str, Any]]:
    """The cells of that scenario, by variant."""
    return {cell["variant"]: cell for cell in run(str(path), code=1)}
