"""Find what an instruction and a byte cost on the studies' processors, from lmbench figures that people published.

    .venv/bin/python -m validation.machines [--kernel debian:6.1] [--write]

Counts the guest instructions of each call of machine_calls/calls.c, which does what lmbench times, and divides the
cycles of machine_calls/published.csv by them. A processor's cycles an instruction are the geometric mean over the calls
of its family's figures that move no data; the band is the range of the systems that were measured, or wider where the
processor has no figure of its own. What *file reread* and *mem write* take beyond their instructions is the wait for
memory: the price of a byte that is copied out of the page cache, and into it (harness/drive/price.c). Two figures are
shown alone: null I/O is mostly the entry into the kernel, which is microcode of its time, and bcopy is the C library's.
None of the figures comes from a study. --write rewrites instructions_per_cycle and byte_price in scenarios/machines/
and the tables of docs/machines.md.
"""

import argparse
import base64
import csv
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, log2
from pathlib import Path
from statistics import geometric_mean, pstdev
from typing import Literal

from agelab import kernel as kernels
from agelab.base.errors import AgelabError
from agelab.cli.options import open_store
from agelab.machine.image import tools
from agelab.runner.bench import Bench, bench
from agelab.scenario import selection, toml_files
from agelab.scenario.machine import Band, Machine
from docs.make import command
from docs.make.command import Answer
from docs.make.page import grid

CALLS = Path(__file__).with_name("machine_calls")
PUBLISHED = CALLS / "published.csv"
PROGRAM = Path(__file__).with_name("machines_guest.py")
MEMORY_MIB = 256
FITTED = {
    "stat": "stat",
    "open/close": "open_close",
    "sig install": "sig_install",
    "sig handle": "sig_handle",
    "fork+exit": "fork_exit",
    "pipe latency": "pipe",
}
"""lmbench's name of each figure in the mean, and the program's."""
BYTES = {"file reread": "file_reread", "mem write": "mem_write"}
"""lmbench's name of each figure of bytes, read and written, and the program's."""
SHOWN = {"null I/O": "null_io", "bcopy libc": "bcopy"}
FAMILIES = {
    "P6": ("Pentium III", "550 MHz P6"),
    "NetBurst": ("2400 MHz, CPU unnamed (P4", "2765 MHz, CPU unnamed (Northwood", "Xeon 2.4 GHz (NetBurst)"),
    "K7": ("Athlon 1333",),
    "K8": ("1993 MHz x86_64, CPU unnamed (K8",),
}
"""How the processors of each family begin in the table; Celerons, with a quarter of a Pentium III's cache, are none."""
FAMILY_OF = {
    "pentium3-500": "P6",
    "pentium4-2530": "NetBurst",
    "pentium4-2660": "NetBurst",
    "pentium4-2800": "NetBurst",
    "athlonxp-2600": "K7",
    "athlon64-3200": "K8",
    "core2duo-3000": "K8",
}
EXTRAPOLATED = {
    "athlonxp-2600": "the same core at 1333 MHz with slower memory: at a higher clock a miss costs more cycles",
    "core2duo-3000": "no figure of its family: as many cycles an instruction as the latest processor that has one",
}


MEASURED_MHZ = {"athlonxp-2600": 1333}
"""The clock at which the family's figures were measured, where it is far from the machine's."""


@dataclass(frozen=True)
class PublishedFigure:
    """One figure of the table: cycles of a call, or of a byte."""

    cpu: str
    system: str
    """Processor, kernel and source: one system that was measured."""
    metric: str
    cycles: float


@dataclass(frozen=True)
class Cost:
    """What an instruction and a byte cost on a family of processors."""

    cycles: float
    """Mean cycles of an instruction."""
    low: float
    high: float
    """The same of single systems: the range."""
    residuals: Mapping[str, float]
    """Metric to the cycles of its instructions, as multiples of the mean."""
    read: float
    """Cycles for which the processor waits for a byte that it reads."""
    written: float
    """Cycles for which it waits for a byte that it writes."""

    @property
    def spread(self) -> float:
        """How far apart the calls of the mean lie: the geometric standard deviation."""
        return exp(pstdev(log(ratio) for metric, ratio in self.residuals.items() if metric in FITTED))


