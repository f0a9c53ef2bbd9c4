"""Runs, tests and gates as JUnit XML, which CI systems show: a case for each cell, test, or step that is judged.

There is no standard; this is what Jenkins' and GitLab's readers take (testsuites, testsuite, testcase with failure,
error or skipped).
"""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from xml.etree.ElementTree import Element

from agelab.analysis.comparison import Comparison, ComparisonTable, gate_times, is_slower
from agelab.analysis.test_results import CaseResult
from agelab.bisect.track.journal import Followed
from agelab.bisect.track.lines import Known
from agelab.bisect.track.night import step_words
from agelab.present.view.cell_names import name_seeds
from agelab.present.view.ratio_table import ratio_texts
from agelab.results.result import End, Status
from agelab.results.run_directory import RunDirectory
from agelab.stats import phrasing
from agelab.stats.verdict import ComparedSeries

ELEMENTS = {
    Status.FAILED: "failure",
    Status.PANICKED: "failure",
    Status.HUNG: "failure",
    Status.UNSUPPORTED: "skipped",
    Status.INTERRUPTED: "error",
}
"""The JUnit element of a cell that is not ok."""
COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}
"""A suite's counts, and the elements that they count."""
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, not even escaped (section 2.2)."""


def junit_lines(runs: Sequence[RunDirectory]) -> Iterator[str]:
    return _lines(map(_suite, runs))


def gate_lines(
    comparisons: Sequence[Comparison], tables: Sequence[Sequence[ComparisonTable]], margin: Fraction
) -> Iterator[str]:
    """Write a suite for each pair of sides, with a case for each step that the gate judges."""
    suites = []
    for comparison, judged in zip(comparisons, tables, strict=True):
        for other, table in zip(comparison.others, judged, strict=True):
            sides = (f"{side.run.name} {side.name}".strip() for side in (other, comparison.base))
            cases = [_gate_case(row, margin) for row in gate_times(table)]
            suites.append(_counted(" against ".join(sides), cases))
    return _lines(suites)


def test_lines(name: str, found: Sequence[CaseResult]) -> Iterator[str]:
    """Write a suite of tests, with a case for each test, or part of one, and seed."""
    return _lines([_counted(name, [_test_case(result) for result in found])])


def track_lines(known: Known, told: Sequence[Followed]) -> Iterator[str]:
    """Write a suite with a case for each line of a track, which fails where the night has found a step on it."""
    cases = []
    for line in known.lines:
        case = _element("testcase", classname=known.track.name, name=f"{line.id.label}, {line.id.metric}")
        for row in told:
            if row.line == line.id:
                _element("failure", case, message=step_words(known, row), type="step")
        cases.append(case)
    return _lines([_counted(known.track.name, cases)])


def _test_case(result: CaseResult) -> Element:
    case = _element("testcase", classname=result.on, name=f"{result.name}, seed {result.seed}")
    skipped = result.verdict == "not run" or result.known
    kind = "error" if result.could_not else "skipped" if skipped else "failure"
    if result.verdict != "passed":
        why = f"known: {result.known}" if result.known else result.why
        _element(kind, case, message=why or result.verdict, type=result.verdict)
    return case


def _gate_case(row: ComparedSeries, margin: Fraction) -> Element:
    case = _element("testcase", classname="gate", name=row.row.left.step)
    if not (row.left and row.right):
        _element("skipped", case, message="not measured on both sides")
    elif row.too_few:
        _element("error", case, message=phrasing.TOO_FEW, type=phrasing.TOO_FEW)
    elif is_slower(row, margin):
        ratio, low, high = ratio_texts(row)
        message = f"slower: {ratio} times ({low} to {high}); the gate is {float(100 * margin):g} %"
        _element("failure", case, message=message, type="slower")
    if caveats := {side.caveat for side in (row.row.left, row.row.right) if side.caveat}:
        _element("system-out", case, "; ".join(sorted(caveats)))
    return case


def _element(kind: str, within: Element | None = None, text: str | None = None, **attributes: str) -> Element:
    """Make an element, in another one if there is one, without characters that XML cannot hold."""
    attributes = {name: replace_forbidden(value) for name, value in attributes.items()}
    made = ElementTree.Element(kind, attributes)
    made.text = replace_forbidden(text) if text else None
    if within is not None:
        within.append(made)
    return made


def _lines(suites: Iterable[Element]) -> Iterator[str]:
    every = _element("testsuites")
    every.extend(suites)
    ElementTree.indent(every)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield from ElementTree.tostring(every, encoding="unicode").split("\n")


def _counted(name: str, cases: Sequence[Element]) -> Element:
    suite = _element("testsuite", name=name, tests=str(len(cases)))
    for counted, kind in COUNTED.items():
        suite.set(counted, str(sum(case.find(kind) is not None for case in cases)))
    suite.extend(cases)
    return suite


def _suite(run: RunDirectory) -> Element:
    plan = run.plan()
    ends = [run.end(number) for number in range(len(plan.cells))]
    cases = [
        _case(plan.scenario, f"{cell.label}, {cell.kernel}, {name_seeds(cell, plan.cells)}", end)
        for cell, end in zip(plan.cells, ends, strict=True)
    ]
    suite = _counted(run.name, cases)
    suite.set("time", f"{sum(end.host_seconds for end in ends if end):.3f}")
    return suite


def _case(scenario: str, name: str, end: End | None) -> Element:
    took = f"{end.host_seconds if end else 0:.3f}"
    case = _element("testcase", classname=scenario, name=name, time=took)
    if kind := ELEMENTS.get(end.status, "failure" if end.disputes else "") if end else "error":
        why = _why(end)
        status = str(end.status if end else Status.INTERRUPTED)
        _element(kind, case, why, message=why.partition("\n")[0], type=status)
    if end and end.digest:
        origin = f"\nreused {end.reused}" if end.reused else ""
        _element("system-out", case, f"inputs_key {end.inputs_key}\ndigest {end.digest}{origin}")
    return case


def _why(end: End | None) -> str:
    if end is None:
        return "it has no end record"
    disputed = f"its digest is not that of an earlier cell with its key, {end.disputes}" if end.disputes else ""
    return end.why or disputed


def replace_forbidden(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
