"""Build scenarios of a user's own."""

import json
import tomllib
from pathlib import Path
from typing import Any

from agelab.scenario import selection
from agelab.scenario.selection import Selection

PROJECT = Path(__file__).parents[2]
HOWTO = PROJECT / "docs/howto"


def toml(value: object) -> str:
    """A value as TOML, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {toml(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def chosen(directory: Path, *steps: dict[str, Any], **more: Any) -> Selection:
    """The scenario in ten lines with other steps and keys, read from a directory with a job file."""
    (directory / "job.fio").write_text("[one]\nrw=read\nsize=1m\n")
    keys = {**tomllib.loads((HOWTO / "ten-lines.toml").read_text()), **more, "steps": list(steps)}
    path = directory / "ten-lines.toml"
    path.write_text("\n".join(f"{name} = {toml(value)}" for name, value in keys.items()))
    return selection.select(str(path))


ECHO = {"name": "mine", "run": "echo 1.5", "records": ["my_ops"], "origin": "estimated"}


MY_OPS = {"my_ops": {"unit": "1/s", "better": "more", "meaning": "my operations in a second"}}