def published(path: Path = PUBLISHED) -> list[PublishedFigure]:
    """Read the table. Raises AgelabError with every line that is none."""
    figures, wrong = [], []
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), start=2):
            try:
                mhz, value = float(row["mhz"]), float(row["value"])
                cycles = {"us": value * mhz, "ns": value * mhz / 1e3, "MB/s": mhz / value}[row["unit"]]
            except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
                wrong.append(f"{path.name}, line {number}: {error!r}")
                continue
            system = f"{row['cpu']}, {row['kernel']}, {row['source']}"
            figures.append(PublishedFigure(row["cpu"], system, row["metric"].removeprefix("lmbench "), cycles))
    if wrong:
        raise AgelabError("; ".join(wrong))
    return figures


def instructions(
    place: Bench, program: Path, machine: Machine, copy_prices: Mapping[str, int] | None
) -> dict[str, float]:
    """Return the guest instructions of each call, or of a byte. Raises AgelabError where the guest does not finish."""
    job = {"program": base64.b64encode(program.read_bytes()).decode(), "copy_prices": copy_prices}
    boot = place.boot(PROGRAM.read_bytes(), job, machine, MEMORY_MIB)
    if reason := boot.only("end")["reason"]:
        raise AgelabError(f"the guest failed: {reason}\n{boot.tail}")
    calls = [line for line in boot.events if line["event"] == "call"]
    return {line["name"]: line["ns"] / (1 << machine.shift) for line in calls}


def cost(counted: Mapping[str, float], figures: Sequence[PublishedFigure], probe: float = 0) -> Cost:
    """Return what an instruction and a byte cost by the figures of a family.

    ``probe`` are the instructions for each byte that the probe executes where a byte costs nothing: they are part of
    what is counted of *file reread*, and come off the price of a byte that is written.
    """
    by_call: dict[str, list[float]] = defaultdict(list)
    by_system: dict[str, list[float]] = defaultdict(list)
    for figure in figures:
        if call := (FITTED | BYTES | SHOWN).get(figure.metric):
            ratio = figure.cycles / counted[call]
            by_call[figure.metric].append(ratio)
            if figure.metric in FITTED:
                by_system[figure.system].append(ratio)
    means = {metric: geometric_mean(ratios) for metric, ratios in by_call.items()}
    mean = geometric_mean([means[metric] for metric in FITTED if metric in means])
    systems = [geometric_mean(ratios) for ratios in by_system.values()]
    residuals = {name: ratio / mean for name, ratio in means.items()}
    waits = {call: (means[metric] - mean) * counted[call] for metric, call in BYTES.items() if metric in means}
    return Cost(
        mean,
        min(systems),
        max(systems),
        residuals,
        max(0, waits.get("file_reread", 0)),
        max(0, waits.get("mem_write", 0) - probe * mean),
    )


def band(machine: Machine, costs: Mapping[str, Cost]) -> Band:
    """Return the band of a machine's instructions in a cycle: its low end is the dear one.

    It is the range of its family's systems. A processor without figures of its own gets a wider one (docs/machines.md):
    ``apart`` is the factor by which the system farthest from its family's mean lies from it.
    """
    own = costs[FAMILY_OF[machine.name]]
    apart = max(
        max(of_family.cycles / of_family.low, of_family.high / of_family.cycles) for of_family in costs.values()
    )
    origin: Literal["calibrated", "estimated"] = "estimated"
    if machine.name in MEASURED_MHZ:
        faster = machine.clock_mhz.value / MEASURED_MHZ[machine.name]
        cheap, dear = own.cycles / apart, own.cycles * apart * faster
        why = f"one system alone: {apart:.2f} each way; dear: {faster:.2f} times the clock gains nothing"
    elif machine.name in EXTRAPOLATED:
        cheap, dear = min(of_family.low for of_family in costs.values()) / apart, own.high
        why = f"cheap: {apart:.2f} times better than the best system of any family; dear: as the worst K8"
    else:
        cheap, dear, origin, why = own.low, own.high, "calibrated", "single systems of its family"
    return Band(low=round(1 / dear, 3), high=round(1 / cheap, 3), origin=origin, note=why)


