"""Write the results of bench/validate.py as a page."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agelab.model.drive import Drive, RotatingDisk
from agelab.model.machine import Machine

LIMIT = 0.02
PAGE = """\
# Validation of the modelled drives

`.venv/bin/python -m bench.validate --write` made this page and its figure. It makes every drive of
`scenarios/drives/` in one guest, measures it there by the guest's own clock, as a benchmark would measure a real
drive, and compares with the figures that the drive's settings were derived from. More than 2 % off is an error (exit
code 1). The clock is virtual: the same inputs give the same digits again, on any host. `make test` repeats it for one
disk and one flash drive, `make test-full` for all.

Furthest off is the figure {worst}. Made with
{versions}, machine
`{machine}`, at {instruction} ns an instruction the fastest there is: what the guest itself takes is least there.
Digest over every nanosecond measured: {digest}.

## Disks

{disks}

![Seek times and rates of four disks: profile, model and measurement](validation.svg)

The average seek is a mean over all distances: its ring stands where the curve has that time. The rate falls in 16
zones, so the measured ones are steps about the line, up to 5 % off it; only its ends are compared.

- **rates**: 64 MiB with O_DIRECT in the largest requests, one behind the other, from sector 0 on and up to the last
  one, after 1 MiB that is not timed. In the figure 2 MiB each at 40 places.
- **random reads**: 4,000 of 4 KiB, one behind the other, at places drawn uniformly over the *tracks*, as the data
  sheet's average seek is meant. Expected is 1 / (overhead + average seek + half a revolution + transfer), each from
  the drive's file.
- **full stroke**: reads of 4 KiB in turns on the last cylinder and the first, never where the drive's cache could
  have it; the shortest of 320, in which next to no rotation is left. Expected is overhead + full stroke + transfer at
  the outer edge.
- **seek curve** (the figure): for each of 60 distances the mean of 12 reads to and fro, less the overhead, and less
  the rotation and the transfer that the drive itself counts for them.

## Flash

{flash}

- **rates**: 64 MiB in the largest requests, all handed over at once (`io_submit`): one by one, each would wait for
  the chips.
- **random read**: the mean of 4,000 of 4 KiB at depth 1, less the {path:.1f} us that the guest itself takes for one.
  These are measured in the same guest on a drive whose every command takes 100 us exactly.
- **deep reads**: 8,000 of 4 KiB, all handed over at once, so that the drive has as many as it takes. From
  about {most:,.0f} a second on they measure the guest's processor.{beyond}

A real drive's DMA moves the data beside the processor; here the processor copies it, while the drive's own time
passes. In all measurements together it came {late:,.0f} us too late with that (`copy_late_ns`).

## Against traces of real drives

`.venv/bin/python -m bench.demerit DIRECTORY --write` made this table ([how](bench.md)). Traces of DiskSim's validation
set, each of one drive with one request at a time and its measured response times, are replayed through the drive's C
files. The figure is Ruemmler and Wilkes' demerit: the root mean square of the horizontal distance between the two
distributions of response times, in percent of the measured mean. *Brochure*, *manual* and *measured* say what the
profile is made of; `bench/traced_profile.py` has the rule, which is the same for all drives. None is fitted to the
response times; the rate of the host's bus alone is read from them.

<!-- made by: python -m bench.demerit --write -->
{traces}<!-- end -->

What is left has these causes, as far as they can be told:

- A read of the track on which the head is takes one to two milliseconds more on Atlas III and Barracuda than the
  electronics' time and the rotation; the model has nothing between.
- Reads of Cheetah 4LP that are 50 to 400 cylinders away take 1.5 to 2.5 ms longer than its measured curve says, and
  longer than those 400 to 800 away. A few of its cached writes take up to 14 ms.
- The overheads of a hit are off by 0.1 to 0.5 ms: they were extracted with another host.
- Where the platters stood is unknown, so the model's distribution is the mean over eight angles.
- The brochure's profile of Atlas III reads ahead after every read: the drive does so only after two in sequence. Those
  of the two HP drives move data over the bus while it is read: these drives read most of it first.

## Against what was measured in their day

`.venv/bin/python -m bench.press --write` made this table ([how](bench.md)) from `bench/press_measured.csv`: figures of
drives that are modelled here, measured by the press or a user in their day. *Sheet* is what the figures of the drive's
file give without a model, *model* what its C files take. Nothing is fitted to them.

<!-- made by: python -m bench.press --write -->
{press}<!-- end -->

*Off* says what misses the measured figure by more than 5 %: the model where the sheet would meet it, the sheet where
the model does what the sheet says. Each figure is of one specimen, and of a host and its driver with it.

- A random read of `samsung-hd501lj` is 2 ms quicker than that specimen's. The sheet without a model gives the same, so
  it is the sheet (8.9 ms of average seek), the specimen or its host: the review does not say in which seek mode it was.
- The outer rate of `wd-wd2500jb` is an estimate in its file, and that of `samsung-hd501lj` is from the study's own
  hdparm: here each has a second witness. That of `hitachi-hds722525vlat80` is the maker's, beside a drive of 40 GB on a
  450 MHz host, as a whole number.
- The 55 MiB/s of the WD2500JB are of Linux 2.4.20. On the 2.6.1 that the thread is about, the same drive gave 37, and
  its twin in a mirror, which failed within days, 38 and 30.
- No other access time and no inner rate of the four was found.

## The processor, against times that studies print

`.venv/bin/python -m bench.processor RUN... --write` made this table and its figure from runs ([how](bench.md)). What an
instruction costs comes from lmbench figures alone ([machines.md](machines.md)); the processor times that the studies
print are compared here, and nothing is made of them.

