"""What the steps of an ended cell have printed, as it is: files beside its record, which no digest knows of."""

import re
import shutil
from pathlib import Path

ENDINGS = ("output",)
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.-]*\.({'|'.join(ENDINGS)})", re.ASCII)


def is_output(name: str) -> bool:
    """Tell whether a file of that name may be one, and lies in the cell's directory itself."""
    return _NAME.fullmatch(name) is not None


def outputs(directory: Path) -> list[Path]:
    """Return the outputs in a cell's directory."""
    return sorted(path for path in directory.glob("*") if is_output(path.name) and path.is_file())


def copy(source: Path, directory: Path) -> None:
    """Copy the outputs of one cell's directory to another's."""
    for path in outputs(source):
        shutil.copyfile(path, directory / path.name)
