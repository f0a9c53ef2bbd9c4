"""The modelled disk against traces of real drives: how far apart the distributions of response times are.

    .venv/bin/python -m validation.demerit DIRECTORY [--figures KIND] [--write]

Replays every trace of a directory (validation/drive_traces.py has the format) through the drive's C files, compiled for
the host: no guest. A request arrives when the one before has completed and the trace's time has passed. The profile
is made of more and more figures, from ``sheet``, as the files of scenarios/drives, to ``measured``
(validation/traced_profile.py has the kinds and their rules). With --write the table of all goes into
docs/validation.md.

Printed are the mean measured and modelled, the root mean square of the horizontal distance between the two
distributions of response times, and that in percent of the measured mean: the demerit figure of C. Ruemmler and
J. Wilkes, "An Introduction to Disk Drive Modeling", IEEE Computer 27(3), 1994.

Where the platters stood at the first request is in no trace, and a drive's true speed, by which their angle could be
followed from one request to the next, differs from the nominal one by a few per mille. So each trace is replayed from
PHASES angles, evenly spaced, and the modelled distribution is that of all of them.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import fmean

from agelab.machine.drive import geometry
from agelab.scenario.drive import Drive
from docs.make import command
from docs.make.command import Answer
from docs.make.page import columns, grid
from tests.model.native import Library, compiled
from validation.drive_traces import Request, TracedDrive, read_all, stands_before
from validation.traced_profile import Figures, profile

PHASES = 8
KINDS = ("all", "reads", "writes")
_US = 1000


@dataclass(frozen=True)
class Demerit:
    """One comparison; times are in milliseconds."""

    measured: float
    modelled: float
    distance: float
    """Root mean square of the horizontal distance."""

    @property
    def percent(self) -> float:
        """The demerit figure."""
        return self.distance / self.measured * 100


@dataclass(frozen=True)
class Result:
    """A drive's demerits, of all requests, reads and writes; None where there are none of that kind."""

    name: str
    demerits: tuple[Demerit | None, ...]


def gaps_before(traced: TracedDrive) -> list[float]:
    """Return the microseconds between each request's arrival and the completion of the one before."""
    gaps = [request.gap for request in traced.requests]
    own = stands_before(traced.mechanics, traced.requests, writes_tell=not traced.electronics.write_back)
    return gaps if own else [0, *gaps[:-1]]


def replay(
    library: Library, drive: Drive, requests: Sequence[Request], gaps: Sequence[float], phase: float
) -> list[float]:
    """Return the modelled response times in milliseconds; ``phase`` is a share of a revolution."""
    text = geometry.module_parameters(drive, name="drive0", run_seed=1, index=0)
    words = dict(word.split("=", 1) for word in text.split())
    words["phase_ns"] = str(int(int(words["revolution_ns"]) * phase))
    native = library.drive(" ".join(f"{key}={value}" for key, value in words.items()))
    now, took = 0, []
    for request, gap in zip(requests, gaps, strict=True):
        now += round(gap * _US)
        serve = native.write if request.write else native.read
        done = serve(request.first, request.sectors, now)
        took.append((done - now) / 1e6)
        now = done
    return took


def demerit(measured: Sequence[float], modelled: Sequence[float]) -> Demerit:
    """Compare two distributions; of the second there may be a multiple of the first's."""
    times = len(modelled) // len(measured)
    real = [time for time in sorted(measured) for _ in range(times)]
    squares = ((real_time - model_time) ** 2 for real_time, model_time in zip(real, sorted(modelled), strict=True))
    return Demerit(fmean(measured), fmean(modelled), sqrt(fmean(squares)))


def compare(library: Library, traced: TracedDrive, drive: Drive) -> Result:
    """Replay a drive's trace from each angle and compare."""
    gaps = gaps_before(traced)
    runs = [replay(library, drive, traced.requests, gaps, number / PHASES) for number in range(PHASES)]
    demerits: list[Demerit | None] = []
    for kind in KINDS:
        chosen = [
            at for at, request in enumerate(traced.requests) if kind == "all" or request.write == (kind == "writes")
        ]
        measured = [traced.requests[at].response / _US for at in chosen]
        demerits.append(demerit(measured, [run[at] for run in runs for at in chosen]) if chosen else None)
    return Result(traced.name, tuple(demerits))


def rows(results: Sequence[Result]) -> Iterator[list[str]]:
    """Each drive's figures, and the mean of the drives' demerits."""
    for result in results:
        for kind, of_kind in zip(KINDS, result.demerits, strict=True):
            if of_kind:
                times = [f"{of_kind.measured:.3f}", f"{of_kind.modelled:.3f}", f"{of_kind.distance:.3f}"]
                yield [result.name if kind == "all" else "", kind, *times, f"{of_kind.percent:.2f}"]
    for kind, mean in zip(KINDS, _means(results), strict=True):
        yield ["mean" if kind == "all" else "", kind, "", "", "", mean]


HEAD = ("drive", "requests", "measured, ms", "modelled, ms", "distance, ms", "demerit, %")


def page_table(results: Mapping[Figures, Sequence[Result]]) -> str:
    """Write the table of docs/validation.md: for each kind of profile the drives' demerits, and their means."""
    of_drives = results[Figures.SHEET]
    head = [
        "profile",
        *(f"`{result.name}`" for result in of_drives),
        "mean",
        *(f"mean: {kind}" for kind in KINDS[1:]),
    ]
    measured = [f"{result.demerits[0].measured:.2f}" if result.demerits[0] else "-" for result in of_drives]
    rows = [["*measured mean, ms*", *measured, *[""] * len(KINDS)]]
    for figures, modelled in results.items():
        rows.append([figures.value, *(_percent(result.demerits[0]) for result in modelled), *_means(modelled)])
    return "\n".join(grid(head, rows, ["---", *["---:"] * (len(head) - 1)])) + "\n"


def _means(results: Sequence[Result]) -> Iterator[str]:
    """The mean of the drives' demerits, of each kind of request."""
    for at in range(len(KINDS)):
        percents = [of_kind.percent for result in results if (of_kind := result.demerits[at])]
        yield f"{fmean(percents):.2f}" if percents else "-"


def _percent(of_kind: Demerit | None) -> str:
    return f"{of_kind.percent:.2f}" if of_kind else "-"


def measure(options: argparse.Namespace) -> Answer:
    """Replay the traces with the chosen kind of profile; for the page with all."""
    asked = list(Figures) if options.write else [Figures(options.figures)]
    traced = read_all(options.directory)
    with tempfile.TemporaryDirectory() as directory:
        library = Library(compiled(Path(directory) / "drive.so", "-O2", "-shared", "-fPIC"))
        results = {figures: [compare(library, drive, profile(drive, figures)) for drive in traced] for figures in asked}
    printed = (
        f"figures: {figures.value}\n{columns(HEAD, list(rows(of_drives)))}" for figures, of_drives in results.items()
    )
    return Answer({"demerit": page_table(results)} if options.write else {}, "\n".join(printed))


def main() -> int:
    """Return the exit code."""
    parser = command.parser(__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--figures", choices=[choice.value for choice in Figures], default=Figures.MANUAL.value)
    return command.run(parser, measure)


if __name__ == "__main__":
    sys.exit(main())
