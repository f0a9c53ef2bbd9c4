"""Build the page of runs: parts of runs that belong together, each with answer and sections."""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from xml.etree import ElementTree

from agelab import __version__
from agelab.analysis.cells import RunResult, RunSet, last_slowdowns, run_sets
from agelab.base import fileio
from agelab.evaluate.layout.picture import CELL_HEIGHT, CELL_WIDTH, COLUMNS, FILL, LEFT
from agelab.present.report import charts, profiles, provenance, study, tables
from agelab.present.report.answer import all_tests, headline
from agelab.present.report.blocks import Answer, Block, BlockMapFigure, MapPanel, Page, Part, Picture, Prose, Section
from agelab.present.report.charts import aged_and_control
from agelab.results.cell_samples import Place
from agelab.results.measure import own_steps
from agelab.scenario.seeds import seeds_text

SVG = "{http://www.w3.org/2000/svg}"
PATH = re.compile(r"[MmHhVvZz0-9 .-]*")
ROW = re.compile(rf"M{LEFT} (\d+)h")
KIND = {fill: kind.name.lower() for kind, fill in FILL.items()}
HEADING, WORDS, NOTE = ("12", "600"), ("12", "400"), ("11", "400")
"""Font size and weight of the texts in a picture."""


class ForeignPicture(ValueError):
    """A picture that agelab did not write."""


def parse_block_map(title: str, content: bytes) -> BlockMapFigure | None:
    """Parse a picture into its parts; return None if agelab did not write it."""
    try:
        return _parts(title, content)
    except (ForeignPicture, ElementTree.ParseError, LookupError, ValueError):
        return None


def _parts(title: str, content: bytes) -> BlockMapFigure:
    if b"<!" in content:  # entities and document types are refused
        raise ForeignPicture
    root = ElementTree.fromstring(content)
    scale = ""
    disks: list[MapPanel] = []
    heads: list[str] = []
    rows: list[list[str]] = []
    headings: list[str] = []
    layers: list[tuple[str, str]] = []
    for element in root:
        name, words = element.tag.removeprefix(SVG), (element.text or "").strip()
        letters = (element.get("font-size", ""), element.get("font-weight", ""))
        if name == "path":
            path = element.get("d", "")
            if not PATH.fullmatch(path):
                raise ForeignPicture
            if element.get("fill") != "none":
                layers.append((KIND[element.get("fill", "")], path))
                continue
            disks.append(MapPanel(" ".join(headings), _view(path), tuple(layers), path, ()))
            headings, layers = [], []
        elif name == "rect" and element.get("fill") in KIND and element.get("height") == "13":
            rows.append([KIND[element.get("fill", "")]])
        elif name == "text" and rows:
            rows[-1].append(words)
        elif name == "text" and letters == HEADING:
            (heads if element.get("text-anchor") == "end" else headings).append(words)
        elif name == "text" and letters == NOTE and disks:
            last = disks[-1]
            disks[-1] = MapPanel(last.heading, last.view, last.layers, last.outline, (*last.notes, words))
        elif name == "text" and letters == WORDS and not disks:
            scale = words
        elif name not in ("title", "desc", "defs", "rect", "text"):
            raise ForeignPicture
    if not disks or not rows or {len(row) for row in rows} != {2 + len(heads)}:
        raise ForeignPicture
    kinds = tuple((row[0], row[1], tuple(row[2:])) for row in rows)
    return BlockMapFigure(title, scale, tuple(disks), tuple(heads), kinds)


def _view(outline: str) -> str:
    """Return the viewBox of a disk's cells."""
    places = [int(top) for top in ROW.findall(outline)]
    if not places:
        raise ForeignPicture
    height = places[-1] - places[0] + CELL_HEIGHT
    return f"{LEFT - 1} {places[0] - 1} {COLUMNS * CELL_WIDTH + 2} {height + 2}"


MAX_PICTURES = 32
"""Maximum number of pictures of disks on a page, and"""
MAX_PICTURE_BYTES = 200_000
"""maximum size of one in bytes: pages stay below 3 MB for all runs so far."""


def build_page(runs: Iterable[RunResult]) -> Page:
    """Build the page of these runs, in their order."""
    groups = run_sets(runs)
    parts = tuple(_part(group, f"part{number}") for number, group in enumerate(groups, 1))
    return Page("agelab: " + ", ".join(dict.fromkeys(part.title for part in parts)), parts, __version__)


