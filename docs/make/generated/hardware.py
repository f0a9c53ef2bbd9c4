"""The drives and machines that agelab has, with the origin of each figure."""

from collections.abc import Callable, Iterable

from agelab.base.types import Sourced
from agelab.scenario import selection, toml_files
from agelab.scenario.drive import Drive, Flash, RotatingDisk, SolidState
from agelab.scenario.machine import Machine
from docs.make.generated.markdown import table

MARKS = {"published": "", "inferred": " *i*", "calibrated": " *c*", "estimated": " *e*"}
"""What follows a figure, by its origin."""


def table_of_drives(kind: str) -> str:
    """Write a table of the drives whose medium is of that kind."""
    medium, head, cells = KINDS[kind]
    drives = [drive for drive in selection.drives() if isinstance(drive.medium, medium)]
    return table(
        ["drive", "what it is", *head],
        ([f"`{drive.name}`", drive.summary, *cells(drive, drive.medium)] for drive in drives),
    )


def table_of_machines() -> str:
    """Write a table of all machines."""
    return table(
        [
            *("machine", "clock MHz", "instructions a cycle", "ns an instruction, on the guest's clock"),
            *("cycles a byte read, written", "memory, swap MiB", "drives"),
        ],
        ([*_machine(machine)] for machine in toml_files.read_all("machines", Machine)),
    )


def _marked(figure: Sourced, value: object) -> str:
    """Write a value with its origin's mark."""
    return f"{value}{MARKS[figure.origin]}"


def _figures(*figures: Sourced, by: str = " / ") -> str:
    return by.join(_marked(figure, f"{figure.value:g}") for figure in figures)  # type: ignore[attr-defined]


def _disk(drive: Drive, medium: RotatingDisk) -> Iterable[str]:
    yield f"{medium.rpm.value}, {_figures(medium.heads)}"
    yield _figures(medium.outer_mb_s, medium.inner_mb_s)
    yield _figures(*(medium.track_to_track_ms, medium.average_ms, medium.full_stroke_ms, medium.write_average_ms))
    yield from (_figures(drive.cache.kib), drive.interface.name, _figures(drive.queue_depth))


def _flash(drive: Drive, medium: Flash) -> Iterable[str]:
    yield from (_figures(medium.read_us, medium.write_us), _figures(medium.channels))
    yield from (_figures(medium.read_mb_s, medium.write_mb_s), drive.interface.name)
    yield _figures(drive.queue_depth)


def _solid_state(drive: Drive, medium: SolidState) -> Iterable[str]:
    yield _figures(medium.channels, medium.dies_per_channel, medium.planes, by=" x ")
    yield _figures(medium.page_kib, medium.block_kib, medium.bits_per_cell, by=", ")
    yield f"{_figures(medium.read_us, medium.program_us)}, {_figures(medium.erase_ms)}"
    yield _figures(medium.over_provisioning_percent)
    yield _figures(medium.fast_mib) if medium.fast_mib else "none"
    yield _figures(medium.map_kib) if medium.map_kib else "all"
    yield from (_figures(drive.cache.kib), _figures(drive.queue_depth))


def _machine(machine: Machine) -> Iterable[str]:
    yield from (f"`{machine.name}`", _figures(machine.clock_mhz), _figures(machine.instructions_per_cycle))
    yield f"{machine.instruction_ns:.2f}, {1 << machine.shift}"
    price, swap = machine.byte_price, machine.swap
    yield _marked(price, f"{price.read:g}, {price.written:g}") if price else "-"
    swaps = f"{_marked(swap, f'{swap.mib:g}')} on `{machine.drives[swap.drive].drive}`" if swap else "none"
    yield f"{_figures(machine.memory_mib)}, {swaps}"
    yield ", ".join(f"`{drive.drive}`" for drive in machine.drives)


KINDS: dict[str, tuple[type, tuple[str, ...], Callable[..., Iterable[str]]]] = {
    "disks": (
        RotatingDisk,
        (
            *("rpm, heads", "outer / inner MB/s", "seek: next / mean / full / mean write, ms", "cache KiB"),
            *("interface", "queue"),
        ),
        _disk,
    ),
    "flash": (
        Flash,
        ("read / write, us", "channels", "read / write MB/s", "interface", "queue"),
        _flash,
    ),
    "ssds": (
        SolidState,
        (
            *("channels x dies x planes", "page, block KiB, bits a cell", "read / program us, erase ms"),
            *("spare %", "fast MiB", "map KiB", "buffer KiB", "queue"),
        ),
        _solid_state,
    ),
}
"""For each kind of medium its type, what its table tells, and how that is read."""
