"""Read a study's two files together: its figures, and the claims that rest on them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field

from agelab.analysis.published.claims import Claims, PublishedTables, read_tables
from agelab.analysis.published.outcome import run_test
from agelab.analysis.published.values import PrintedValues
from agelab.base.errors import InputError, unknown
from agelab.base.hashing import key_of
from agelab.base.types import Frozen, Name
from agelab.scenario import toml_files

FILE = Path(__file__).with_name("base_rates.toml")
NOISES = (0.02, 0.05)
"""Standard deviations of the noise by which filesystems that are all alike differ, as shares of a step's time."""
ALWAYS = 0.95
"""The rate from which a claim counts as true of anything."""
Share = Annotated[float, Field(ge=0, le=1)]


class BaseRate(NamedTuple):
    """The share of worlds of filesystems that are all alike in which a claim is true, at each of NOISES."""

    little_noise: Share
    more_noise: Share

    @property
    def uninformative(self) -> bool:
        return min(self) >= ALWAYS


class StudyRates(Frozen):
    of: str = Field(description="the hash of the study's claims and figures")
    rates: dict[Name, BaseRate] = Field(description="of each claim that has one")


class BaseRates(Frozen):
    """The whole file."""

    studies: dict[Name, StudyRates]


def base_rates(figures: PublishedTables, claims: Claims) -> dict[str, BaseRate]:
    """Return each claim's base rate; none where they were made of other claims or figures."""
    known = toml_files.read(FILE, BaseRates).studies.get(claims.study)
    return known.rates if known and known.of == hash_of(figures, claims) else {}


def hash_of(figures: PublishedTables, claims: Claims) -> str:
    """Return the hash of what the rates depend on."""
    printed = [figure.model_dump(mode="json") for figure in figures.by_place.values()]
    return key_of([printed, claims.model_dump(mode="json")])


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
    figures = read_tables(directory / f"{name}.csv")
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
    for number, mark in enumerate(claims.uncounted):
        for step in mark.steps:
            if (step, mark.metric) not in measured:
                yield f"uncounted[{number}].steps: the figures have no {mark.metric} of {step!r}"
    steps, variants = {figure.step for figure in printed}, {figure.variant for figure in printed}
    for number, entry in enumerate(claims.disproportionate):
        for what, named, known in (("steps", entry.steps, steps), ("variants", entry.variants, variants)):
            for name in named:
                if name not in known:
                    yield f"disproportionate[{number}].{what}: the figures have no {name!r}"
    for number, claim in enumerate(claims.claims):
        if claim.test and not claim.unprinted:
            for why in run_test(claim.test, claims, PrintedValues(figures, claims)).missing:
                yield f"claims[{number}].test: {why} (claim {claim.id!r})"
