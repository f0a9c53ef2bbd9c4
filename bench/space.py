"""The space comparison of docs/aging.md: what the data that just fill zfs take on every filesystem.

    .venv/bin/python -m bench.space [--jobs 2] [--run RUN] [--write]

Runs scenario ``space`` with every variant (or takes a run that is there), prints the table, and with --write puts it
into docs/aging.md.
"""

import argparse
import sys
from collections.abc import Mapping

from agelab.cli.common import open_store
from agelab.cli.request import execute, request
from agelab.errors import AgelabError
from agelab.model.result import Status
from agelab.results import rundir
from agelab.results.rundir import RunDirectory
from bench.common import ARGUMENTS
from bench.page import DOCS, line, put

HEAD = (
    "variant", "held, MB", "of the data, %", "pieces without room", "used, MB", "used / held", "full at, %"
)  # fmt: skip


def report(run: RunDirectory) -> str:
    """The table in Markdown: who takes least for it first, those that do not hold it all last."""
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
            (cell.variant, {(one.step, one.metric): one.value or 0 for one in samples.get(number, [])})
        )
    whole = max(values["count", "content_bytes"] for _, values in cells)
    cells.sort(
        key=lambda one: (one[1]["count", "content_bytes"] < whole, one[1]["count", "space_used"], one[0])
    )
    lines = [
        f"Run seed 1; scale {plan.scale}, kernel {plan.provenance['kernel']}, {plan.provenance['qemu']}.",
        "",
        line(HEAD),
        line(["---"] * len(HEAD)),
        *(line([variant, *_figures(values, whole)]) for variant, values in cells),
        "",
        *others,
    ]
    return "\n".join(lines).rstrip() + "\n"


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


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--run", help="a run that is there, instead of a new one")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    try:
        if options.run:
            run = rundir.find(open_store().runs, options.run)
        else:
            run = execute(request("space", {**ARGUMENTS, "seeds": "1", "jobs": options.jobs}))
        text = report(run)
        print(text)
        if options.write:
            put(DOCS / "aging.md", "python -m bench.space --write", text)
    except AgelabError as error:
        print(f"bench.space: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
