"""agelab: a reproducibility sandbox for filesystem benchmarks."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas

__all__ = ["load"]


def load(*runs: str, home: Path | str | None = None) -> "pandas.DataFrame":
    """Runs as one pandas frame: a row for each sample, with all that tells its cell from others.

    ``runs`` are names as ``agelab list`` has them, or their beginnings; none means the latest. ``home`` is the store,
    else AGELAB_HOME or the project's own. Columns: agelab.results.flat.COLUMNS; ``value`` is a number in ``unit``, or
    NaN with the reason in ``not_measured``. Raises InputError for a run that there is not.
    """
    import pandas

    from agelab.results import flat, rundir
    from agelab.store import Store, default_home

    store = Store(Path(home) if home else default_home())
    found = [rundir.find(store.runs, name) for name in runs or ("latest",)]
    frame = pandas.DataFrame([row for run in found for row in flat.rows(run)], columns=list(flat.COLUMNS))
    return frame.astype({"value": "float64"})
