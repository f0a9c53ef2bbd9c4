"""How often each claim of a study is true where filesystems are all alike: simulated, for docs/replication.md.

    .venv/bin/python -m docs.make.base_rates [--write]

Every filesystem takes the median that the study's own table has for a step (in a layout), times lognormal noise, and
the claim's own test looks at it. With --write the rates go into agelab/analysis/published/base_rates.toml, which agelab
replicate reads. The generators are fixed, one for each claim.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from math import exp
from random import Random
from statistics import median

from agelab.analysis.published.claims import Amount, Claim, Claims, Place, Uncounted
from agelab.analysis.published.outcome import run_test
from agelab.analysis.published.study import FILE, NOISES, BaseRate, Study, all_studies, hash_of
from agelab.analysis.published.values import PrintedValues, no_value, printed_value, sum_values
from agelab.stats.series import Series
from docs.make import command
from docs.make.command import Answer
from docs.make.page import grid, line

DRAWS = 2000
Level = tuple[str, str, str, str]
"""Table, layout, step, metric."""


@dataclass
class AlikeValues:
    """Values of filesystems that differ in noise alone. A sum whose parts the study prints is that of its parts."""

    claims: Claims
    levels: Mapping[Level, float]
    noise: float
    random: Random
    _drawn: dict[Place, Series] = field(default_factory=dict)

    resolution = Fraction()

    def why_uncounted(self, step: str, metric: str) -> Uncounted | None:
        return self.claims.why_uncounted(step, metric)

    def value(self, place: Place) -> Series:
        table, variant, layout, step, metric = place
        if why := self.claims.table(table).untestable:
            return no_value(step, metric, why)
        parts = self.claims.sums.get(step, ())
        if parts and all((table, layout, part, metric) in self.levels for part in parts):
            values = [self.value((table, variant, layout, part, metric)) for part in parts]
            return sum_values(step, metric, values)
        if place not in self._drawn:
            # Without a figure any level does: such a claim compares filesystems within a step. All are in millionths.
            level = self.levels.get((table, layout, step, metric), 1)
            number = round(10**6 * level * exp(self.random.gauss(0, self.noise)))
            self._drawn[place] = printed_value(step, metric, Fraction(number))
        return self._drawn[place]

    def draw_anew(self) -> None:
        self._drawn.clear()


def levels(study: Study) -> dict[Level, float]:
    """Return the median of the study's own values of each step."""
    printed = PrintedValues(study.figures, study.claims)
    by_level: dict[Level, list[Fraction]] = {}
    for use in study.claims.tables:
        figures = study.figures.of(use.id)
        metrics = {(row.layout, row.step, metric) for row in figures for metric in (row.metric, use.compares)}
        for variant in {*(row.variant for row in figures), use.relative_to or ""}:
            for layout, step, metric in metrics:
                value = printed.value((use.id, variant, layout, step, metric))
                if value.values:
                    by_level.setdefault((use.id, layout, step, metric), []).append(value.median)
    return {level: float(median(values)) for level, values in by_level.items()}


def rates_of(study: Study) -> dict[str, BaseRate]:
    """Return the base rate of each claim that has one."""
    claims = study.claims.claims
    with ProcessPoolExecutor() as pool:
        results = pool.map(partial(_rates, study, levels(study)), claims)
    return {claim.id: BaseRate(*rates) for claim, rates in zip(claims, results, strict=True) if rates}


def _rates(study: Study, known: Mapping[Level, float], claim: Claim) -> list[float]:
    return [base_rate for noise in NOISES if (base_rate := rate(study, known, claim, noise)) is not None]


def rate(study: Study, known: Mapping[Level, float], claim: Claim, noise: float) -> float | None:
    """Return the share of draws in which the claim is true; None where alike filesystems say nothing of it.

    Of an amount they do not: it is the machine's and the drive's.
    """
    if claim.test is None or claim.untestable or isinstance(claim.test, Amount):
        return None
    values = AlikeValues(study.claims, known, noise, Random(f"{study.name} {claim.id}"))
    true = 0
    for _ in range(DRAWS):
        values.draw_anew()
        holds = run_test(claim.test, study.claims, values).holds
        if holds is None:
            return None
        true += holds
    return true / DRAWS


def file_lines(by_study: dict[str, dict[str, BaseRate]]) -> Iterator[str]:
    """Write agelab/analysis/published/base_rates.toml."""
    yield "# Made by make tables NAME=base-rates: claim to its base rate at 2 % and 5 % noise (docs/replication.md)."
    for study in all_studies():
        yield from ("", f"[studies.{study.name}]", f'of = "{hash_of(study.figures, study.claims)}"')
        yield f"[studies.{study.name}.rates]"
        yield from (f"{name} = [{base_rate[0]}, {base_rate[1]}]" for name, base_rate in by_study[study.name].items())


def table_lines(by_study: dict[str, dict[str, BaseRate]]) -> Iterator[str]:
    """Write a row for each study, and below the table its uninformative claims."""
    head = (
        "study",
        "claims with a base rate",
        "uninformative",
        "the others",
        "of these true if all were alike, at 2 % noise",
        "at 5 %",
    )
    yield from grid(head)
    below = []
    for study in all_studies():
        denied = {claim.id for claim in study.claims.claims if claim.conflict}
        rates = {name: base_rate for name, base_rate in by_study[study.name].items() if name not in denied}
        same = [name for name, base_rate in rates.items() if base_rate.uninformative]
        others = [base_rate for name, base_rate in rates.items() if name not in same]
        sums = [f"{sum(base_rate[at] for base_rate in others):.1f}" for at in range(len(NOISES))]
        yield line([f"`{study.name}`", str(len(rates)), str(len(same)), str(len(others)), *sums])
        below.append(f"- uninformative in `{study.name}`: {', '.join(f'`{name}`' for name in same) or 'none'}")
    yield from ("", *below)


def measure(options: argparse.Namespace) -> Answer:
    """Draw for each study."""
    rates = {study.name: rates_of(study) for study in all_studies()}
    if options.write:
        FILE.write_text("\n".join([*file_lines(rates), ""]), encoding="utf-8")
    return Answer({"base-rates": "\n".join(table_lines(rates))})


def main() -> int:
    """Return the exit code."""
    return command.run(command.parser(__doc__), measure)


if __name__ == "__main__":
    sys.exit(main())
