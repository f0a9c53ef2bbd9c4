"""What brings back the claims of a study that are not replicated: runs with one thing changed, for docs/replication.md.

The first run of the table is the study as it is, with several run seeds; each of the others has one, and one option
more. A run without an option more shows what chance moves.
"""

from collections.abc import Mapping, Sequence

from agelab.analysis.published.report import study_reports
from agelab.analysis.published.verdict import ClaimVerdict
from agelab.cli.replicate import loaded
from agelab.results.run_directory import RunDirectory
from docs.make.catalogue import Made, Table
from docs.make.page import grid, line


def made(table: Table, runs: Sequence[RunDirectory]) -> Made:
    """Make a row for each change: which claims it brings back, and which it takes away.

    Each run is judged by itself: beside the others the ends of the processor's band would make claims not known.
    """
    own, *others = map(_verdicts, runs)
    lines = [_counted(own), "", *grid(["changed", "brings back", "takes away"])]
    for words, changed in zip(table.runs[1:], others, strict=True):
        more = [f"`{name.upper()}={words[name]}`" for name in words if words[name] != table.runs[0].get(name)]
        lines.append(
            line(
                [
                    ", ".join(more) or "nothing: one run seed alone",
                    _moved(own, changed, ClaimVerdict.NOT, ClaimVerdict.REPLICATED),
                    _moved(own, changed, ClaimVerdict.REPLICATED, ClaimVerdict.NOT),
                ]
            )
        )
    back = {
        claim
        for changed in others
        for claim, verdict in changed.items()
        if verdict is ClaimVerdict.REPLICATED
    }
    left = [claim for claim, verdict in own.items() if verdict is ClaimVerdict.NOT and claim not in back]
    lines += ["", f"No change alone brings back {len(left)}: {_names(left)}."]
    unknown = [claim for claim, verdict in own.items() if verdict is ClaimVerdict.UNKNOWN]
    lines += ["", f"Not known {len(unknown)}: {_names(unknown)}."]
    return Made("\n".join(lines))


def _verdicts(run: RunDirectory) -> dict[str, ClaimVerdict]:
    [report] = study_reports([loaded(run)])
    return {
        claim.id: judgement.verdict
        for claim, judged in report.claims
        for _, judgement in judged
        if judgement.kind == judgement.verdict
    }


def _counted(own: Mapping[str, ClaimVerdict]) -> str:
    verdicts = [*own.values()]
    return ", ".join(f"{verdicts.count(verdict)} {verdict.value}" for verdict in ClaimVerdict) + "."


def _moved(
    own: Mapping[str, ClaimVerdict],
    changed: Mapping[str, ClaimVerdict],
    before: ClaimVerdict,
    after: ClaimVerdict,
) -> str:
    return _names([claim for claim in own if own[claim] is before and changed.get(claim) is after])


def _names(claims: Sequence[str]) -> str:
    return ", ".join(f"`{claim}`" for claim in claims) or "none"
