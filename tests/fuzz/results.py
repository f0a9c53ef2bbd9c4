"""Files of a run: whatever is in one of them, the run is read, or refused by the file's name."""

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

from agelab.base.errors import AgelabError
from agelab.base.sanitize import escape_controls
from agelab.results import rows
from agelab.results.checksummed import SEAL
from agelab.results.result import Status
from agelab.results.run_directory import RunDirectory
from tests.build import run_builder
from tests.build.hostile_runs import HOSTILE
from tests.build.run_readers import OBEYED
from tests.fuzz._files import directory

FILES = (
    "plan.json", "samples.jsonl", "cells/0/end.json", "cells/0/inputs.json", "cells/0/maps/aged/extents.gz",
)  # fmt: skip


@cache
def _run() -> tuple[RunDirectory, dict[str, bytes]]:
    """A sound run of two cells, and its files without their seals: older runs have none."""
    made = run_builder.begin(directory(), run_builder.cells(["ext4", "xfs"]))
    samples = [run_builder.sample(), run_builder.sample("read", None, "extents", why=HOSTILE["ansi"])]
    run_builder.end(made, 0, samples, inputs={"making": {"image": "0" * 64}, "words": [1, None, 2.5]})
    run_builder.end(made, 1, status=Status.PANICKED, reason=HOSTILE["script"])
    content = {}
    for name in FILES[:4]:
        lines = [json.loads(line) for line in _objects((made.path / name).read_text())]
        content[name] = b"".join(json.dumps({**line, SEAL: None}).encode() + b"\n" for line in lines)
    return made, content


def _objects(text: str) -> list[str]:
    return text.splitlines() if text.count("\n{") else [text]


def one(data: bytes) -> None:
    """Put it in the place of one file, which its first byte chooses, and read the run in every way."""
    run, sound = _run()
    shutil.rmtree(run.path / "cells/0/maps", ignore_errors=True)
    (run.path / "cells/0/maps/aged").mkdir(parents=True)
    for name, content in sound.items():
        (run.path / name).write_bytes(content)
    (run.path / FILES[data[0] % len(FILES) if data else 0]).write_bytes(data[1:])
    for read in (run.verify, run.unfinished, lambda: run.inputs(0), lambda: list(rows.rows(run))):
        with suppress(AgelabError):
            read()
    with suppress(AgelabError):
        text = json.dumps(run.as_json(), ensure_ascii=False)
        assert not OBEYED.search(escape_controls(text, kept=""))


def seeds() -> Iterator[bytes]:
    """Each file as it was, with and without its seal."""
    run, sound = _run()
    for number, name in enumerate(FILES[:4]):
        yield bytes([number]) + sound[name]
        yield bytes([number]) + (run.path / name).read_bytes()
