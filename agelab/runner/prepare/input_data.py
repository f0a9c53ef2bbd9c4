"""The data that the cells of a run read: seeded ones like a study's, the user's own, or the logs of histories."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from pydantic import ValidationError

from agelab.base.errors import InputError, Notify
from agelab.data.corpus import Corpus, CorpusSpec, corpus_from_user, make
from agelab.data.history import artefact
from agelab.machine.vm.domain import MEMORY_SLOTS
from agelab.runner.plan.cell_spec import MIB, CellSpec
from agelab.runner.request.request import RunRequest
from agelab.store.artefacts import Store

AnyData = TypeVar("AnyData")
OTHER_DISKS = 3
"""Memory-backed disks of a guest that measures forks, beside the forks: root, corpus, results."""


def user_corpus(request: RunRequest, store: Store, say: Notify) -> Corpus | None:
    """Return the user's own source data, if there are any. Raises InputError for empty ones and a wrong kind."""
    if request.corpus is None:
        return None
    say(f"corpus {request.corpus}")
    corpus_use = request.selection.scenario.corpus
    expected = corpus_use.kind if corpus_use and not request.control else None
    corpus = corpus_from_user(request.corpus, store, expected, lambda line: say(f"corpus: {line}"))
    if not corpus.content_bytes:
        raise InputError(f"{request.corpus} holds no data: there is nothing to copy")
    return corpus


def named_data(specs: Sequence[CellSpec], data: Sequence[AnyData]) -> dict[str, AnyData]:
    """Return the data of these cells by name: the history's, "" for a corpus.

    Where another corpus seed than the first has other data, ``@`` and that seed stand behind their name.
    """
    named: dict[str, AnyData] = {}
    for spec, cell_data in zip(specs, data, strict=True):
        name = spec.variant.history or ""
        if named.setdefault(name, cell_data) != cell_data:
            named[f"{name}@{spec.corpus_seed}"] = cell_data
    return named


def carried_data(carried: Mapping[str, AnyData], history: str | None, corpus_seed: int) -> AnyData:
    """Return the data that ``named_data`` has named."""
    name = history or ""
    return carried.get(f"{name}@{corpus_seed}", carried[name])


def corpora(
    request: RunRequest, specs: Sequence[CellSpec], own: Corpus | None, store: Store, say: Notify
) -> list[Corpus]:
    """Return the corpus, or the history's log, that each of these cells reads.

    Raises InputError for a history that cannot be made, HostError where the host's disk is too full for one.
    """
    if own or (corpus_use := request.selection.scenario.corpus) is None:
        return [own] * len(specs) if own else _histories(specs, store, say)
    size = int(corpus_use.mib.value * MIB / request.shrink(None))
    made: dict[int, Corpus] = {}
    for seed in dict.fromkeys(spec.corpus_seed for spec in specs):
        say(f"corpus {corpus_use.kind}, {size / 1e6:.0f} MB, seed {seed}")
        try:
            what = CorpusSpec(kind=corpus_use.kind, bytes=size, seed=seed, files=corpus_use.file_counts)
            made[seed] = make(what, store)
        except ValidationError as error:
            raise InputError(f"a corpus of {size} bytes: {error.errors()[0]['msg']}") from error
    return [made[spec.corpus_seed] for spec in specs]


def _histories(specs: Sequence[CellSpec], store: Store, say: Notify) -> list[Corpus]:
    several = len({spec.corpus_seed for spec in specs}) > 1
    made: dict[tuple[str, int], Corpus] = {}
    logs = []
    for spec in specs:
        history = spec.history
        assert history is not None, "a scenario has a corpus or histories"
        name = (history.name, spec.corpus_seed)
        if name not in made:
            which = f", seed {spec.corpus_seed}" if several else ""
            say(f"history {history.name} for a disk of {spec.wanted_bytes / 1e6:.0f} MB{which}")
            made[name] = artefact.obtain_history(history, spec.wanted_bytes, spec.corpus_seed, store)
            _check_points(spec, history.name, made[name].parts or 0)
        logs.append(made[name])
    return logs


def _check_points(spec: CellSpec, name: str, parts: int) -> None:
    """Refuse points that the history does not have, and more points than a guest has memory slots for."""
    curve = spec.scenario.curve
    if curve is None:
        return
    if curve.after != "each" and (beyond := [point for point in curve.after if point > parts]):
        raise InputError(f"history {name} has {parts} points, scenario {spec.scenario.name} wants {beyond[0]}")
    most = (MEMORY_SLOTS - OTHER_DISKS) // (2 * len(spec.disk.members))
    points = parts if curve.after == "each" else len(curve.after)
    if curve.tested_on and points > most:
        raise InputError(
            f"history {name} has {points} points to be measured at; a guest has room for the disks of {most}",
            hint="leave some of its points out",
        )
