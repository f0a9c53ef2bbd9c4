"""Where the reused cells of runs come from."""

from collections.abc import Iterable, Iterator

from agelab.results.result import CellOrigin, End


def origins(ends: Iterable[End | None]) -> Iterator[str]:
    """Yield a line for each run and host that cells come from, with the time of the last: ``20 cells of RUN, ...``."""
    found: dict[tuple[str, str], list[CellOrigin]] = {}
    for end in ends:
        if end and end.reused:
            found.setdefault((end.reused.run, end.reused.host), []).append(end.reused)
    for some in found.values():
        cells = "1 cell" if len(some) == 1 else f"{len(some)} cells"
        yield f"{cells} of {max(some, key=lambda one: one.ended)}"
