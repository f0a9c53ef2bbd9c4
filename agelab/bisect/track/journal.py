"""What a track knows: a list of rows in the store, one for each thing that was found out; none is ever changed."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import Field, TypeAdapter, ValidationError

from agelab.base import atomic
from agelab.base.errors import InputError
from agelab.base.types import Frozen, Label
from agelab.results import checksummed
from agelab.store.artefacts import Store

JOURNAL = "journal.jsonl"


class Measured(Frozen):
    """The values of one cell."""

    kind: Literal["measured"] = "measured"
    point: str
    watch: str = Field(description="key of what is watched")
    label: Label = Field(description="variant, and the layout where it is not single")
    seed: int
    values: dict[str, float] = Field(description="metric -> value, of those that the cell has")
    units: dict[str, str]
    run: Label
    under: str = Field(description="hash of all conditions but the point and the seed")
    seconds: float = Field(description="of the host, for all variants with this run seed; 0 where they were known")


class PassedOver(Frozen):
    """A point without a value, which is not tried again."""

    kind: Literal["left out"] = "left out"
    point: str
    watch: str
    label: Label = Field("", description="empty where it is so for all of them")
    why: Label
    unsupported: bool = Field(False, description="the kernel lacks what all cells of the watch need")


class LineId(Frozen):
    """One line of values."""

    watch: str
    label: Label
    metric: str


class Followed(Frozen):
    """A step that was seen, looked at with more run seeds; and where it is one, what made it."""

    kind: Literal["followed"] = "followed"
    line: LineId
    before: str = Field(description="point on the near side, measured with five run seeds")
    after: str
    differs: bool
    said: Label = Field(description="the judge's words")
    bisect: Label = Field("", description="its name in the store, while it goes on and when it has ended")
    ended: bool = Field(False, description="whether nothing more will be found out")
    culprit: str = Field("", description="the point or the commit that made it; empty where that is not known")
    culprit_words: Label = Field("", description="its name, its author's date and its subject")
    why_not: Label = Field("", description="why there is no single one")
    functions: tuple[Label, ...] = Field((), description="of the kernel, in which its two sides differ most")
    capsule: Label = Field("", description="file of its run, beside the pages")
    command: Label = Field("", description="shows it again")

    @property
    def key(self) -> tuple[LineId, str, str]:
        return self.line, self.before, self.after


Row = Measured | PassedOver | Followed
_ROWS: TypeAdapter[Row] = TypeAdapter(Row)


def measured_points(rows: Iterable[Row]) -> list[str]:
    """List the points that have a value, whether or not they are points now."""
    return [*dict.fromkeys(row.point for row in rows if isinstance(row, Measured))]


class Journal:
    """The rows of one track."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def of(cls, store: Store, name: str) -> "Journal":
        """Return the journal of that name in a store, whose directory is made."""
        directory = store.home / "tracks" / name
        directory.mkdir(parents=True, exist_ok=True)
        return cls(directory)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep another night of the same track away. Raises InputError where one goes on."""
        with (self.directory / "lock").open("w", encoding="utf-8") as file:
            if not atomic.try_lock(file):
                raise InputError(f"track {self.directory.name} is still going on", hint="wait for its end")
            yield

    @cached_property
    def rows(self) -> list[Row]:
        """All rows, the oldest first. Raises InputError for damage."""
        path = self.directory / JOURNAL
        try:
            return [_ROWS.validate_python(row) for row in checksummed.lines(path)]
        except (ValidationError, ValueError) as error:
            hint = "remove it: the next night finds the cells that it knows"
            raise InputError(f"{path} is damaged: {str(error).splitlines()[0]}", hint) from error

    def add(self, rows: Sequence[Row]) -> None:
        """Add rows, all of them or none that is read."""
        checksummed.add_lines(self.directory / JOURNAL, [row.model_dump(mode="json") for row in rows])
        self.rows.extend(rows)