def write(machine: Machine, costs: Mapping[str, Cost]) -> None:
    """Rewrite a machine's instructions_per_cycle, byte_price, and shift: the nearest, so that little is dilated."""
    of_family, ends = costs[FAMILY_OF[machine.name]], band(machine, costs)
    path = toml_files.SCENARIOS / "machines" / f"{machine.name}.toml"
    how = EXTRAPOLATED.get(machine.name, "")
    spread = f"{1 / of_family.high:.2f} to {1 / of_family.low:.2f} by single systems"
    made_by = f"validation/machines.py, lmbench figures of {FAMILY_OF[machine.name]}"
    figure = (
        f'[instructions_per_cycle]\nvalue = {1 / of_family.cycles:.3f}\norigin = "calibrated"\n'
        f'note = "{made_by}: {spread}{how and "; "}{how}"\n'
        f'band = {{ low = {ends.low}, high = {ends.high}, origin = "{ends.origin}", note = "{ends.note}" }}\n'
    )
    price = (
        f"[byte_price]\nread = {of_family.read:.2f}\nwritten = {of_family.written:.2f}\n"
        f'origin = "{"estimated" if how else "calibrated"}"\n'
        f'note = "{made_by}: file reread, mem write{how and "; "}{how}"\n'
    )
    text = path.read_text(encoding="utf-8")
    shift = max(0, round(log2(of_family.cycles * 1000 / machine.clock_mhz.value)))
    text = re.sub(r"^shift = \d+$", f"shift = {shift}", text, flags=re.MULTILINE)
    text = re.sub(r"\n\[byte_price\]\n(?:\w.*\n)+", "", text)
    text = re.sub(r"\[instructions_per_cycle\]\n(?:\w.*\n)+", f"{figure}\n{price}", text)
    path.write_text(text, encoding="utf-8")


def report(counted: Mapping[str, float], costs: Mapping[str, Cost]) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of the table: a call in each row."""
    head = ["call", "instructions", *(f"{family}: cycles an instruction" for family in costs)]
    rows = []
    for metric, call in (FITTED | BYTES | SHOWN).items():
        own = [
            f"{of_family.cycles * of_family.residuals[metric]:.2f}" if metric in of_family.residuals else "-"
            for of_family in costs.values()
        ]
        beside = "" if metric in FITTED else " (not in the mean)"
        rows.append([f"{metric}{beside}", _size(counted[call]), *own])
    ranges = [f"{family.cycles:.2f} ({family.low:.2f}-{family.high:.2f})" for family in costs.values()]
    rows.append(["mean, and its range", "", *ranges])
    rows.append(["spread of the calls", "", *(f"{family.spread:.2f}" for family in costs.values())])
    rows.append(["wait for a byte read, cycles", "", *(f"{family.read:.2f}" for family in costs.values())])
    rows.append(["wait for a byte written, cycles", "", *(f"{family.written:.2f}" for family in costs.values())])
    return head, rows


def _size(instructions: float) -> str:
    return f"{instructions:.0f}" if instructions > 10 else f"{instructions:.2f} a byte"


def band_rows(costs: Mapping[str, Cost]) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of the machines' bands."""
    head = ["machine", "instructions a cycle", "band", "origin", "how"]
    rows = []
    for name, family in FAMILY_OF.items():
        ends = band(selection.machine(name), costs)
        value = f"{1 / costs[family].cycles:.3f}"
        rows.append([f"`{name}`", value, f"{ends.low:g}-{ends.high:g}", ends.origin, ends.note])
    return head, rows


def measure(options: argparse.Namespace) -> Answer:
    """Count, and compare with the published figures."""
    store = open_store()
    figures = published()
    program = tools.obtain(store, sources=CALLS)["calls"]
    with (
        tempfile.TemporaryDirectory() as directory,
        bench(store, options.kernel, Path(directory)) as place,
    ):
        machine = selection.machine("pentium4-2800")
        bare = instructions(place, program, machine, None)
        counted = instructions(place, program, machine, {"read": 0, "written": 0})
        print(f"Linux {place.image.kernel.release}")
    probe = counted["file_reread"] - bare["file_reread"]
    print(f"the probe executes {4096 * probe:.0f} instructions for a page of 4096 bytes")
    costs = {
        family: cost(counted, [figure for figure in figures if figure.cpu.startswith(names)], probe)
        for family, names in FAMILIES.items()
    }
    for name, family in FAMILY_OF.items():
        machine = selection.machine(name)
        ns = costs[family].cycles * 1000 / machine.clock_mhz.value
        print(
            f"{name}: {ns:.3f} ns an instruction (the file: {machine.instruction_ns:.3f}), "
            f"{costs[family].read:.2f} and {costs[family].written:.2f} cycles for a byte read and written"
        )
        if options.write:
            write(machine, costs)
    tables = {"machines": report(counted, costs), "machine-bands": band_rows(costs)}
    return Answer({name: "\n".join(grid(*table)) for name, table in tables.items()})


def main() -> int:
    """Return the exit code."""
    parser = command.parser(__doc__)
    parser.add_argument("--kernel", default=kernels.DEFAULT)
    return command.run(parser, measure)


if __name__ == "__main__":
    sys.exit(main())
