"""How often a claim is true where filesystems are all alike: ``base_rates.toml`` (docs/make/base_rates.py)."""

from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field

from agelab.analysis.published.claims import Claims
from agelab.analysis.published.tables import PublishedTables
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
