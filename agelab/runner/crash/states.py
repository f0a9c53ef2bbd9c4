"""The states in which a power cut can leave a disk, each by its name: ``workload:prefix[:loss,...]``.

The first entries of the record, as many as the prefix says, were taken up before the cut. Of these a drive may lose
what it has not flushed: a write that was done before a flush came is on the platters when the flush is done, and so is
a write with FUA when it is done (Linux, Documentation/block/writeback_cache_control.rst). A loss ``-7`` is entry 7 that
is not there, ``t3`` the last entry of which 3 sectors are; ``m`` is all that the modelled drive had not written back.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import chain

from agelab.base.errors import InputError
from agelab.machine.drive.record import Entry, Piece, RequestKind, written_back

NAME = re.compile(r"(\d{1,9}):(\d{1,9})(?::(m|t\d{1,9}|-\d{1,9}(?:,-\d{1,9})*))?")


class Loss(StrEnum):
    """Kind of a state, by what a cut loses."""

    NOTHING = "nothing lost"
    UNWRITTEN = "as this drive had written back"
    WRITES = "writes lost"
    SECTORS = "a write torn"


@dataclass(frozen=True)
class State:
    """What is on the disk after one cut."""

    workload: int
    prefix: int
    """Entries of the workload's record that the drive has taken up."""
    lost: tuple[int, ...] = ()
    """Those of them that are not on the disk."""
    torn: int | None = None
    """Sectors of the last one that are there; None for all."""
    modelled: bool = False
    """Whether only what the modelled drive had written back is there."""

    def __str__(self) -> str:
        losses = [f"-{number}" for number in self.lost] if self.torn is None else [f"t{self.torn}"]
        losses = ["m"] if self.modelled else losses
        return ":".join([str(self.workload), str(self.prefix), *([",".join(losses)] if losses else [])])

    @classmethod
    def parse(cls, name: str) -> "State":
        """Read a state's name. Raises InputError."""
        if not (match := NAME.fullmatch(name)):
            raise InputError(
                f"{name[:60]!r} is no name of a state", "they look like 3:17, 3:17:-12,-14, 3:17:t8 and 3:17:m"
            )
        losses = match[3] or ""
        torn = int(losses[1:]) if losses.startswith("t") else None
        lost = tuple(-int(word) for word in losses.split(",")) if losses.startswith("-") else ()
        return cls(int(match[1]), int(match[2]), lost, torn, losses == "m")

    @property
    def loss(self) -> Loss:
        """Its kind."""
        if self.modelled:
            return Loss.UNWRITTEN
        return Loss.SECTORS if self.torn is not None else Loss.WRITES if self.lost else Loss.NOTHING

    @property
    def returned(self) -> int:
        """Entries before which a call has returned: one that waits for a torn entry has not."""
        return self.prefix if self.torn is None else self.prefix - 1

    @property
    def rank(self) -> tuple[int, int]:
        """The less, the shorter as a reproduction."""
        return self.prefix, len(self.lost)


