"""Name the tests of what has changed since a commit (make test-changed): folders of tests/unit are those of agelab/.

usage: python -m tests.changed COMMIT. Tests that boot guests are named where they have changed themselves.
"""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

PROJECT = Path(__file__).parents[1]
OTHERS = {
    "harness/drive": ("tests/model", "tests/unit/machine"),
    "harness": ("tests/contract", "tests/unit/harness"),
    "scenarios": ("tests/unit/scenario", "tests/unit/analysis"),
    "images": ("tests/unit/machine",),
    "packer": ("tests/unit/machine",),
    "bench": ("tests/unit/validation",),
    "validation": ("tests/unit/validation",),
    "docs/make": ("tests/unit/docs",),
    "docs": ("tests/unit/docs",),
}
"""Where the tests are of what is not in agelab/, the longer path first."""


def affected(changed: Iterable[str]) -> list[str]:
    """Return the tests of changed files, as pytest takes them."""
    found: set[str] = set()
    for path in changed:
        top, _, below = path.partition("/")
        if top == "agelab":
            found.add(f"tests/unit/{below.partition('/')[0]}")
        elif top == "tests":
            found.add(path if Path(path).name.startswith("test_") else str(Path(path).parent))
        else:
            found.update(next((tests for place, tests in OTHERS.items() if path.startswith(f"{place}/")), ()))
    # Helpers of all tests are tried by those that nobody waits for.
    found = {"tests/unit" if name in ("tests", "tests/build") else name for name in found}
    there = sorted(name for name in found if (PROJECT / name).exists() and name != "tests/fuzz")
    return [name for name in there if not any(name.startswith(f"{other}/") for other in there)]


def main() -> None:
    told = subprocess.run(
        ["git", "diff", "--name-only", sys.argv[1]],
        cwd=PROJECT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    new = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard"],
        cwd=PROJECT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    print(" ".join(affected([*told.splitlines(), *new.splitlines()])))


if __name__ == "__main__":
    main()
