"""The texts of an artefact for reviewers: README.md, CHECKLIST.md and CITATION.cff.

What no program knows is a line that begins with TO DO and says what its author must write.
"""

import json
from collections.abc import Iterator, Mapping, Sequence

from agelab.base.errors import InputError
from agelab.base.types import escape_controls, escape_markdown
from agelab.capsule.replay import selection_of
from agelab.present.artifact import REPORT, Artifact, PackedRun, ShownResult
from agelab.present.report.command import repeat_command
from agelab.present.view.cell_names import count_reproduced, count_statuses
from agelab.present.view.eta import format_time_left
from agelab.run.cell_times import TimeRange
from agelab.scenario.scenario import Citation

README, CHECKLIST, CITATION = "README.md", "CHECKLIST.md", "CITATION.cff"
REPLAY = "agelab capsule replay ."
REPLAYED = "replayed.html"
"""The report of a replay; it must not replace the artefact's own."""
GIGABYTE = 10**8 * 5
"""Bytes from which a size is told in gigabytes."""
NO_CITATION = "none"
"""The title of a scenario's citation where there is no study behind it."""
FINDINGS = ("claim, answer or figure", "in these runs", "command", "time", "disk")


def texts(artifact: Artifact) -> Mapping[str, str]:
    """Return the text of each file by its name."""
    made = {README: _readme, CHECKLIST: _checklist, CITATION: _citation}
    return {name: "\n".join(lines(artifact)) + "\n" for name, lines in made.items()}


# ---- README.md ----


def _readme(artifact: Artifact) -> Iterator[str]:
    yield from (f"# Artefact: {_text(_title(artifact))}", "")
    yield (
        "Each run is packed as a capsule: all that it takes to run it again, and its results. Its guests run in a "
        "virtual clock, so a replay gives the same digits on any host, or names the input that differs."
    )
    yield from (
        "",
        _to_do("the paper, and which of its claims and figures each row of the tables below stands for"),
    )
    yield from ("", "## To replay", "", f"1. Install {_agelab(artifact)}.")
    yield f"   {_to_do('where a reviewer gets it: an archive, or an address and a commit')}"
    yield "   In a clone, `make setup` makes it `.venv/bin/agelab`. `agelab doctor` says what the host lacks."
    yield from ("2. In this directory, run all of it:", "", f"       {REPLAY}", "")
    yield (
        f"   Where all is the same it prints `{reproduced_line(artifact)}` below its table, and exits with 0. "
        f"The cells take {_time(sum(one.seconds for one in artifact.runs))}, one at a time; `--jobs 2` runs two at "
        "a time. The first replay also makes kernel and image, which is not in that time."
    )
    yield "3. Or run one row of the tables: its command replays what it is made of, and prints it."
    yield from ("", "## What it needs", "", *_needs(artifact), "", "## Claims and figures", "")
    yield (
        f"[{REPORT}]({REPORT}) shows all of it as the runs found it. Time is what the cells took on the host named "
        "below; disk is the most that they take while they run, one at a time. Rows of one capsule need one replay."
    )
    for part in artifact.parts:
        yield from ("", f"### {_text(part.title)}", "", _text(part.subtitle), "")
        yield from (_row(FINDINGS), "|---|---|---|---:|---:|")
        yield from (_finding(one) for one in part.findings)
    yield from ("", "## The runs", "")
    for run in artifact.runs:
        yield from (*_run(run), "")


def _title(artifact: Artifact) -> str:
    return ", ".join(dict.fromkeys(one.run.plan.scenario for one in artifact.runs))


def _agelab(artifact: Artifact) -> str:
    """Name the agelab of the runs: another harness is an input that differs."""
    versions = dict.fromkeys(one.capsule.run_manifest.agelab for one in artifact.runs)
    harnesses = dict.fromkeys(str(one.run.plan.provenance.get("harness")) for one in artifact.runs)
    found = f"agelab {_text(' and '.join(versions))}, whose harness is {_text(', '.join(harnesses))}"
    return f"{found} (a replay says so where it is another one)"


