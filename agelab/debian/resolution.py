"""Cached answers to questions about packages, so that "newest" keeps its meaning until it is asked again."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from agelab.base import atomic, fileio
from agelab.base.errors import InputError
from agelab.base.hashing import canonical_json, key_of
from agelab.debian import snapshot
from agelab.store.artefacts import Store

Answer = TypeVar("Answer")


def cached_resolution(
    store: Store,
    question: Mapping[str, Any],
    kind: type[Answer],
    ask: Callable[[], Answer],
    *,
    refresh: bool = False,
    of_host: Mapping[str, Any] = MappingProxyType({}),
) -> Answer:
    """Return the cached answer to a question, calling ``ask`` when there is none or on ``refresh``.

    A second call is instant and needs no network. The store's own ``resolutions`` come first and are never refreshed.
    Each snapshot has answers of its own, and each host for what the question has ``of_host``. This is the one door:
    every answer is recorded, so that a capsule's replay and other hosts take the same (``Store.recording``).
    """
    key, adapter = key_of(question), TypeAdapter(kind)
    if key in store.resolutions:
        try:
            answer = adapter.validate_python(store.resolutions[key])
        except ValidationError as error:
            raise InputError(f"the packages that {question} stands for are not named as agelab does") from error
    else:
        answer = _cached(store, key_of({**question, **of_host}), adapter, ask, refresh)
    store.record(key, adapter.dump_python(answer, mode="json"))
    return answer


def _cached(store: Store, key: str, adapter: TypeAdapter[Answer], ask: Callable[[], Answer], refresh: bool) -> Answer:
    dated = snapshot.chosen()
    kept = key_of([dated.identity, key]) if dated else key
    file = store.cache("resolved") / f"{kept}.json"
    if not refresh:
        with suppress(FileNotFoundError, ValidationError):
            return adapter.validate_json(fileio.read_bytes(file))
    answer = ask()
    atomic.write(file, canonical_json(adapter.dump_python(answer, mode="json")))
    return answer


def remembered(store: Store, question: Mapping[str, Any], kind: type[Answer]) -> Answer | None:
    """Return the cached answer to a question, or None where nobody has asked it."""

    def ask() -> Answer:
        raise LookupError

    with suppress(LookupError):
        return cached_resolution(store, question, kind, ask)
    return None
