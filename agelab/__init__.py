"""agelab: a reproducibility sandbox for filesystem benchmarks."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas

__all__ = ["load"]

__version__ = "0.1.0"
"""The one place where it stands: the package, its results and pages have it from here."""


def load(*runs: str, home: Path | str | None = None) -> "pandas.DataFrame":
    """Runs as one pandas frame: a row for each sample, with all that tells its cell from others.

    ``runs`` are names as ``agelab list`` has them, or their beginnings; none means the latest. ``home`` is the store,
    where it is not AGELAB_HOME or what stands for that. Columns: agelab.results.rows.COLUMNS; ``value`` is a number
    in ``unit``, or NaN with the reason in ``not_measured``. Raises InputError for a run that there is not.
    """
    import pandas

    from agelab.results import rows, run_lookup
    from agelab.store import Store, default_home

    store = Store(Path(home) if home else default_home())
    found = [run_lookup.find(store.runs, name) for name in runs or ("latest",)]
    frame = pandas.DataFrame([row for run in found for row in rows.rows(run)], columns=list(rows.COLUMNS))
    return frame.astype({"value": "float64"})
