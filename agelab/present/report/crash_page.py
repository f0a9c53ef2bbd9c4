"""The page of a crash run: what was found, and each violation as a timeline of requests with its cut."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

from agelab import __version__
from agelab.analysis import vega
from agelab.analysis.vega import Span
from agelab.base.gathered import gathered
from agelab.machine.drive.record import RequestKind
from agelab.present.report.blocks import Block, Chart, Charts, Command, Mark, Page, Part, Prose, Section
from agelab.present.view.crash import answer_blocks, fate, told
from agelab.runner.crash.crash import Answer, Violation
from agelab.runner.crash.guests import Recording
from agelab.runner.crash.oracle import Call
from agelab.runner.crash.states import Recorded, State

MAX_STATES, MAX_SPANS = 24, 60
"""On one page; of a timeline the last before the cut."""
THERE, PART, CALL, FLUSH, LOST = 0, 1, 2, 6, 7
LEGEND = (
    Mark("on the disk", THERE),
    Mark("lost", LOST),
    Mark("a part of it is", PART),
    Mark("flush", FLUSH),
    Mark("call returned", CALL),
)


def build_page(answer: Answer, recording: Recording) -> Page:
    by_state = gathered((found.state, found) for found in (*answer.violations, *answer.differences))
    sections = [Section("found", "What was found", tuple(answer_blocks(answer)))]
    sections += [
        Section(f"state{at}", f"{name}: {found[0].kind}", tuple(_state(answer, recording, name, found)))
        for at, (name, found) in enumerate(islice(by_state.items(), MAX_STATES), 1)
    ]
    left = len(by_state) - MAX_STATES
    brief = (f"{left} more states are in the table alone",) if left > 0 else ()
    question = answer.question
    title = f"Crash states: {question.workload} on {question.filesystem}"
    part = Part("crash", title, f"kernel {question.kernel}; {answer.name}", (), brief, tuple(sections))
    return Page(f"agelab: {title}", (part,), __version__)


def _state(answer: Answer, recording: Recording, name: str, found: Sequence[Violation]) -> Iterator[Block]:
    also = [told(other) for other in found[0].also]
    known = [f"known: {one.known}" for one in found if one.known]
    yield Prose([*dict.fromkeys([*map(told, found), *also, *known])])
    state = State.parse(name)
    part = recording.parts[state.workload]
    spans, moments = timeline(part, recording.calls[state.workload], state)
    words = "; ".join(f"{span.name} {span.shown}".strip() for span in spans)
    chart = Chart(name, f"{words}; then the power goes", partial(vega.timeline, spans, moments, "the power goes"))
    note = "Each begins as it comes to the drive. A flush that is done has kept what was done before it came."
    yield Charts("What the drive was sent before the cut", (chart,), LEGEND, note, wide=True)
    yield Command("To look at it again", f"agelab crash replay {answer.name} {name}")


def timeline(part: Recorded, calls: Sequence[Call], state: State) -> tuple[list[Span], list[str]]:
    """Return requests and calls in their order, and the texts of the moments at which one begins or ends."""
    entries, there = part.entries[: state.prefix], part.there(state)
    requests = [entry for entry in entries if entry.kind is not RequestKind.KEPT]
    times = sorted({moment for entry in requests for moment in (entry.arrived, entry.done)} or {0})
    places = {moment: at for at, moment in enumerate(times)}
    spans, last = [], 0
    for number in range(len(entries) + 1):
        spans += [
            Span(call.text, last, last, "failed" if call.error else "returned", CALL)
            for call in calls
            if call.text and call.entries == number <= state.returned
        ]
        if number < len(entries) and (entry := entries[number]).kind is not RequestKind.KEPT:
            where = f" {entry.sector}+{entry.sectors}" if entry.sectors else ""
            what = fate(entry, there.get(number, 0))
            kind = {"": FLUSH, "yes": THERE, "lost": LOST}.get(what, PART)
            last = places[entry.done]
            name = f"{number} {entry.kind.name.lower()}{where}"
            spans.append(Span(name, places[entry.arrived], last, "" if what == "yes" else what, kind))
    spans = spans[-MAX_SPANS:]
    first = min((span.begin for span in spans), default=0)
    shown = [Span(span.name, span.begin - first, span.end - first, span.shown, span.kind) for span in spans]
    return shown, [f"{(moment - times[0]) / 1e6:.2f}" for moment in times[first:]]
