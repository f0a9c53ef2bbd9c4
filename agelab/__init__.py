"""agelab: a reproducibility sandbox for filesystem benchmarks.

``run`` runs a scenario as ``agelab run`` does, ``find`` finds a run, ``load`` reads results (docs/report.md).
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

    from agelab.results.run_directory import RunDirectory
    from agelab.runner.progress import Progress
    from agelab.runner.request.options import RunOptions

__all__ = ["Progress", "RunOptions", "find", "load", "run"]

__version__ = "0.2.0.dev0"
"""The version of the package, of its results and of its pages."""

if not TYPE_CHECKING:  # mypy would take any name for one of the package

    def __getattr__(name: str) -> Any:
        """Import ``Progress`` and ``RunOptions`` on first use."""
        if name == "RunOptions":
            from agelab.runner.request.options import RunOptions

            return RunOptions
        if name == "Progress":
            from agelab.runner.progress import Progress

            return Progress
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return what is for users, and none of the modules that were imported for it."""
    return [*__all__, "__version__"]


def run(options: "RunOptions", *, home: Path | str | None = None, progress: "Progress | None" = None) -> "RunDirectory":
    """Run every cell that the options ask for, each in a fresh guest, and return the finished run.

    ``home`` is the store, by default AGELAB_HOME or the user's. ``progress`` follows the run; without one nothing is
    said. What goes wrong in a cell is its status. Raises InputError for options that cannot be fulfilled and HostError
    where this host cannot run them, both before the first cell.
    """
    from agelab.base.errors import silent
    from agelab.runner import sequential
    from agelab.runner.execute import runner
    from agelab.runner.reuse.artefacts import CachedArtefacts
    from agelab.store.home import open_store

    say = progress.stage if progress else silent
    store = open_store(Path(home) if home else None, shared=CachedArtefacts(say))
    if options.until_decided:
        return sequential.run_until_decided(options, store, progress)[0]
    return runner.run(options, store, progress)


def find(name: str = "latest", *, home: Path | str | None = None) -> "RunDirectory":
    """Return the run of that name, or whose name begins so, or which lies at that path.

    ``home`` is the store, by default AGELAB_HOME or the user's. Raises InputError for a run that does not exist.
    """
    from agelab.results import run_lookup
    from agelab.store.artefacts import Store
    from agelab.store.home import default_home

    return run_lookup.find(Store(Path(home) if home else default_home()).runs, name)


def load(*runs: "str | RunDirectory", home: Path | str | None = None) -> "pandas.DataFrame":
    """Load runs into one pandas frame: a row for each sample, with all that tells its cell from others.

    ``runs`` are what ``run`` returns, or names as ``agelab list`` has them, or the beginnings of names; without any it
    is the latest. ``home`` is the store, by default AGELAB_HOME or the user's. The columns are
    agelab.results.rows.COLUMNS; ``value`` is a number in ``unit``, or NaN with the reason in ``not_measured``.
    Raises InputError for a run that does not exist, HostError without pandas.
    """
    from agelab.base.errors import HostError
    from agelab.results import rows

    try:
        import pandas
    except ImportError as error:
        raise HostError(
            "agelab.load makes a pandas frame, and pandas is not installed",
            hint="install it beside agelab: pip install 'agelab[pandas]', in a clone .venv/bin/pip install pandas",
        ) from error
    chosen = [find(run, home=home) if isinstance(run, str) else run for run in runs or ("latest",)]
    frame = pandas.DataFrame([row for run in chosen for row in rows.rows(run)], columns=list(rows.COLUMNS))
    return frame.astype({"value": "float64"})
