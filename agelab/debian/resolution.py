"""Remember what a question about packages was answered with, so that "newest" keeps its meaning."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from agelab import atomic
from agelab.store import Store, canonical_json, key_of

Answer = TypeVar("Answer")


def cached_resolution(
    store: Store, question: object, kind: type[Answer], ask: Callable[[], Answer], *, refresh: bool = False
) -> Answer:
    """The answer that ``ask`` gave to a question last time, from disk; asked again on ``refresh``.

    It makes a second call instant and independent of the network, and keeps "the newest" the same
    until somebody wants a newer one. The store's own ``answers`` are never asked again.
    """
    key = key_of(question)
    adapter = TypeAdapter(kind)
    if key in store.resolutions:
        return adapter.validate_python(store.resolutions[key])
    file = store.cache("resolved") / f"{key}.json"
    if not refresh:
        with suppress(FileNotFoundError, ValidationError):
            return adapter.validate_json(file.read_bytes())
    answer = ask()
    atomic.write(file, canonical_json(adapter.dump_python(answer, mode="json")))
    return answer
