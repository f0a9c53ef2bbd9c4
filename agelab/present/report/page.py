"""Build the page of runs: parts of runs that belong together, each with answer and sections."""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence

from agelab import __version__
from agelab.analysis.cells import RunResult, RunSet, last_slowdowns, run_sets
from agelab.base import fileio
from agelab.present.report import (
    charts,
    profiles,
    program_tables,
    provenance,
    result_tables,
    step_statistics,
    study,
)
from agelab.present.report.answer import all_tests, headline
from agelab.present.report.maps import parse_block_map
from agelab.present.report.model import Answer, Block, Page, Part, Picture, Prose, Section
from agelab.present.report.step_selection import aged_and_control
from agelab.results.measure import own_steps
from agelab.scenario.seeds import seeds_text
from agelab.stats.series import Place

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
    yield "programs", "What programs measured", program_tables.program_tables(group, where)
    yield "disks", "Where things lie", [*result_tables.layout_tables(group, where), *_pictures(group)]
    yield "curves", "Repetition by repetition", charts.history_charts(group)
    yield "study", "The study and these runs", beside
    by_step: list[Block] = [*charts.time_charts(group), *step_statistics.step_tables(group, steps, where)]
    yield "steps", "Step by step", by_step
    yield "drive", "What the drive did", charts.split_charts(group, steps, charts.DRIVE)
    yield "processor", "What the processor did", charts.split_charts(group, steps, charts.PROCESSOR)
    yield "profile", "Where the time goes", profiles.flame_graphs(group)
    yield "calls", "System calls", result_tables.syscall_tables(group, where)
    yield "doubts", "Doubts", provenance.all_doubts(group)
    results = result_tables.all_results(group, where)
    yield "everything", "Every result", [results] if results.rows else []
    cells = result_tables.cell_table(group, where)
    yield "provenance", "Provenance", [cells, *provenance.all_provenance(group)]


def _aging(group: RunSet, places: Sequence[Place], where: str, more: Sequence[str]) -> Iterator[Block]:
    if more:
        yield Prose(tuple(more), listed=True)
    worst = all_tests.test_by_test(group, places, where)
    if worst.rows:
        yield worst
    yield from charts.slowdown_charts(group, places)
    yield from step_statistics.test_tables(group, places, where)
    yield from step_statistics.share_tables(group, places, where)


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
    _, found, rest = svg.partition("<desc>")
    return rest.partition("</desc>")[0] if found else ""
