"""Read a study's two files together: its figures, and the claims that rest on them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from agelab.analysis.published import tables
from agelab.analysis.published.base_rates import BaseRate, base_rates
from agelab.analysis.published.claims import Claims
from agelab.analysis.published.outcome import run_test
from agelab.analysis.published.tables import PublishedTables
from agelab.analysis.published.value_sources import PrintedValues
from agelab.base.errors import InputError, unknown
from agelab.scenario import toml_files

DIRECTORY = "published"


@dataclass(frozen=True)
class Study:
    figures: PublishedTables
    claims: Claims
    rates: Mapping[str, BaseRate]
    """Claim to its base rate; empty where those that are known are of other claims or figures."""

    @property
    def name(self) -> str:
        return self.figures.study

    @property
    def scenarios(self) -> list[str]:
        """The scenarios whose runs can stand beside its tables."""
        others = [table.scenario for table in self.claims.tables if table.scenario]
        return list(dict.fromkeys([self.name, *others]))


def study_names() -> list[str]:
    return sorted(path.stem for path in (toml_files.SCENARIOS / DIRECTORY).glob("*.csv"))


def read_study(name: str, directory: Path | None = None) -> Study:
    """Read a study by name. Raises InputError that lists every error with its place."""
    directory = directory or toml_files.SCENARIOS / DIRECTORY
    figures = tables.read_tables(directory / f"{name}.csv")
    path = directory / f"{name}.claims.toml"
    claims = toml_files.read(path, Claims)
    if wrong := [f"{path}: {line}" for line in _strangers(figures, claims)]:
        raise InputError("\n".join(wrong))
    return Study(figures, claims, base_rates(figures, claims))


def all_studies() -> list[Study]:
    """Return all studies, whose files are read once."""
    return [_once(name, toml_files.SCENARIOS / DIRECTORY) for name in study_names()]


@cache
def _once(name: str, directory: Path) -> Study:
    return read_study(name, directory)


def study_of_scenario(scenario: str) -> Study:
    """Return the study that a scenario follows. Raises InputError that lists the scenarios that follow one."""
    studies = all_studies()
    for study in studies:
        if scenario in study.scenarios:
            return study
    having = [name for study in studies for name in study.scenarios]
    raise unknown("published data for scenario", scenario, having)


def _strangers(figures: PublishedTables, claims: Claims) -> Iterator[str]:
    """Yield what the claims name and the figures do not have."""
    if claims.study != figures.study:
        yield f"study: is {claims.study!r}, the figures are of {figures.study!r}"
    known = {table.id for table in claims.tables}
    for table in dict.fromkeys(figure.table for figure in figures.by_place.values()):
        if table not in known:
            yield f"tables: {table!r} is not there, and the figures have it"
    printed = list(figures.by_place.values())
    measured = {(figure.step, figure.metric) for figure in printed}
    for number, circle in enumerate(claims.circles):
        for step in circle.steps:
            if (step, circle.metric) not in measured:
                yield f"circles[{number}].steps: the figures have no {circle.metric} of {step!r}"
    steps, variants = {figure.step for figure in printed}, {figure.variant for figure in printed}
    for number, one in enumerate(claims.disproportionate):
        for what, named, known in (("steps", one.steps, steps), ("variants", one.variants, variants)):
            for name in named:
                if name not in known:
                    yield f"disproportionate[{number}].{what}: the figures have no {name!r}"
    for number, claim in enumerate(claims.claims):
        if claim.test and not claim.unprinted:
            for why in run_test(claim.test, claims, PrintedValues(figures, claims)).missing:
                yield f"claims[{number}].test: {why} (claim {claim.id!r})"