![Processor seconds of each step on each filesystem, ours over the study's](processor.svg)

<!-- made by: python -m bench.processor --write -->
{processor}<!-- end -->

Ours are too cheap on the whole. What can be told of it without the studies' figures, and what not:

- **Data.** On a P6 the reread of a file still takes 2.2 times the mean ([machines.md](machines.md)), since the
  counter has no memory to wait for: 1.5 cycles a byte are missing, 25 us for a page of 4 KiB that a 500 MHz processor
  reads and writes. With these, which are lmbench's, copies and reads of large files would be at 1.04 of theirs, 26 %
  off in the median.
- **Weights.** The mean over lmbench's calls counts the reread as one of seven. Counted as one of two, beside the mean
  of the six that move no data, it would make a P6's instruction 1.39 times dearer and a NetBurst's 0.97 times. That
  was worked out after this comparison, so it is not done: the comparison would no longer be independent.
- **Cold caches.** lmbench repeats one call, whose code and data stay in the cache; a step's have been driven out by
  the data that it moves. No figure of lmbench says how much that takes.
- **Kernels.** Ours is of today, theirs of 2.4.26 (table I) and 2.6.14 (table II), which are one machine's and not
  near each other either.
- **`remove-directories`** on reiserfs took 43 s on 2.6.14 and 5 s on 2.4.26: that does not shrink evenly either.
- **Shares** (`aging`) have the elapsed time below them, so what is wrong with the drive and the data is in them, too.
- The studies' `time` does not count the kernel's own threads and ours does, which makes ours larger, not smaller.

## What this shows, and what it does not

It shows that a drive's figures survive the way from its file to a read in a guest: the integers derived from them,
the module's arithmetic, its timers, the kernel's block layer above it. The model reproduces what it was given.

In a guest it does not show that such a drive does the same. Many of the figures are estimates
([drives.md](drives.md) says which). Between its three points a real drive's seek curve has its own shape, and its
zones have their own widths. The traces are of SCSI drives of the nineties, with one request at a time: when and in
which order what was written goes to the platters, and a queue, they do not show. Of writes only flash's rate is
measured in the guest. Nothing is modelled of errors, remapped sectors or heat, nor of flash that has to erase.
"""


@dataclass(frozen=True)
class Figure:
    """One figure of a drive."""

    drive: str
    name: str
    sheet: float
    measured: float
    reachable: bool = True
    """True when the guest's processor issues requests fast enough; otherwise the figure is not the drive's."""

    @property
    def deviation(self) -> float:
        """Share of the profile's figure."""
        return self.measured / self.sheet - 1

    @property
    def said(self) -> str:
        """The deviation, where it is one."""
        # No minus before a zero.
        return f"{round(self.deviation * 100, 2) + 0.0:+.2f} %" if self.reachable else "the guest's limit"

    @property
    def row(self) -> list[str]:
        """For a table."""
        return [self.drive, self.name, number(self.sheet), number(self.measured), self.said]


@dataclass(frozen=True)
class Curve:
    """A disk's seek times and rates as they were measured."""

    drive: Drive
    disk: RotatingDisk
    seeks: Sequence[tuple[float, float]]
    """Share of the full stroke, milliseconds."""
    rates: Sequence[tuple[float, float]]
    """Share of the drive's sectors, MB/s."""


@dataclass(frozen=True)
class Report:
    """All of it."""

    versions: str
    digest: str
    """Over everything that the guest measured, in nanoseconds."""
    machine: Machine
    path_us: float
    """Time that the guest adds to a small read, in microseconds."""
    most: float
    """Small reads a second that it can hand over."""
    late_us: float
    """Microseconds by which copying data exceeded the drives' own time, over all measurements."""
    figures: Sequence[Figure]
    curves: Sequence[Curve]

    @property
    def beyond(self) -> list[Figure]:
        """The figures whose deviation is above the limit."""
        return [one for one in self.figures if one.reachable and abs(one.deviation) > LIMIT]


def number(value: float) -> str:
    """With four digits, or all before the point."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _table(figures: Iterable[Figure]) -> list[str]:
    """Write one line for each drive, with three columns for each figure."""
    drives: dict[str, list[Figure]] = {}
    for one in figures:
        drives.setdefault(one.drive, []).append(one)
    names = [one.name for one in next(iter(drives.values()))]
    lines = [
        "| drive |" + "".join(f" {name} | measured | off |" for name in names),
        "|---|" + "---:|---:|---:|" * len(names),
    ]
    for drive, found in drives.items():
        cells = (f" {number(one.sheet)} | {number(one.measured)} | {one.said} |" for one in found)
        lines.append(f"| `{drive}` |" + "".join(cells))
    return lines


def document(report: Report, traces: str, press: str, processor: str) -> str:
    """Write the page docs/validation.md, with what bench/demerit.py, press.py and processor.py have put there."""
    disks = {curve.drive.name for curve in report.curves}
    worst = max((one for one in report.figures if one.reachable), key=lambda one: abs(one.deviation))
    beyond = [
        f"\n  `{one.drive}` can {number(one.sheet)}, of which the guest shows {number(one.measured)}: not counted."
        for one in report.figures
        if not one.reachable
    ]
    return PAGE.format(
        worst=f"{worst.name} of `{worst.drive}`, {worst.said}",
        versions=report.versions,
        digest=report.digest,
        machine=report.machine.name,
        instruction=2**report.machine.shift,
        disks="\n".join(_table(one for one in report.figures if one.drive in disks)),
        flash="\n".join(_table(one for one in report.figures if one.drive not in disks)),
        path=report.path_us,
        most=round(report.most, -3),
        beyond="".join(beyond),
        late=report.late_us,
        traces=traces,
        press=press,
        processor=processor,
    )
