"""The page as frozen types: what the template shows, and nothing that it would have to work out."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class TableCell:
    """One cell of a table."""

    text: str
    value: float | None = None
    """By what its column is sorted; without it by the text."""
    code: bool = False


@dataclass(frozen=True)
class Heading:
    """A column's heading; what is a number stands to the right."""

    name: str
    number: bool = False


@dataclass(frozen=True)
class Table:
    """A table that the reader can sort and, where it is long, filter."""

    kind: ClassVar[str] = "table"
    id: str
    caption: str
    columns: tuple[Heading, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Results:
    """A table of so many rows that the page's script shows a part at a time: rows of texts and numbers."""

    kind: ClassVar[str] = "results"
    id: str
    caption: str
    columns: tuple[Heading, ...]
    rows: tuple[tuple[str | float | None, ...], ...]


@dataclass(frozen=True)
class Chart:
    """One drawing, with what it shows in words for whoever does not see it."""

    title: str
    words: str
    svg: str


@dataclass(frozen=True)
class Mark:
    """What a colour of the charts stands for: a name and the number of the colour."""

    name: str
    colour: int
    dash: int = 0


@dataclass(frozen=True)
class Charts:
    """Small charts side by side that share a legend."""

    kind: ClassVar[str] = "charts"
    title: str
    charts: tuple[Chart, ...]
    legend: tuple[Mark, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Picture:
    """A picture that a cell has left, as a data address."""

    kind: ClassVar[str] = "picture"
    title: str
    words: str
    address: str


@dataclass(frozen=True)
class DiskMap:
    """One disk of a block map: its cells as a path for each kind, what lies higher first, and their outline."""

    heading: str
    view: str
    layers: tuple[tuple[str, str], ...]
    outline: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class BlockMapFigure:
    """Disks block by block, and the share of each kind (its name, in words, on each disk)."""

    kind: ClassVar[str] = "blockmap"
    title: str
    scale: str
    disks: tuple[DiskMap, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[str, ...]], ...]

    def words(self, disk: int) -> str:
        """One disk for whoever does not see it."""
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
    """Names and what they are."""

    kind: ClassVar[str] = "facts"
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Command:
    """A command to copy."""

    kind: ClassVar[str] = "command"
    about: str
    text: str


Block = Table | Results | Charts | Picture | BlockMapFigure | Prose | Facts | Command


@dataclass(frozen=True)
class Section:
    """A heading, and what stands below it."""

    id: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Answer:
    """What a stranger looks for, in plain words."""

    question: str
    verdict: str
    because: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    named: str = ""
    """Whom the verdict is on, where it is on one."""
    chart: Chart | None = None


@dataclass(frozen=True)
class Part:
    """Runs that belong together."""

    id: str
    title: str
    subtitle: str
    answers: tuple[Answer, ...]
    brief: tuple[str, ...]
    """The doubts that must be read with the answers."""
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class Page:
    """All of it."""

    title: str
    parts: tuple[Part, ...]
    version: str
