"""The programs of steps, with what their output holds."""

from collections.abc import Iterator

from agelab.scenario.workloads import programs
from generated.markdown import code, plain, table


def sections() -> str:
    """Write a section for each program: what it does, its packages, its limits, its metrics."""
    return "\n".join(_sections())


def _sections() -> Iterator[str]:
    for one in programs():
        came = (
            f"packages {', '.join(one.packages)}" if one.packages else f"a file {one.brought} that is brought"
        )
        yield f"### {one.name}\n"
        takes = f", takes a {one.job}" if one.job else ""
        yield plain(f"{one.summary[:1].upper()}{one.summary[1:]} ({came}{takes}).") + "\n"
        for limit in one.limits:
            yield f"- {plain(limit)}"
        rows = (
            [code(name), plain(metric.unit), plain(metric.meaning)] for name, metric in one.metrics.items()
        )
        yield "\n" + table(["metric", "unit", "meaning"], rows) + "\n"
