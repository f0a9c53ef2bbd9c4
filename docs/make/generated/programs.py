"""The programs of steps, with what their output holds."""

from collections.abc import Iterator

from agelab.scenario.workloads import programs
from docs.make.generated.markdown import code, plain, table


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
        rows = (
            [code(name), plain(metric.unit), plain(metric.meaning)]
            for name, metric in program.metrics.items()
        )
        yield "\n" + table(["metric", "unit", "meaning"], rows) + "\n"
