"""The registered metrics."""

from agelab.scenario.metrics import METRICS
from docs.make.generated.markdown import code, plain, table


def table_of_metrics() -> str:
    """Write a table of all metrics with unit and meaning."""
    rows = ([code(name), plain(metric.unit), plain(metric.meaning)] for name, metric in METRICS.items())
    return table(["metric", "unit", "meaning"], rows)
