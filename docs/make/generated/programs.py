"""The registered metrics; the programs of steps, with what their output holds."""

from collections.abc import Iterator, Mapping

from agelab.scenario.metrics import METRICS, Metric
from agelab.scenario.workload import OwnMetric
from agelab.scenario.workloads import programs
from docs.make.generated.markdown import code, plain, table

AS_READ = ("write", "trim", "mixed")
"""Directions whose metrics differ from those of reads by this word alone; the page says so."""


def table_of_metrics() -> str:
    """Write a table of all metrics with unit and meaning."""
    return _table_of(METRICS)


def sections() -> str:
    """Write a section for each program: what it does, its packages, its limits, its metrics."""
    return "\n".join(_sections())


def _sections() -> Iterator[str]:
    for program in programs():
        came = (
            f"packages {', '.join(program.packages)}"
            if program.packages
            else f"a file {program.brought} that is brought"
        )
        yield f"### {program.name}\n"
        takes = f", takes a {program.job}" if program.job else ""
        yield plain(f"{program.summary[:1].upper()}{program.summary[1:]} ({came}{takes}).") + "\n"
        for limit in program.limits:
            yield f"- {plain(limit)}"
        yield f"\n{_table_of(program.metrics)}\n"


def _table_of(metrics: Mapping[str, Metric] | Mapping[str, OwnMetric]) -> str:
    rows = (
        [code(name), plain(metric.unit), plain(metric.meaning)]
        for name, metric in metrics.items()
        if not any(f"_{way}_" in name and name.replace(f"_{way}_", "_read_") in metrics for way in AS_READ)
    )
    return table(["metric", "unit", "meaning"], rows)
