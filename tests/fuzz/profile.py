"""The log of a guest's profiler, and folded stacks: they are read, or refused by name."""

import io
from collections.abc import Iterator
from contextlib import suppress

from agelab.evaluate.stacks import flame
from agelab.evaluate.stacks.folded import Folded, fold
from agelab.evaluate.stacks.log import UnreadableLog
from tests.build import profiler_log as made


def one(data: bytes) -> None:
    """Read it as a log, and as folded stacks that are drawn."""
    with suppress(UnreadableLog):
        for step in fold(io.BytesIO(data)):
            assert Folded.parse(step.stacks.text) == step.stacks
    with suppress(ValueError):
        flame.document(Folded.parse(data.decode("utf-8", "replace")), label="fuzz")


def seeds() -> Iterator[bytes]:
    """A log with every kind of record, and stacks."""
    records = made.called(5, "cp") + made.mapped(5, 0x400000, 0x1000, "/usr/bin/cp") + made.forked(6, 5)
    records += made.sampled(6, [made.COPY, made.READ], [0x400001]) + made.sampled(0, [made.IDLE]) + made.lost(3)
    yield made.log(made.step(records), made.step(records, repetition=2, symbols=None)).read()
    yield b"cp;read;copy 6\ncp;read 2\n"
