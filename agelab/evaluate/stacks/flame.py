"""Flame graphs: a box for each function, above the one that called it, as wide as its samples. SVG without a script."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape

from agelab.evaluate.stacks.folded import Folded, Stack

WIDTH, HEIGHT, LETTER = 1200, 17, 7.2
"""Of the drawing, of a box, and of a letter, in the drawing's units."""
NARROWEST = 1.5
"""A narrower box is left out of a drawing by itself."""
STYLE = (
    ".flame text{font:12px monospace;fill:#1b1f24}.flame rect{stroke:#fff;stroke-width:.5}"
    ".flame .t{fill:#c9d1d9}.flame .p{fill:#a6d9a0}.flame .k{fill:#f6b26b}.flame .m{fill:#f7d774}"
)
"""The colours: of tasks, of programs, of the kernel, of its modules. They hold on light and on dark paper."""
MORE, LESS, SAME = (0xD6, 0x4B, 0x3A), (0x4A, 0x84, 0xD6), (0xF2, 0xF2, 0xF2)
"""The colours of a function that has more samples than before, of one that has fewer, and of one that has the same."""


@dataclass
class _Node:
    """A function where it was called from."""

    samples: int = 0
    before: int = 0
    callees: dict[str, "_Node"] = field(default_factory=dict)


@dataclass(frozen=True)
class Box:
    """A function in the drawing."""

    name: str
    depth: int
    x: float
    width: float
    samples: int
    before: int


def boxes(profile: Folded, before: Folded | None = None, narrowest: float = NARROWEST) -> list[Box]:
    """Lay out a flame graph, callees by their names; ``before`` are the stacks that it is compared with.

    What is narrower than ``narrowest`` is left out, with all above it.
    """
    root = _Node()
    _count(root, profile.stacks.items(), compared=False)
    _count(root, before.stacks.items() if before else (), compared=True)
    scale = WIDTH / root.samples if root.samples else 0
    drawn: list[Box] = []
    waiting: list[tuple[_Node, int, float]] = [(root, 0, 0.0)]
    while waiting:
        node, depth, x = waiting.pop()
        for name, callee in sorted(node.callees.items()):
            width = callee.samples * scale
            if width >= narrowest:
                drawn.append(Box(name, depth, x, width, callee.samples, callee.before))
                waiting.append((callee, depth + 1, x))
            x += width
    return sorted(drawn, key=lambda box: (box.depth, box.x))


def _count(root: _Node, stacks: Iterable[tuple[Stack, int]], *, compared: bool) -> None:
    for stack, count in stacks:
        node = root
        for name in (None, *stack):
            node = node if name is None else node.callees.setdefault(name, _Node())
            if compared:
                node.before += count
            else:
                node.samples += count


def document(profile: Folded, before: Folded | None = None, *, label: str) -> str:
    """Draw a flame graph as a file by itself, with its colours; ``label`` says what it shows."""
    drawn = svg(profile, before)
    head = f'xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(label)}"'
    return drawn.replace("<svg", f"<svg {head}", 1).replace(">", f"><style>{STYLE}</style>", 1)


def svg(profile: Folded, before: Folded | None = None, narrowest: float = NARROWEST) -> str:
    """Draw a flame graph; with ``before`` a differential one: red has more samples than there, blue fewer."""
    drawn_boxes = boxes(profile, before, narrowest)
    depth = 1 + max((box.depth for box in drawn_boxes), default=0)
    height = depth * HEIGHT
    total, former = profile.samples, before.samples if before else 0
    drawn = "".join(_drawn(box, height, total, former if before else None) for box in drawn_boxes)
    return f'<svg class="flame" viewBox="0 0 {WIDTH} {height}">{drawn}</svg>'


def _drawn(box: Box, height: int, total: int, former: int | None) -> str:
    share = f"{box.samples} samples, {100 * box.samples / total:.1f} %"
    fill = f'class="{_kind(box)}"'
    if former is not None:
        share += f"; before {box.before}"
        fill = f'fill="{_colour(box, total, former)}"'
    y = height - (box.depth + 1) * HEIGHT
    room = int((box.width - 4) / LETTER)
    shown = box.name if len(box.name) <= room else f"{box.name[: room - 2]}.." if room > 4 else ""
    words = f'<text x="{box.x + 2:.1f}" y="{y + 12.5:.1f}">{escape(shown)}</text>' if shown else ""
    return (
        f'<g><rect x="{box.x:.1f}" y="{y}" width="{box.width:.1f}" height="{HEIGHT}" {fill}>'
        f"<title>{escape(box.name)}: {share}</title></rect>{words}</g>"
    )


def _kind(box: Box) -> str:
    if not box.depth:
        return "t"
    if box.name.startswith("["):
        return "p"
    return "m" if box.name.endswith("]") else "k"


def _colour(box: Box, total: int, former: int) -> str:
    """Return the colour of a change: the full one where it doubles or is all gone, or is a fifth of all samples."""
    change = box.samples - box.before
    most = max(total, former)
    strength = min(1.0, max(abs(change) / max(box.samples, box.before, 1), 5 * abs(change) / most))
    # What is a thousandth of all samples may be chance: it stays pale.
    strength *= min(1.0, 1000 * abs(change) / most / 5)
    end = MORE if change > 0 else LESS
    mixed = (round(same + strength * (to - same)) for same, to in zip(SAME, end, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)
