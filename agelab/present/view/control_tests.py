"""The seconds that a control file's tests took, test by filesystem."""

from rich.console import Console

from agelab.analysis.cells import RunSet
from agelab.present.report.numbers import with_spread
from agelab.present.view.terminal import Head, print_table, print_wrapped
from agelab.results.result import RunPlan


def is_of_control_file(plan: RunPlan) -> bool:
    """Return True where the cells are the lines of a control file."""
    return plan.repeatable and bool(plan.command["options"].get("control"))


def print_tests(console: Console, group: RunSet) -> None:
    """Print the median of each test on each filesystem, the spread of its repetitions in brackets."""
    found: dict[tuple[str, str], str] = {}
    for subject in group.groups:
        for (step, metric), series in subject.steps.items():
            # A variant is called <filesystem>-<test>, and its test's step as the test.
            if metric == "elapsed" and series.summary and subject.variant.endswith(f"-{step}"):
                name = subject.variant.removesuffix(f"-{step}")
                found[step, name] = with_spread(series.summary, "s", 6)
    if not found:
        return
    tests, filesystems = (list(dict.fromkeys(names)) for names in zip(*found, strict=True))
    heads: list[Head] = [(" test, s", "left"), *((name, "right") for name in filesystems)]
    console.print()
    rows = [(f" {test}", *(found.get((test, name), "-") for name in filesystems)) for test in tests]
    print_table(console, heads, rows)
    if any(len(subject.counted) > 1 for subject in group.groups):
        print_wrapped(console, "medians; in brackets the spread over the repetitions")
