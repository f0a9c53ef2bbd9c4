"""The space comparison of docs/aging.md: what the data that just fill zfs take on every filesystem."""

from collections.abc import Mapping, Sequence

from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from docs.make.catalogue import Made, Table
from docs.make.page import grid

HEAD = (
    "variant", "held, MB", "of the data, %", "pieces without room", "used, MB", "used / held", "full at, %"
)  # fmt: skip


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Make the table of one run: least space first, filesystems that cannot hold it all last."""
    [run] = runs
    plan, samples = run.plan(), run.samples()
    cells, others = [], []
    for number, cell in enumerate(plan.cells):
        end = run.end(number)
        if end is None or end.status is not Status.OK:
            others.append(
                f"- {cell.variant}: {end.status if end else 'interrupted'}: {end.reason if end else ''}"
            )
            continue
        cells.append(
            (
                cell.variant,
                {(sample.step, sample.metric): sample.value or 0 for sample in samples.get(number, [])},
            )
        )
    whole = max(values["count", "content_bytes"] for _, values in cells)
    cells.sort(
        key=lambda row: (row[1]["count", "content_bytes"] < whole, row[1]["count", "space_used"], row[0])
    )
    lines = [
        f"Run seed 1; scale {plan.scale}, kernel {plan.provenance['kernel']}, {plan.provenance['qemu']}.",
        "",
        *grid(HEAD, ([variant, *_figures(values, whole)] for variant, values in cells)),
        "",
        *others,
    ]
    return Made("\n".join(lines))


def _figures(values: Mapping[tuple[str, str], float], whole: float) -> list[str]:
    held, used = values["count", "content_bytes"], values["count", "space_used"]
    return [
        f"{held / 1e6:.1f}",
        f"{100 * held / whole:.1f}",
        f"{values.get(('fill', 'refused'), 0):.0f}",
        f"{used / 1e6:.1f}",
        f"{used / held:.3f}",
        f"{100 * values['count', 'fullness']:.1f}",
    ]
