"""Runs, tests and gates as JUnit XML, which CI systems show: a case for each cell, test, or step that is judged.

There is no standard; this is what Jenkins' and GitLab's readers take (testsuites, testsuite, testcase with failure,
error or skipped).
"""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from fractions import Fraction

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
    suites = ElementTree.Element("testsuites")
    for run in runs:
        suites.append(_suite(run))
    return _lines(suites)


def gate_lines(
    comparisons: Sequence[Comparison], tables: Sequence[Sequence[ComparisonTable]], margin: Fraction
) -> Iterator[str]:
    """Write a suite for each pair of sides, with a case for each step that the gate judges."""
    suites = ElementTree.Element("testsuites")
    for comparison, judged in zip(comparisons, tables, strict=True):
        for other, table in zip(comparison.others, judged, strict=True):
            sides = (f"{side.run.name} {side.name}".strip() for side in (other, comparison.base))
            cases = [_gate_case(row, margin) for row in gate_times(table)]
            suites.append(_counted(" against ".join(sides), cases))
    return _lines(suites)


def test_lines(name: str, found: Sequence[CaseResult]) -> Iterator[str]:
    """Write a suite of tests, with a case for each test, or part of one, and seed."""
    suites = ElementTree.Element("testsuites")
    suites.append(_counted(name, [_test_case(result) for result in found]))
    return _lines(suites)


def track_lines(known: Known, told: Sequence[Followed]) -> Iterator[str]:
    """Write a suite with a case for each line of a track, which fails where the night has found a step on it."""
    suites, cases = ElementTree.Element("testsuites"), []
    for line in known.lines:
        name = replace_forbidden(f"{line.id.label}, {line.id.metric}")
        case = ElementTree.Element("testcase", classname=replace_forbidden(known.track.name), name=name)
        for row in told:
            if row.line == line.id:
                message = replace_forbidden(step_words(known, row))
                ElementTree.SubElement(case, "failure", message=message, type="step")
        cases.append(case)
    suites.append(_counted(known.track.name, cases))
    return _lines(suites)


def _test_case(result: CaseResult) -> ElementTree.Element:
    name = replace_forbidden(f"{result.name}, seed {result.seed}")
    case = ElementTree.Element("testcase", classname=replace_forbidden(result.on), name=name)
    skipped = result.verdict == "not run" or result.known
    kind = "error" if result.could_not else "skipped" if skipped else "failure"
    if result.verdict != "passed":
        why = f"known: {result.known}" if result.known else result.why
        message = replace_forbidden(why or result.verdict)
        ElementTree.SubElement(case, kind, message=message, type=result.verdict)
    return case


def _gate_case(row: ComparedSeries, margin: Fraction) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname="gate", name=replace_forbidden(row.row.left.step))
    if not (row.left and row.right):
        ElementTree.SubElement(case, "skipped", message="not measured on both sides")
    elif row.too_few:
        ElementTree.SubElement(case, "error", message=phrasing.TOO_FEW, type=phrasing.TOO_FEW)
    elif is_slower(row, margin):
        ratio, low, high = ratio_texts(row)
        message = f"slower: {ratio} times ({low} to {high}); the gate is {float(100 * margin):g} %"
        ElementTree.SubElement(case, "failure", message=message, type="slower")
    if caveats := {side.caveat for side in (row.row.left, row.row.right) if side.caveat}:
        ElementTree.SubElement(case, "system-out").text = replace_forbidden("; ".join(sorted(caveats)))
    return case


def _lines(suites: ElementTree.Element) -> Iterator[str]:
    ElementTree.indent(suites)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield from ElementTree.tostring(suites, encoding="unicode").split("\n")


def _counted(name: str, cases: Sequence[ElementTree.Element]) -> ElementTree.Element:
    """Make a suite of these cases."""
    suite = ElementTree.Element("testsuite", name=replace_forbidden(name), tests=str(len(cases)))
    for counted, kind in COUNTED.items():
        suite.set(counted, str(sum(case.find(kind) is not None for case in cases)))
    suite.extend(cases)
    return suite


def _suite(run: RunDirectory) -> ElementTree.Element:
    plan = run.plan()
    ends = [run.end(number) for number in range(len(plan.cells))]
    cases = [
        _case(plan.scenario, f"{cell.label}, {cell.kernel}, {name_seeds(cell, plan.cells)}", end)
        for cell, end in zip(plan.cells, ends, strict=True)
    ]
    suite = _counted(run.name, cases)
    suite.set("time", f"{sum(end.host_seconds for end in ends if end):.3f}")
    return suite


def _case(scenario: str, name: str, end: End | None) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase", classname=replace_forbidden(scenario), name=replace_forbidden(name)
    )
    case.set("time", f"{end.host_seconds if end else 0:.3f}")
    if kind := _kind(end):
        status = end.status if end else Status.INTERRUPTED
        why = _why(end)
        element = ElementTree.SubElement(
            case, kind, message=replace_forbidden(why.partition("\n")[0]), type=str(status)
        )
        element.text = replace_forbidden(why)
    if end and end.digest:
        origin = f"\nreused {end.reused}" if end.reused else ""
        ElementTree.SubElement(case, "system-out").text = replace_forbidden(
            f"inputs_key {end.inputs_key}\ndigest {end.digest}{origin}"
        )
    return case


def _kind(end: End | None) -> str | None:
    if end is None:
        return "error"
    return ELEMENTS.get(end.status, "failure" if end.disputes else None)


def _why(end: End | None) -> str:
    """Return why a cell is not ok."""
    if end is None:
        return "it has no end record"
    disputed = (
        f"its digest is not that of an earlier cell with its key, {end.disputes}" if end.disputes else ""
    )
    return end.why or disputed


def replace_forbidden(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
