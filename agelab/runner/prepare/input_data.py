"""The data that the cells of a run read: seeded ones like a study's, the user's own, or the logs of histories."""

from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from agelab.corpus import Corpus, CorpusSpec, corpus_from_user, make
from agelab.errors import InputError
from agelab.history import artefact
from agelab.notify import Notify
from agelab.runner.plan.cell_spec import MIB, CellSpec
from agelab.runner.request.run_request import RunRequest
from agelab.store import Store
from agelab.vm.domain import MEMORY_SLOTS

OTHER_DISKS = 3
"""Memory-backed disks of a guest that measures forks, beside the forks: root, corpus, results."""


def user_corpus(
    request: RunRequest, carried: Mapping[str, Corpus] | None, store: Store, say: Notify
) -> Corpus | None:
    """Return the user's own source data, if there are any; ``carried`` are the corpora of a capsule.

    Raises InputError for data that are empty or of the wrong kind.
    """
    if request.corpus is None:
        return None
    if carried:
        return carried[""]
    say(f"corpus {request.corpus}")
    wanted = request.selection.scenario.corpus
    expected = wanted.kind if wanted and not request.control else None
    corpus = corpus_from_user(request.corpus, store, expected)
    if not corpus.content_bytes:
        raise InputError(f"{request.corpus} holds no data: there is nothing to copy")
    return corpus


def shrink(request: RunRequest, own: Corpus | None) -> float:
    """Return the factor by which sizes are smaller than the study's."""
    scenario = request.selection.scenario
    if own and scenario.corpus and not request.control:
        return scenario.corpus.mib.value * MIB / own.content_bytes
    return scenario.scales[request.scale].shrink


def scale_name(request: RunRequest) -> str:
    """Return the scale as results name it: ``corpus`` where the sizes follow a user's own data.

    They do not in a control file, whose scripts use the data as they like.
    """
    return "corpus" if request.corpus and not request.control else request.scale


def corpora(
    request: RunRequest,
    specs: Sequence[CellSpec],
    own: Corpus | None,
    carried: Mapping[str, Corpus] | None,
    store: Store,
    say: Notify,
) -> list[Corpus]:
    """Return the corpus, or the history's log, that each of these cells reads.

    Raises InputError for a history that cannot be made, HostError where the host's disk is too full for one.
    """
    if carried:
        return [carried[spec.variant.history or ""] for spec in specs]
    if own or (wanted := request.selection.scenario.corpus) is None:
        return [own] * len(specs) if own else _histories(specs, store, say)
    size = int(wanted.mib.value * MIB / shrink(request, None))
    say(f"corpus {wanted.kind}, {size / 1e6:.0f} MB, seed {request.options.corpus_seed}")
    try:
        spec = CorpusSpec(kind=wanted.kind, bytes=size, seed=request.options.corpus_seed)
    except ValidationError as error:
        raise InputError(f"a corpus of {size} bytes: {error.errors()[0]['msg']}") from error
    return [make(spec, store)] * len(specs)


def _histories(specs: Sequence[CellSpec], store: Store, say: Notify) -> list[Corpus]:
    made: dict[str, Corpus] = {}
    for spec in specs:
        wanted = spec.history
        assert wanted is not None, "a scenario has a corpus or histories"
        if wanted.name not in made:
            say(f"history {wanted.name} for a disk of {spec.wanted_bytes / 1e6:.0f} MB")
            made[wanted.name] = artefact.obtain_history(wanted, spec.wanted_bytes, spec.corpus_seed, store)
            _check_points(spec, wanted.name, made[wanted.name].parts or 0)
    return [made[spec.variant.history or ""] for spec in specs]


def _check_points(spec: CellSpec, name: str, parts: int) -> None:
    """Refuse points that the history does not have, and more points than a guest has memory slots for."""
    curve = spec.scenario.curve
    if curve is None:
        return
    if curve.after != "each" and (beyond := [point for point in curve.after if point > parts]):
        raise InputError(
            f"history {name} has {parts} points, scenario {spec.scenario.name} wants {beyond[0]}"
        )
    most = (MEMORY_SLOTS - OTHER_DISKS) // (2 * len(spec.disk.members))
    points = parts if curve.after == "each" else len(curve.after)
    if curve.tested_on and points > most:
        raise InputError(
            f"history {name} has {points} points to be measured at; a guest has room for the disks of {most}",
            hint="leave some of its points out",
        )
