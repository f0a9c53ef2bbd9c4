"""A locale that is not UTF-8, as a host of 2005 had it."""

import subprocess
from pathlib import Path

LATIN_1 = "de_DE.ISO-8859-1"


def compile_latin_1(place: Path) -> dict[str, str]:
    """Make that locale in a directory; return the environment variable by which programs find it."""
    argv = ["localedef", "--no-archive", "-i", "de_DE", "-f", "ISO-8859-1", str(place / LATIN_1)]
    subprocess.run(argv, check=True, capture_output=True)
    return {"LOCPATH": str(place)}