def _needs(artifact: Artifact) -> Iterator[str]:
    needs = [one.needs for one in artifact.runs]
    known = [one for one in needs if one]
    yield "- Linux on x86-64, and the Debian packages that `make setup` installs; no KVM, no quiet machine."
    if known:
        disk, memory = max(one.disk() for one in known), max(one.guests() for one in known)
        yield (
            f"- {_size(disk)} of disk and {_size(memory)} of memory for a cell at a time. Kernel, image and their "
            "packages stay in the store, which `AGELAB_HOME` moves."
        )
    if len(known) < len(needs):
        yield f"- {_to_do('the disk and memory of runs whose data are not in the store any more')}"
    if artifact.carries:
        yield (
            "- A Debian mirror for QEMU alone: kernels, images, programs and data are in the capsules. With another "
            "QEMU than the runs' a replay names it as the input that differs."
        )
    else:
        yield (
            "- A Debian mirror that still has the packages of the runs, in their versions. Packed `--with-image` "
            "an artefact needs it for QEMU alone."
        )
    yield f"- {_size(sum(one.size for one in artifact.runs))} of disk for the capsules."


def _finding(one: ShownResult) -> str:
    name = f"[{_text(one.name)}]({REPORT}#{one.anchor})"
    disk = "not known" if one.disk is None else _size(one.disk)
    return _row((name, _text(one.said) or "figure", _command(one), _time(one.seconds), disk))


def _command(one: ShownResult) -> str:
    """Return the commands that make it again: the replays, and what prints it."""
    replays = "; ".join(f"agelab capsule replay {run.file}" for run in one.runs)
    verb, output = ("replicate", "") if one.claim else ("report", f" -o {REPLAYED}")
    if len(one.runs) == 1:
        return f"`{replays}; agelab {verb} latest{output}`"
    return f"`{replays}`, then `agelab {verb} REPLAY...{output}` with the names that they print"


def _run(one: PackedRun) -> Iterator[str]:
    plan = one.run.plan
    statuses = count_statuses([cell.end_status for cell in one.run.cells])
    yield from (f"### {_text(one.run.name)}", "")
    yield f"- capsule: [{one.file}]({one.file}), {_size(one.size)}, sha256 `{one.sha256}`"
    yield f"- cells: {statuses}, in {_time(one.seconds)} on {_text(str(plan.provenance.get('host')))}"
    yield f"- kernel: {_text(str(plan.kernel))}"
    if command := escape_controls(repeat_command(plan), kept=""):
        yield "- made by this, in a clone of agelab; a scenario file of its author's own is in the capsule:"
        yield from ("", f"      {command}")


def _text(text: str) -> str:
    """Put a text that is not ours on one line, as nothing but text."""
    return escape_markdown(escape_controls(" ".join(text.split())))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _to_do(what: str) -> str:
    return f"**TO DO**: {what}."


def _time(seconds: float) -> str:
    return format_time_left(TimeRange(max(1, seconds), max(1, seconds)))


