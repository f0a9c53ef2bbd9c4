"""Which seeded corpora there are: one data file each in ``agelab/corpus``."""

from pathlib import Path

CORPORA = Path(__file__).resolve().parents[1] / "corpus"


def corpora() -> list[str]:
    """The kinds that have a file, sorted."""
    return sorted(path.stem for path in CORPORA.glob("*.toml"))
