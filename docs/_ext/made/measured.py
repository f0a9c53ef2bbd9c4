"""Every metric there is."""

from agelab.model.metrics import METRICS
from made.markdown import code, plain, table


def metrics() -> str:
    """A table: name, unit, meaning."""
    rows = ([code(name), plain(one.unit), plain(one.meaning)] for name, one in METRICS.items())
    return table(["metric", "unit", "meaning"], rows)