def _size(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= GIGABYTE else f"{max(size / 1e6, 0.1):.1f} MB"


def reproduced_line(artifact: Artifact) -> str:
    """Return the line that a replay of all of it ends with where everything is the same."""
    return count_reproduced(artifact.cells, artifact.cells, len(artifact.runs), len(artifact.runs))


# ---- CHECKLIST.md ----


def _checklist(artifact: Artifact) -> Iterator[str]:
    cells = [cell for one in artifact.runs for cell in one.run.cells]
    statuses = count_statuses([cell.end_status for cell in cells])
    findings = sum(len(part.findings) for part in artifact.parts)
    yield from (
        "# Badges",
        "",
        "`[x]` was checked while this directory was written; `[ ]` is for its author.",
        "",
    )
    yield from ("## Artifacts Available (ACM, USENIX)", "")
    yield _box(
        _to_do("put this directory into a public archive that lasts, and write its DOI or address here")
    )
    yield _box(_to_do("choose a licence, and put its text beside this file"))
    yield _box(
        _to_do(f"read the commands in {README} and {REPORT}: they name files as its author's host has them")
    )
    yield _box(f"the sha256 of each capsule is in {README} and {CITATION}", done=True)
    yield from ("", "## Artifacts Evaluated: Functional (ACM), Artifacts Functional (USENIX)", "")
    yield _box(
        f"documented: {README} has {len(artifact.runs)} runs, and {findings} claims, answers and figures with command, "
        "time and disk",
        done=True,
    )
    yield _box(_to_do(f"consistent: in {README}, name the claim or figure of the paper beside each row"))
    yield _box(f"complete: every cell of each run has ended, and is in its capsule ({statuses})", done=True)
    yield _box(
        "complete: every capsule was read back, and each key and digest follows from what is in it", done=True
    )
    if failed := sum(not cell.ok for cell in cells):
        yield _box(_to_do(f"complete: say in the paper why {failed} of {len(cells)} cells did not end ok"))
    if artifact.carries:
        yield _box("exercisable: kernels, images, programs and data are in the capsules", done=True)
    else:
        yield _box(
            _to_do(
                "exercisable: a replay needs a mirror that has the packages; pack again --with-image, or hand on an "
                "archive of them (`agelab mirror make`)"
            )
        )
    yield _box(
        _to_do(f"exercisable: run `{REPLAY}` on another host, and write here which, and what it printed")
    )
    yield from ("", "## Artifacts Evaluated: Reusable (ACM)", "")
    yield _box(
        "each scenario, its drives, machines and filesystems are data in the capsule (`agelab capsule show`)",
        done=True,
    )
    yield _box(_to_do("say what another question would change: the scenario, the kernel, the seeds"))
    yield from ("", "## Results Reproduced (ACM, USENIX)", "", "By somebody else, with this artefact:", "")
    yield _box(f"`{REPLAY}` exits with 0: `{reproduced_line(artifact)}`")
    yield _box("the claims and figures of the paper follow from the replays, by the commands of the tables")
    yield from ("", "## Results Replicated (ACM)", "", "By somebody else, without this artefact:", "")
    yield _box(
        _to_do("name what would show it: the same claims with other data, another kernel, a real disk")
    )


def _box(text: str, *, done: bool = False) -> str:
    return f"- [{'x' if done else ' '}] {text}"


# ---- CITATION.cff ----


def _citation(artifact: Artifact) -> Iterator[str]:
    """Yield a YAML file of the Citation File Format; each value is written as JSON, which YAML reads."""
    yield "# TO DO: authors; then doi, license, date-released, and the paper as preferred-citation."
    yield "cff-version: 1.2.0"
    yield "type: dataset"
    yield f"title: {_value(f'Artefact: {_title(artifact)}')}"
    yield 'message: "Please cite this artefact, and the studies that its scenarios follow."'
    yield from ("authors:", '  - name: "TO DO: the authors of the artefact"', "identifiers:")
    for one in artifact.runs:
        yield "  - type: other"
        yield f"    value: sha256:{one.sha256}"
        yield f"    description: {_value(one.file)}"
    yield "references:"
    for version in dict.fromkeys(one.capsule.run_manifest.agelab for one in artifact.runs):
        yield from _reference("software", "agelab", "the agelab authors", f"version: {_value(version)}")
    for cited in dict.fromkeys(filter(None, map(_cited, artifact.runs))):
        yield from _reference("generic", cited.title, cited.author, f"year: {cited.year}")


def _reference(kind: str, title: str, author: str, more: str) -> Iterator[str]:
    yield from (f"  - type: {kind}", f"    title: {_value(title)}", f"    {more}")
    yield from ("    authors:", f"      - name: {_value(author)}")


def _cited(one: PackedRun) -> Citation | None:
    """Return the study behind a run's scenario, if there is one."""
    try:
        found = selection_of(one.capsule).scenario.citation
    except InputError:  # a control file's
        return None
    return None if found.title == NO_CITATION else found


def _value(text: str) -> str:
    return json.dumps(escape_controls(text, kept=""), ensure_ascii=False)
