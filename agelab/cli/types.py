"""Types of arguments and options: sizes, and texts that a shell completes (docs/terminal.md).

A shell asks while somebody types, so the words come from file names and a few small files. A store that is damaged or
somebody else's gives no words, and never a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.types import StringParamType

from agelab.base import fileio, places
from agelab.base.types import parse_digits
from agelab.scenario.jobs import AUTO, Jobs, parse_jobs

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
MAX_SIZE = 10**18
MAX_RUNS = 20
"""Runs to read the kernels of."""
SHORT_KEY = 12
"""Characters of a key in a list."""
FILE = "file"
"""The answer by which the shell completes the name of a file itself."""

Words = Callable[[str], Iterable[str]]
"""Lists words for an incomplete one; those that begin otherwise are left out afterwards."""


class Size(click.ParamType[int]):
    """A number of bytes: 650000000, or 650M (decimal units k, M, G, T)."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        number = value.removesuffix("B")
        unit = number[-1:] if number[-1:] in UNITS else ""
        size = parse_digits(number.removesuffix(unit), MAX_SIZE)
        if size is None:
            self.fail(f"{value[:20]!r} is no number of bytes; say for example 40M", param, ctx)
        return size * UNITS[unit]


class Text(StringParamType):
    """A text that a shell can complete."""

    def __init__(self, words: Words) -> None:
        self._words = words

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[Any]]:
        """List what the incomplete word can become."""
        from click.shell_completion import CompletionItem

        try:
            found = list(dict.fromkeys(self._words(incomplete)))
        except Exception:  # a damaged file, somebody else's store, an unknown name
            return []
        if found == [FILE]:
            return [CompletionItem(incomplete, type=FILE)]
        return [CompletionItem(word) for word in found if word.startswith(incomplete)]


class CellsAtOnce(click.ParamType["Jobs"]):
    """A number of cells, or ``auto``."""

    name = "number|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Jobs:
        try:
            return parse_jobs(value)
        except ValueError as error:
            self.fail(f"{str(value)[:20]!r}: {error}", param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[Any]]:
        """Complete the one word that there is."""
        return _one_of(AUTO).shell_complete(ctx, param, incomplete)


def _one_of(*words: str) -> Text:
    return Text(lambda incomplete: words)


def _list_of(words: Words) -> Text:
    """Several with commas between: the last one is completed, and none is offered twice."""

    def complete(incomplete: str) -> Iterator[str]:
        before, comma, last = incomplete.rpartition(",")
        given = before.split(",")
        yield from (f"{before}{comma}{word}" for word in words(last) if word not in given)

    return Text(complete)


def _home() -> Path:
    from agelab.store.home import default_home

    return default_home()


def _names(directory: str) -> list[str]:
    """List the project's data files of one kind; without a directory the scenarios."""
    from agelab.scenario.toml_files import SCENARIOS

    return sorted(path.stem for path in (SCENARIOS / directory).glob("*.toml"))


def _scenarios(incomplete: str) -> Iterator[str]:
    """List the scenarios, and the variants of one whose name is complete; a path is a file of the user's own."""
    import tomllib

    from agelab.scenario.toml_files import SCENARIOS

    if "/" in incomplete or incomplete.startswith("."):
        yield FILE
        return
    for name in _names(""):
        yield name
        if incomplete.startswith(name):
            variants = tomllib.loads(fileio.read_text(SCENARIOS / f"{name}.toml"))["variants"]
            yield from (f"{name}-{variant['name']}" for variant in variants)


def _runs(incomplete: str = "") -> Iterator[str]:
    """List ``latest`` and the runs, newest first; a path is the directory of any run."""
    if "/" in incomplete or incomplete.startswith("."):
        yield FILE
        return
    found = sorted((path.parent.name for path in (_home() / "runs").glob("*/plan.json")), reverse=True)
    yield from ["latest", *found] if found else []


def _plan(name: str) -> Any:
    import json

    return json.loads(fileio.read_bytes(_home() / "runs" / name / "plan.json"))


def _selections(incomplete: str) -> Iterator[str]:
    """List the runs; behind a colon the variants of the one before it."""
    name, colon, _ = incomplete.partition(":")
    if not colon:
        yield from _runs()
        return
    newest = fileio.read_text(_home() / "runs" / "latest").strip() if name == "latest" else name
    yield from (f"{name}:{cell['variant']}" for cell in _plan(newest)["cells"])


def _kernels(incomplete: str) -> Iterator[str]:
    """List the kernels of the newest runs by their specs, packaged ones in the store, recipes."""
    import json

    for name in [one for one in _runs() if one != "latest"][:MAX_RUNS]:
        if kernel := _plan(name).get("kernel"):
            yield kernel["spec"]
    for path in sorted((_home() / "store" / "kernel").glob("*/manifest.json")):
        if package := str(json.loads(fileio.read_bytes(path))["inputs"].get("package", "")):
            yield "debian:" + package.removeprefix("linux-image-")
    yield from (f"recipe:{name}" for name in _names("kernels"))


def _drives(incomplete: str) -> Iterator[str]:
    yield from ("model:none", *(f"model:{name}" for name in _names("drives")), "file:", "block:", "pci:")


def _keys(kind: str) -> Text:
    """The keys of the store's artefacts of a kind, as short as lists show them."""

    def complete(incomplete: str) -> Iterator[str]:
        for path in sorted((_home() / "store" / kind).glob("*/manifest.json")):
            key = path.parent.name
            yield key if len(incomplete) > SHORT_KEY else key[:SHORT_KEY]

    return Text(complete)


def _stored_kinds(incomplete: str) -> Iterator[str]:
    yield from (path.parent.parent.name for path in sorted((_home() / "store").glob("*/*/manifest.json")))


def _claims(incomplete: str) -> Iterator[str]:
    """List the claims of every study: which run is meant is not known here."""
    import tomllib

    from agelab.scenario.toml_files import SCENARIOS

    for path in sorted((SCENARIOS / "published").glob("*.claims.toml")):
        yield from (claim["id"] for claim in tomllib.loads(fileio.read_text(path))["claims"])


def _factors(incomplete: str) -> list[str]:
    from agelab.bisect.why.factors import FACTORS

    return [factor.name for factor in FACTORS]


SIZE = Size()
JOBS = CellsAtOnce()
SCENARIO = Text(_scenarios)
SCENARIO_NAME = Text(lambda incomplete: _names(""))
RUN = Text(_runs)
SELECTION = Text(_selections)
"""A run, or some of its cells: RUN:VARIANT."""
KERNEL = Text(_kernels)
FILESYSTEMS = _list_of(lambda incomplete: _names("filesystems"))
DRIVES = _list_of(_drives)
MACHINE = Text(lambda incomplete: _names("machines"))
DISK_KEY = _keys("disk")
CORPUS_KEY = _keys("corpus")
STORED_KIND = Text(_stored_kinds)
SCALE = _one_of("quick", "paper")
DEFAULTS = _one_of("period", "today")
LAYOUT = Text(lambda incomplete: places.layout_names())
CLOCK = _one_of("virtual", "wall")
BAND_END = _one_of("low", "high")
CLAIM = Text(_claims)
FACTORS = _list_of(_factors)
FILE_NAME = _one_of(FILE)
MEASURE = "STEP[:REPETITION]:METRIC"
"""How help names a measure (``agelab.results.measure``); without a repetition it is the mean over all."""