def _part(group: RunSet, where: str) -> Part:
    plan = group.plan
    emulated = ", EMULATED" if plan.emulated else ""
    names = ", ".join(loaded.plan.run for loaded in group.runs)
    report, unreadable = study.compare_with_study(group)
    answers = [*headline.answers(group)]
    more = [line for answer in answers for line in answer.more]
    if report and study.is_asked(report):
        answers.append(study.study_answer(report))
    beside = study.study_blocks(report, where) if report else ()
    if unreadable:
        answers.append(Answer("What of the study?", "Its published data cannot be read.", (unreadable,)))
    sections = tuple(
        Section(f"{where}-{id}", title, shown)
        for id, title, blocks in _sections(group, where, more, beside)
        if (shown := tuple(blocks))
    )
    return Part(
        where,
        plan.scenario,
        f"scale {plan.scale}, {plan.clock} clock{emulated}; {names}",
        tuple(answers),
        tuple(provenance.main_doubts(group)),
        sections,
    )


def _sections(
    group: RunSet, where: str, more: Sequence[str], beside: Iterable[Block]
) -> Iterator[tuple[str, str, Iterable[Block]]]:
    """Yield name, title and content of each section in order."""
    places = last_slowdowns(group.places)
    tests = (side for step, _, _ in places for side in aged_and_control(step))
    steps = [*own_steps(group.places), *dict.fromkeys(tests)]
    yield "ran", "What was run, and how to run it again", provenance.run_facts(group)
    if places:
        yield "aging", "What aging did", _aging(group, places, where, more)
    yield "programs", "What programs measured", tables.program_tables(group, where)
    yield "disks", "Where things lie", [*tables.layout_tables(group, where), *_pictures(group)]
    yield "curves", "Repetition by repetition", charts.history_charts(group)
    yield "study", "The study and these runs", beside
    by_step: list[Block] = [*charts.time_charts(group), *tables.step_tables(group, steps, where)]
    yield "steps", "Step by step", by_step
    drive: list[Block] = [*charts.split_charts(group, steps, charts.DRIVE), *tables.flash_tables(group, where)]
    yield "drive", "What the drive did", drive
    yield "processor", "What the processor did", charts.split_charts(group, steps, charts.PROCESSOR)
    yield "profile", "Where the time goes", profiles.flame_graphs(group)
    yield "calls", "System calls", tables.syscall_tables(group, where)
    yield "doubts", "Doubts", provenance.all_doubts(group)
    results = tables.all_results(group, where)
    yield "everything", "Every result", [results] if results.rows else []
    cells = tables.cell_table(group, where)
    yield "provenance", "Provenance", [cells, *provenance.all_provenance(group)]


def _aging(group: RunSet, places: Sequence[Place], where: str, more: Sequence[str]) -> Iterator[Block]:
    if more:
        yield Prose(tuple(more), listed=True)
    worst = all_tests.test_by_test(group, places, where)
    if worst.rows:
        yield worst
    yield from charts.slowdown_charts(group, places)
    yield from tables.test_tables(group, places, where)
    yield from tables.share_tables(group, places, where)


def _pictures(group: RunSet) -> Iterator[Block]:
    """Return the block maps of each subject's first valid cell."""
    drawn, left = 0, []
    for subject in group.groups:
        entry = next(iter(subject.counted.values()), None)
        if entry is None:
            continue
        for path in sorted(entry.directory.glob("maps/*.svg")):
            content = fileio.read_bytes(path)
            if drawn == MAX_PICTURES or len(content) > MAX_PICTURE_BYTES:
                left.append(f"{entry.run}/cells/{entry.number}/maps/{path.name}")
                continue
            drawn += 1
            what = path.stem.replace("-", " ")
            title = f"{subject.name}, {seeds_text([entry.seeds])}: {what}"
            if parts := parse_block_map(title, content):
                yield parts
                continue
            address = "data:image/svg+xml;base64," + b64encode(content).decode("ascii")
            yield Picture(title, _description(content.decode(errors="replace")), address)
    if left:
        yield Prose(("Not on this page, for its size: " + ", ".join(left),))


def _description(svg: str) -> str:
    """Return the description in a picture drawn by agelab."""
    _, opening, rest = svg.partition("<desc>")
    return rest.partition("</desc>")[0] if opening else ""
