"""What the cells of a run read: the stand-in for a study's data, the user's own, or the logs of histories."""

from collections.abc import Callable, Sequence

from pydantic import ValidationError

from agelab import corpus as corpora
from agelab.corpus import Corpus, CorpusSpec
from agelab.errors import InputError
from agelab.history import artefact
from agelab.runner.plan.cell_spec import MIB, CellSpec
from agelab.runner.prepare.provided import ProvidedParts
from agelab.runner.request.run_request import RunRequest
from agelab.store import Store
from agelab.vm.domain import MEMORY_SLOTS

Say = Callable[[str], None]
BESIDE_FORKS = 3
"""Memory-backed disks of a guest that looks at forks, beside those: root, corpus, results."""


def user_corpus(request: RunRequest, provided: ProvidedParts | None, store: Store, say: Say) -> Corpus | None:
    """The user's own source data, if there is any."""
    if request.corpus is None:
        return None
    if provided:
        return provided.corpora[""]
    say(f"corpus {request.corpus}")
    wanted = request.selection.scenario.corpus
    expected = wanted.kind if wanted and not request.control else None
    corpus = corpora.corpus_from_user(request.corpus, store, expected)
    if not corpus.content_bytes:
        raise InputError(f"{request.corpus} holds no data: there is nothing to copy")
    return corpus


def shrink(request: RunRequest, own: Corpus | None) -> float:
    """How many times smaller than the study's the sizes are."""
    scenario = request.selection.scenario
    if own and scenario.corpus and not request.control:
        return scenario.corpus.mib.value * MIB / own.content_bytes
    return scenario.scales[request.scale].shrink


def scale_name(request: RunRequest) -> str:
    """As results name it: the sizes follow a user's own data, unless a control file's scripts use them as they like."""
    return "corpus" if request.corpus and not request.control else request.scale


def obtain(
    request: RunRequest,
    specs: Sequence[CellSpec],
    own: Corpus | None,
    provided: ProvidedParts | None,
    store: Store,
    say: Say,
) -> list[Corpus]:
    """What each of these cells reads.

    Raises InputError for a history that cannot be had, HostError where the disk is too full for one of them.
    """
    if provided:
        return [provided.corpora[spec.variant.history or ""] for spec in specs]
    if own or (wanted := request.selection.scenario.corpus) is None:
        return [own] * len(specs) if own else _histories(specs, store, say)
    size = int(wanted.mib.value * MIB / shrink(request, None))
    say(f"corpus {wanted.kind}, {size / 1e6:.0f} MB, seed {request.corpus_seed}")
    try:
        spec = CorpusSpec(kind=wanted.kind, bytes=size, seed=request.corpus_seed)
    except ValidationError as error:
        raise InputError(f"a corpus of {size} bytes: {error.errors()[0]['msg']}") from error
    return [corpora.make(spec, store)] * len(specs)


def _histories(specs: Sequence[CellSpec], store: Store, say: Say) -> list[Corpus]:
    made: dict[str, Corpus] = {}
    for spec in specs:
        wanted = spec.history
        assert wanted is not None, "a scenario has a corpus or histories"
        if wanted.name not in made:
            say(f"history {wanted.name} for a disk of {spec.whole_bytes / 1e6:.0f} MB")
            made[wanted.name] = artefact.obtain_history(wanted, spec.whole_bytes, spec.corpus_seed, store)
            _fits(spec, wanted.name, made[wanted.name].parts or 0)
    return [made[spec.variant.history or ""] for spec in specs]


def _fits(spec: CellSpec, name: str, parts: int) -> None:
    """Refuse points that the history does not have, and more of them than a guest has room for."""
    curve = spec.scenario.curve
    if curve is None:
        return
    if curve.after != "each" and (beyond := [point for point in curve.after if point > parts]):
        raise InputError(
            f"history {name} has {parts} points, scenario {spec.scenario.name} wants {beyond[0]}"
        )
    most = (MEMORY_SLOTS - BESIDE_FORKS) // (2 * len(spec.disk.members))
    points = parts if curve.after == "each" else len(curve.after)
    if curve.tested_on and points > most:
        raise InputError(
            f"history {name} has {points} points to be measured at; a guest has room for the disks of {most}",
            hint="leave some of its points out",
        )
