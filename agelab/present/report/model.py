"""The page as frozen types, ready for the template."""

from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar


@dataclass(frozen=True)
class TableCell:
    text: str
    value: float | None = None
    """Sort key within the column; the text if not given."""
    code: bool = False


@dataclass(frozen=True)
class Heading:
    """Heading of a column; numbers are right-aligned."""

    name: str
    number: bool = False


def headings(*names: str, numbers: Container[str] = ()) -> tuple[Heading, ...]:
    """Make the headings of a table, of which ``numbers`` are right-aligned."""
    return tuple(Heading(name, name in numbers) for name in names)


@dataclass(frozen=True)
class Table:
    """A table that the reader can sort and, if long, filter."""

    kind: ClassVar[str] = "table"
    id: str
    caption: str
    columns: tuple[Heading, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Results:
    """A table too long for the page at once: its script shows a part at a time."""

    kind: ClassVar[str] = "results"
    id: str
    caption: str
    columns: tuple[Heading, ...]
    rows: tuple[tuple[str | float | None, ...], ...]


@dataclass(frozen=True)
class Chart:
    """A drawing and its description for screen readers."""

    title: str
    words: str
    draw: Callable[[], str]
    """Draws it as SVG, which takes a while: answers are also printed, without their charts."""

    @cached_property
    def svg(self) -> str:
        return self.draw()


@dataclass(frozen=True)
class Mark:
    """An entry of the charts' legend: name and number of the colour."""

    name: str
    colour: int
    dash: int = 0


@dataclass(frozen=True)
class Charts:
    """Small charts side by side with a common legend."""

    kind: ClassVar[str] = "charts"
    title: str
    charts: tuple[Chart, ...]
    legend: tuple[Mark, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Picture:
    """A picture made by a cell, as a data URL."""

    kind: ClassVar[str] = "picture"
    title: str
    words: str
    address: str


@dataclass(frozen=True)
class FlameGraph:
    """A flame graph that the reader opens, and its description."""

    kind: ClassVar[str] = "flame"
    title: str
    words: str
    svg: str


@dataclass(frozen=True)
class MapPanel:
    """A disk of a block map: a path of cells for each kind, top layer first, and their outline."""

    heading: str
    view: str
    layers: tuple[tuple[str, str], ...]
    outline: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class BlockMapFigure:
    """Block maps of disks, and the share of each kind (its name, in words, on each disk)."""

    kind: ClassVar[str] = "blockmap"
    title: str
    scale: str
    disks: tuple[MapPanel, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[str, ...]], ...]

    def words(self, disk: int) -> str:
        """Describe a disk for screen readers."""
        return "; ".join(f"{name} {shares[disk]}" for _, name, shares in self.rows)


@dataclass(frozen=True)
class Prose:
    """Paragraphs, or a list."""

    kind: ClassVar[str] = "prose"
    lines: tuple[str, ...]
    listed: bool = False
    title: str = ""


@dataclass(frozen=True)
class Facts:
    """Names with their values."""

    kind: ClassVar[str] = "facts"
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Command:
    """A command to copy."""

    kind: ClassVar[str] = "command"
    about: str
    text: str


Block = Table | Results | Charts | Picture | BlockMapFigure | FlameGraph | Prose | Facts | Command


@dataclass(frozen=True)
class Section:
    """A heading and the content below it."""

    id: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Answer:
    """The main result in plain words."""

    question: str
    verdict: str
    because: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    named: str = ""
    """Subject of the verdict, if it has one."""
    sure: str = ""
    """How sure it is, and of which files."""
    more: tuple[str, ...] = ()
    """What else the runs say to the question, for those who read on."""
    chart: Chart | None = None
    settled_by: str = ""
    """The command that settles what is open, also among the doubts."""


@dataclass(frozen=True)
class Part:
    """Runs that belong together."""

    id: str
    title: str
    subtitle: str
    answers: tuple[Answer, ...]
    brief: tuple[str, ...]
    """Doubts that must be read with the answers."""
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class Page:
    title: str
    parts: tuple[Part, ...]
    version: str