@dataclass(frozen=True)
class Recorded:
    """The part of a record that is one workload's."""

    workload: int
    first: int
    entries: Sequence[Entry]
    marks: frozenset[int]
    """Prefixes at which a call had returned."""
    ignored: frozenset[RequestKind] = frozenset()
    """What the drive ignores: flushes, or that a write is to go past its cache (FUA)."""

    def pieces(self, state: State) -> list[Piece]:
        """Return what of the record is on the disk. Raises InputError for a state of another record."""
        if state.prefix > len(self.entries) or (state.lost and max(state.lost) >= state.prefix):
            raise InputError(
                f"state {state} is of another record: workload {self.workload} has {len(self.entries)} entries"
            )
        if state.modelled:
            return [piece for number in range(state.prefix) for piece in self._written_back[number]]
        lost, last = set(state.lost), state.prefix - 1
        return [
            Piece(
                self.first + number,
                entry.sector,
                entry.sector + (state.torn if state.torn is not None and number == last else entry.sectors),
            )
            for number, entry in enumerate(self.entries[: state.prefix])
            if entry.changes and number not in lost
        ]

    def there(self, state: State) -> dict[int, int]:
        """Return how many sectors of each of the workload's entries have come to the disk."""
        sectors: dict[int, set[int]] = {}
        for piece in self.pieces(state):
            sectors.setdefault(piece.number - self.first, set()).update(range(piece.first, piece.end))
        return {number: len(came) for number, came in sectors.items()}

    @cached_property
    def _written_back(self) -> list[list[Piece]]:
        return written_back(self.entries, self.first)

    def volatile(self, prefix: int) -> list[int]:
        """List the writes among the first entries that a drive may still lose."""
        heeded = {RequestKind.FLUSH, RequestKind.FUA} - self.ignored
        flushes = [entry.arrived for entry in self.entries[:prefix] if entry.kind is RequestKind.FLUSH]
        last = max(flushes, default=-1) if RequestKind.FLUSH in heeded else -1
        return [
            number
            for number, entry in enumerate(self.entries[:prefix])
            if entry.changes and entry.kind not in heeded and entry.done > last
        ]

    def states(self, drawn: int, seed: int) -> list[State]:
        """List all states, each once, with so many subsets that the seed draws at each end of an order."""
        kept = () if self.ignored else self.modelled()
        every = chain(self.whole(), kept, self.omissions(), self.drawn(drawn, seed), self.torn())
        return list(dict.fromkeys(every))

    def whole(self) -> Iterator[State]:
        """Yield what a drive without a cache leaves: the state after each request."""
        for prefix in range(len(self.entries) + 1):
            if not prefix or prefix in self.marks or self.entries[prefix - 1].kind is not RequestKind.KEPT:
                yield State(self.workload, prefix)

    def modelled(self) -> Iterator[State]:
        """Yield what the modelled drive would have kept, after each request and each piece that it has written back."""
        for prefix in range(1, len(self.entries) + 1):
            yield State(self.workload, prefix, modelled=True)

    def omissions(self) -> Iterator[State]:
        """Yield, at each end of an order, what a cache loses: all of it, one write, all but one.

        An end is a flush or a write with FUA, a call that has returned, and the end of the record.
        """
        for prefix, volatile in self._ends():
            subsets = [tuple(volatile)] if volatile else []
            subsets += [(number,) for number in volatile if len(volatile) > 1]
            if len(volatile) > 2:
                subsets += [tuple(other for other in volatile if other != number) for number in volatile]
            yield from (State(self.workload, prefix, lost) for lost in subsets)

    def drawn(self, count: int, seed: int) -> Iterator[State]:
        """Yield so many subsets at each end of an order as chance draws them."""
        chance = random.Random(f"{seed} {self.workload}")
        for prefix, volatile in self._ends():
            if len(volatile) > 3:
                for _ in range(count):
                    lost = tuple(number for number in volatile if chance.random() < 0.5)
                    yield State(self.workload, prefix, lost)

    def torn(self) -> Iterator[State]:
        """Yield each write cut after its first sector, in its middle, and before its last sector."""
        for number, entry in enumerate(self.entries):
            if entry.has_data:
                for sectors in sorted({1, entry.sectors // 2, entry.sectors - 1} - {0, entry.sectors}):
                    yield State(self.workload, number + 1, torn=sectors)

    def _ends(self) -> Iterator[tuple[int, list[int]]]:
        following, ends = None, set(self.marks - {0})
        for number, entry in reversed([*enumerate(self.entries)]):
            if entry.kind is not RequestKind.KEPT:
                if following is not RequestKind.WRITE:
                    ends.add(number + 1)
                following = entry.kind
        for prefix in sorted(ends):
            yield prefix, self.volatile(prefix)
