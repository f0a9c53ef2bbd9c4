"""What agelab shows, as a document of frozen blocks: a verb builds one, and a terminal, Markdown or a page shows it.

Each renderer escapes what it is given: names and reasons come from guests and files.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Align = Literal["left", "right", "wrapped"]
"""The alignment of a column: left, right, or left on as many lines as it takes."""


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    """A line of words, on a terminal as several lines; those after the first are indented by ``hang``."""

    text: str
    hang: int = 0
    bold: bool = False


@dataclass(frozen=True)
class Line:
    """A line that stays whole, so that it can be copied."""

    text: str
    bold: bool = False


@dataclass(frozen=True)
class TableCell:
    text: str
    value: float | None = None
    """Sort key within the column; the text if not given."""
    code: bool = False
    colour: str = ""
    """Its colour on a terminal, and"""
    more: str = ""
    """a second line, which stands out."""
    href: str = ""
    """On a page, what it leads to: a file beside it."""


Row = Sequence[str | TableCell]


@dataclass(frozen=True)
class Column:
    """Heading of a column, in one line or several; numbers are right-aligned."""

    name: str
    align: Align = "left"

    @property
    def number(self) -> bool:
        return self.align == "right"


def headings(*names: str, numbers: Container[str] = (), wrapped: Container[str] = ()) -> list[Column]:
    """Make the columns of a table, of which ``numbers`` are right-aligned, and those that are ``wrapped`` wrap."""
    return [Column(name, "right" if name in numbers else "wrapped" if name in wrapped else "left") for name in names]


@dataclass(frozen=True)
class Table:
    """A table; on a page the reader can sort and, if long, filter it.

    A row that is one text stands across all columns. What is too wide for a terminal is shown in parts: each begins
    with the ``repeated`` first columns, and of the others so many at a time are kept ``together``; with ``names_above``
    the first cell of each row stands on a line of its own, in place of more parts. Of ``grouped`` rows a terminal shows
    the first cell once, on a line above all that have it.
    """

    columns: Sequence[Column]
    rows: Sequence[Row | str]
    caption: str = ""
    note: str = ""
    id: str = ""
    together: int = 1
    repeated: int = 1
    names_above: bool = False
    grouped: bool = False


@dataclass(frozen=True)
class Results:
    """A table too long for the page at once: its script shows a part at a time."""

    id: str
    caption: str
    columns: Sequence[Column]
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

    title: str
    charts: tuple[Chart, ...]
    legend: tuple[Mark, ...] = ()
    note: str = ""
    wide: bool = False
    """True for charts that take the page's width."""


@dataclass(frozen=True)
class Picture:
    """A picture made by a cell, as a data URL."""

    title: str
    words: str
    address: str


@dataclass(frozen=True)
class FlameGraph:
    """A flame graph that the reader opens, and its description."""

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

    title: str
    scale: str
    disks: tuple[MapPanel, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[str, ...]], ...]

    def words(self, disk: int) -> str:
        """Describe a disk for screen readers."""
        return "; ".join(f"{name} {shares[disk]}" for _, name, shares in self.rows)


@dataclass(frozen=True)
class Item:
    """An item of a list, with what it is called before it or behind it, remarks, and items below it."""

    text: str
    lead: str = ""
    code: str = ""
    remarks: tuple[str, ...] = ()
    below: tuple["Item", ...] = ()


@dataclass(frozen=True)
class Prose:
    """Paragraphs, or a list."""

    lines: Sequence[str | Item]
    listed: bool = False
    title: str = ""


@dataclass(frozen=True)
class Facts:
    """Names with their values."""

    rows: tuple[tuple[str, str], ...]


def facts(values: Mapping[str, object]) -> Facts:
    """Name values; several of one name have commas between them."""
    words = {
        name: ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        for name, value in values.items()
    }
    return Facts(tuple(words.items()))


@dataclass(frozen=True)
class Command:
    """A command to copy."""

    about: str
    text: str


Figure = Charts | Picture | BlockMapFigure | FlameGraph
Block = Heading | Text | Line | Table | Results | Figure | Prose | Facts | Command


def in_words(figure: Figure) -> list[str]:
    """Describe a figure where there are no pictures."""
    match figure:
        case Charts():
            return [chart.words for chart in figure.charts]
        case BlockMapFigure():
            return [f"{figure.title}: {disk.heading}: {figure.words(at)}" for at, disk in enumerate(figure.disks)]
        case _:
            return [f"{figure.title}: {figure.words}"]


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
