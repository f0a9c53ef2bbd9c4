"""The table of system calls of the passes under strace."""

from collections.abc import Mapping, Sequence

from rich.console import Console

from agelab.evaluate.derived_samples import WAITING
from agelab.present.view.terminal import Head, print_table
from agelab.results.result import Sample

SMALLEST = 0.005
"""Calls with a smaller share of their step's time share a row."""
HEADS: tuple[Head, ...] = (
    (" system call", "left"), ("s", "right"), ("%", "right"), ("calls", "right"), ("errors", "right")
)  # fmt: skip
METRICS = ("syscall_seconds", "syscall_calls", "syscall_errors")

Calls = Mapping[str, Mapping[str, Sample]]


def traced_steps(samples: Sequence[Sample]) -> set[str]:
    return {one.step_id.group for one in samples if one.metric in METRICS}


def print_syscalls(console: Console, samples: Sequence[Sample]) -> None:
    """Print for each step the calls that took the most time, then those that wait for a process."""
    steps: dict[str, dict[str, dict[str, Sample]]] = {}
    took = {one.step: one.value for one in samples if one.metric == "elapsed"}
    for sample in samples:
        if sample.metric.startswith("syscall_"):
            call = sample.step_id
            steps.setdefault(call.group, {}).setdefault(call.name, {})[sample.metric] = sample
    if not steps:
        return
    rows: list[tuple[str, ...]] = []
    for step, calls in steps.items():
        rows += [(f" {step}, {took.get(step) or 0:.6f} s in all", "", "", "", ""), *_rows(calls)]
    print_table(console, HEADS, rows)


def _rows(calls: Calls) -> list[tuple[str, ...]]:
    shares = {
        name: of["syscall_share"].value or 0 if "syscall_share" in of else 0.0
        for name, of in calls.items()
        if name not in WAITING
    }
    ranked = sorted(shares, key=lambda name: -shares[name])
    large = [name for name in ranked if shares[name] >= SMALLEST]
    small = [name for name in ranked if shares[name] < SMALLEST]
    waiting = [name for name in calls if name in WAITING]
    rows = [_row(name, [calls[name]], f"{100 * shares[name]:.1f}") for name in large]
    if small:
        rest = sum(shares[name] for name in small)
        rows.append(_row(f"{len(small)} others", [calls[name] for name in small], f"{100 * rest:.1f}"))
    return rows + [_row(name, [calls[name]], "waits") for name in waiting]


def _row(label: str, calls: Sequence[Mapping[str, Sample]], share: str) -> tuple[str, ...]:
    seconds, count, errors = (
        sum(of[metric].value or 0 for of in calls if metric in of) for metric in METRICS
    )
    return f"   {label}", f"{seconds:.6f}", share, f"{count:.0f}", f"{errors:.0f}"
