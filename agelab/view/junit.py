"""Runs as JUnit XML, which CI systems show: a suite for each run, a case for each cell.

There is no standard; this is what Jenkins' and GitLab's readers take (testsuites, testsuite, testcase with failure,
error or skipped).
"""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence

from agelab.model.result import End, Status
from agelab.results.run_directory import RunDirectory
from agelab.view.cell_names import name_seeds

ELEMENTS = {
    Status.FAILED: "failure",
    Status.PANICKED: "failure",
    Status.HUNG: "failure",
    Status.UNSUPPORTED: "skipped",
    Status.INTERRUPTED: "error",
}
"""The JUnit element of a cell that is not ok."""
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, not even escaped (section 2.2)."""


def junit_lines(runs: Sequence[RunDirectory]) -> Iterator[str]:
    suites = ElementTree.Element("testsuites")
    for run in runs:
        suites.append(_suite(run))
    ElementTree.indent(suites)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield from ElementTree.tostring(suites, encoding="unicode").split("\n")


def _suite(run: RunDirectory) -> ElementTree.Element:
    plan = run.plan()
    ends = [run.end(number) for number in range(len(plan.cells))]
    kinds = [_kind(end) for end in ends]
    suite = ElementTree.Element("testsuite", name=replace_forbidden(run.name), tests=str(len(ends)))
    for name, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(kinds.count(kind)))
    suite.set("time", f"{sum(end.host_seconds for end in ends if end):.3f}")
    for cell, end in zip(plan.cells, ends, strict=True):
        name = f"{cell.label}, {cell.kernel}, {name_seeds(cell, plan.cells)}"
        suite.append(_case(plan.scenario, name, end))
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
    return end.reason or disputed


def replace_forbidden(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
