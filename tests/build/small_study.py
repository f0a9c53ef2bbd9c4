"""Write the published data of a small study: its figures, and its claims."""

from collections.abc import Mapping
from pathlib import Path

from agelab.analysis.published import study
from agelab.analysis.published.claims import HEADER
from agelab.analysis.published.study import Study

CLAIMS = """
study = "small"
about = "a small one"
[[tables]]
id = "1"
about = "its table"
"""


def figures(directory: Path, *rows: str) -> Path:
    path = directory / "small.csv"
    path.write_text("\n".join([",".join(HEADER), *rows]) + "\n")
    return path


def small_study(directory: Path, seconds: Mapping[str, Mapping[str, Mapping[str, float]]], claims: str) -> Study:
    """The study of these seconds: layout, step and variant."""
    rows = [
        f"small,1,{name},{name},{layout},{step},elapsed,{value},s"
        for layout, steps in seconds.items()
        for step, values in steps.items()
        for name, value in values.items()
    ]
    figures(directory, *rows)
    (directory / "small.claims.toml").write_text(f"{CLAIMS}{claims}")
    return study.read_study("small", directory)
