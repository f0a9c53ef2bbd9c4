"""Draw a block map as SVG, cell by cell from the first byte to the last. docs/measures.md explains it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from agelab.evaluate.layout import svg
from agelab.evaluate.layout.blockmap import BlockKind, BlockMap, build_block_map
from agelab.evaluate.layout.model import ExtentMap, FreeSpace

COLUMNS, ROWS = 128, 60
CELL_WIDTH, CELL_HEIGHT, ROW_PITCH = 7, 10, 12
LEFT, RIGHT = 76, 24
WIDTH = LEFT + COLUMNS * CELL_WIDTH + RIGHT
SMALLEST_CELL = 4096
MAX_DISKS = 5
"""Maximum number of disks in a picture: the legend has no room for more."""
HATCH = "url(#agelab-not-measured)"
# Six steps of lightness (in CIE L*: 40, 72, 84, 16, 56, 97), to be distinct in grey and for colour-blind readers.
FILL = {
    BlockKind.SHORT: "#b8340a",
    BlockKind.LONG: "#f0a030",
    BlockKind.WHOLE: "#b4d6f2",
    BlockKind.OWN: "#1c2748",
    BlockKind.UNKNOWN: "#868686",
    BlockKind.UNMEASURED: HATCH,
    BlockKind.FREE: "#f7f7f2",
}
PATTERN = (
    '<defs><pattern id="agelab-not-measured" width="5" height="5" patternUnits="userSpaceOnUse"'
    ' patternTransform="rotate(45)"><rect width="5" height="5" fill="#e0e0e0"/>'
    '<rect width="1.8" height="5" fill="#5c5c5c"/></pattern></defs>'
)


@dataclass(frozen=True, slots=True)
class MappedDisk:
    """A disk to draw; None means not measured."""

    name: str
    size: int
    extents: ExtentMap | None
    free: FreeSpace | None


def draw_disks(title: str, disks: Sequence[MappedDisk]) -> str:
    """Draw disks one below the other, with equal cells and one legend, as SVG."""
    if not 1 <= len(disks) <= MAX_DISKS:
        raise ValueError(f"a picture has 1 to {MAX_DISKS} disks, not {len(disks)}")
    cell = cell_bytes(max(disk.size for disk in disks), ROWS if len(disks) == 1 else ROWS // 2)
    maps = [build_block_map(disk.size, cell, disk.extents, disk.free) for disk in disks]
    parts = [PATTERN]
    y = 34
    for words in svg.folded(title, 84):
        parts.append(svg.text(LEFT, y, words, size=18, weight=600))
        y += 24
    scale = (
        f"Row by row, from the disk's first byte (top left) to its last. A cell is {svg.exact(cell, svg.power(cell))},"
        f" a row {svg.exact(cell * COLUMNS, svg.power(cell * COLUMNS))}; what shares a cell is stacked in it."
    )
    parts.append(svg.text(LEFT, y - 2, scale, fill=svg.FAINT))
    y += 14
    for disk, filled in zip(disks, maps, strict=True):
        drawn, y = _panel(disk, filled, y)
        parts += drawn
    drawn, y = _legend(disks, maps, y + 6)
    return svg.document(WIDTH, y + 8, title, " ".join([scale, *_describe(disks, maps)]), parts + drawn)


def cell_bytes(size: int, rows: int) -> int:
    """Return a round cell size with which the disk fills at most ``rows`` rows (and at least 3/4 of them, if large)."""
    least = -(-size // (COLUMNS * rows))
    cell = SMALLEST_CELL
    while cell < least:
        cell *= 2
    # Between powers of two: 5/8, 6/8, 7/8 of one, if those are whole blocks.
    for eighths in (5, 6, 7):
        smaller = cell * eighths // 8
        if smaller >= least and smaller % SMALLEST_CELL == 0:
            return smaller
    return cell


def percents(totals: dict[BlockKind, int]) -> dict[BlockKind, str]:
    """Return percentages to one decimal that add up to 100.0: the largest remainders are rounded up."""
    size = sum(totals.values())
    tenths = {kind: 1000 * total // size for kind, total in totals.items()}
    by_remainder = sorted(totals, key=lambda kind: -(1000 * totals[kind] % size))
    for kind in by_remainder[: 1000 - sum(tenths.values())]:
        tenths[kind] += 1
    return {kind: f"{tenth // 10}.{tenth % 10} %" for kind, tenth in tenths.items()}


def _panel(disk: MappedDisk, filled: BlockMap, y: int) -> tuple[list[str], int]:
    """Draw one disk from heading to notes; return it with the y below it."""
    parts: list[str] = []
    heading = "; ".join(words for words in (disk.name, _file_counts(filled)) if words)
    for words in svg.folded(heading, 118) if heading else []:
        parts.append(svg.text(LEFT, y + 14, words, weight=600))
        y += 18
    y += 8
    rows = -(-filled.count // COLUMNS)
    # Label every few rows, so that labels are whole numbers of a large unit.
    step = max((5, 4, 8), key=lambda some: svg.power(some * COLUMNS * filled.cell))
    for row in range(0, rows, step):
        label = svg.exact(row * COLUMNS * filled.cell, svg.power(step * COLUMNS * filled.cell))
        parts.append(svg.text(LEFT - 8, y + row * ROW_PITCH + 9, label, anchor="end", fill=svg.FAINT, size=10))
    parts += _cells(filled, y)
    y += rows * ROW_PITCH
    if set(filled.shares) == {BlockKind.UNMEASURED}:
        middle = y - rows * ROW_PITCH // 2
        width = COLUMNS * CELL_WIDTH
        parts.append(svg.rect(LEFT + width / 2 - 260, middle - 16, 520, 30, svg.PAPER, f'stroke="{svg.INK}"'))
        words = "not measured: neither the free space nor where the files lie"
        parts.append(svg.text(LEFT + width / 2, middle + 4, words, anchor="middle"))
    for note in _notes(disk, filled):
        for words in svg.folded(note, 130):
            parts.append(svg.text(LEFT, y + 12, words, size=11, fill=svg.FAINT))
            y += 15
    return parts, y + 8


def _cells(filled: BlockMap, y: int) -> list[str]:
    """Draw the cells as one path for each kind: higher layers first, lower ones over them."""
    lengths = [filled.cell] * filled.count
    lengths[-1] = filled.size - filled.cell * (filled.count - 1)
    tops = [0] * filled.count
    below = [0] * filled.count
    layers = []
    for kind in BlockKind:
        if kind not in filled.shares:
            continue
        below = [sum_ + here for sum_, here in zip(below, filled.shares[kind], strict=True)]
        higher = [
            (2 * CELL_HEIGHT * sum_ + length) // (2 * length) for sum_, length in zip(below, lengths, strict=True)
        ]
        shown = [top if top > old else 0 for top, old in zip(higher, tops, strict=True)]
        tops = higher
        path = "".join(
            _steps(shown[first : first + COLUMNS], y + first // COLUMNS * ROW_PITCH + CELL_HEIGHT)
            for first in range(0, filled.count, COLUMNS)
        )
        if path:
            layers.append(f'<path fill="{FILL[kind]}" d="{path}"/>')
    # The outline separates free space from paper.
    whole, rest = divmod(filled.count, COLUMNS)
    outline = "".join(
        f"M{LEFT} {y + row * ROW_PITCH}h{width * CELL_WIDTH}v{CELL_HEIGHT}h-{width * CELL_WIDTH}z"
        for row, width in enumerate([COLUMNS] * whole + [rest] * bool(rest))
    )
    return [*reversed(layers), f'<path fill="none" stroke="#b9b9b0" stroke-width="0.5" d="{outline}"/>']


def _steps(heights: Sequence[int], floor: int) -> str:
    """Return the outline of columns on a floor; equal neighbours are merged, and height 0 has none."""
    path = ""
    column = before = 0
    for height, group in groupby(heights):
        width = len(list(group))
        if height:
            rise = f"v{before - height}" if before else f"M{LEFT + column * CELL_WIDTH} {floor}v-{height}"
            path += f"{rise}h{width * CELL_WIDTH}"
        elif before:
            path += f"V{floor}z"
        before = height
        column += width
    return path + (f"V{floor}z" if before else "")


def _file_counts(filled: BlockMap) -> str:
    """Describe the number of files and runs."""
    census = filled.census
    if census is None:
        return ""
    if not census.placed:
        return f"{census.files:,} files, none with blocks of a known place"
    some = f"{census.placed:,} of them with blocks of a known place, " if census.placed < census.files else ""
    return (
        f"{census.files:,} files, {some}{census.fragmented:,} of {'these' if some else 'them'}"
        f" ({100 * census.fragmented / census.placed:.1f} %) in more than one run; {census.runs:,} runs"
    )


def _notes(disk: MappedDisk, filled: BlockMap) -> Iterator[str]:
    """Yield notes on what is uncertain in a map."""
    if disk.extents is None and disk.free is not None:
        yield "Where the files lie was not measured: what is in use, and not known for what, is hatched."
    if disk.free is None and disk.extents is not None:
        yield "Free space was not measured: what belongs to no mapped file is hatched, and is free or in use."
    if (census := filled.census) and census.unplaced:
        yield f"Files of which not every place is known: {census.unplaced:,}. They are not drawn as files."
    if census and census.inside:
        inside = f"{census.inside:,}. They are not drawn."
        yield f"Tails and inline data, in blocks that are not a file's alone: {inside}"
    if filled.disputed:
        yield (
            f"{svg.human(filled.disputed)} are claimed twice (as a file's, the filesystem's own, free), which cannot"
            " be: drawn as the first of these."
        )
    if filled.outside:
        yield f"{svg.human(filled.outside)} lie beyond the end of the disk, and are not drawn."


def _legend(disks: Sequence[MappedDisk], maps: Sequence[BlockMap], y: int) -> tuple[list[str], int]:
    """Draw each colour with its name and its share of each disk."""
    parts = []
    # With more than two disks the columns are narrow and contain percentages only.
    narrow = len(disks) > 2
    columns = [WIDTH - RIGHT - (92 if narrow else 190) * index for index in reversed(range(len(disks)))]
    room = 10 if narrow else 24
    for x, disk in zip(columns, disks, strict=True):
        head = disk.name or ("share" if narrow else "share of the disk")
        shown = head if len(head) <= room else f"{head[: room - 1]}…"
        parts.append(svg.text(x, y + 12, shown, anchor="end", weight=600))
    y += 20
    for kind in reversed(BlockKind):
        if not any(kind in filled.shares for filled in maps) and kind in (
            BlockKind.UNKNOWN,
            BlockKind.UNMEASURED,
        ):
            continue
        parts.append(svg.rect(LEFT, y + 2, 28, 13, FILL[kind], 'stroke="#8a8a84" stroke-width="0.5"'))
        parts.append(svg.text(LEFT + 38, y + 13, kind.value))
        for x, disk, filled in zip(columns, disks, maps, strict=True):
            parts.append(svg.text(x, y + 13, _share(kind, disk, filled, narrow), anchor="end"))
        y += 20
    return parts, y


def _share(kind: BlockKind, disk: MappedDisk, filled: BlockMap, narrow: bool) -> str:
    """Return a kind's share of a disk, or why it has none."""
    totals = filled.totals()
    if kind in totals:
        percent = percents(totals)[kind]
        return percent if narrow else f"{svg.human(totals[kind])}, {percent}"
    if kind in (BlockKind.UNKNOWN, BlockKind.UNMEASURED):
        return "–"
    if kind is BlockKind.OWN and disk.free is not None:
        return "not named"
    return "not measured"


def _describe(disks: Sequence[MappedDisk], maps: Sequence[BlockMap]) -> list[str]:
    """Describe the picture in words, for screen readers."""
    return [
        ": ".join([disk.name] * bool(disk.name) + ["; ".join(f"{kind.value} {share}" for kind, share in shares)]) + "."
        for disk, filled in zip(disks, maps, strict=True)
        for shares in [percents(filled.totals()).items()]
    ]
