"""Which seeded corpora there are: one data file each in ``agelab/corpus``."""

from agelab import places


def corpora() -> list[str]:
    """The kinds that have a file, sorted."""
    return sorted(path.stem for path in places.CORPORA.glob("*.toml"))
