"""JSON files that agelab keeps: what a run was made of, what a host measured, what a search asks."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel

from agelab.analysis.calibration import HostRecord
from agelab.base.errors import AgelabError
from agelab.bisect.bisect_directory import BisectQuestion
from agelab.data.corpus.artefact import CorpusDescription
from agelab.machine.image.assemble import Description
from agelab.results import checksummed
from agelab.runner.prepare.run_manifest import MADE_OF, PROFILES, ControlScripts, Profiles, RunManifest
from agelab.store.artefacts import Manifest, Store
from agelab.store.stored_disk import DiskRecipe
from tests.build.capsule_builder import made_run
from tests.fuzz._files import directory

KINDS: tuple[type[BaseModel], ...] = (
    RunManifest, Profiles, ControlScripts, HostRecord, BisectQuestion, Description, CorpusDescription, DiskRecipe,
    Manifest,
)  # fmt: skip
PAIRED = {
    **{"variant": "ext4", "layout": "single", "repetition": 1},
    **{"first": [1.5, 2, 3, 4, 5], "second": [1.5, 1.75, 3, 4, 5]},
}
FLOOR = {"step": "copy", "metric": "elapsed", "unit": "s", "places": 1, "widest": PAIRED, "farthest": PAIRED}
CALIBRATION = {
    **{"day": "2026-11-01", "agelab": "1", "runs": ["a", "b"], "scenario": "aging", "scale": "quick"},
    **{"kernel": "6.1", "variants": ["ext4"], "seeds": [1, 2, 3, 4, 5], "floors": [FLOOR]},
    "conditions": {"vcpus": 1, "jobs": 1, "drives": ["model:none"]},
}
EXAMPLES: dict[int, dict[str, object]] = {
    2: {"name": "control", "text": "ext4 a 1\n", "scripts": {"test-a-perform.sh": "dHJ1ZQo="}},
    3: {
        "schema": 2,
        "host": {"kernel": "6.1", "processor": "a", "qemu": "7.2", "accelerator": "tcg"},
        "calibrations": [CALIBRATION],
    },
    4: {
        "directory": "/", "name": "small-ext4", "variant": "ext4", "words": {"jobs": 1}, "clock": "virtual",
        "good": "5.10", "bad": "6.1", "kernels": ["5.10", "6.1"], "candidates": 1, "rounds": 60,
        "alpha": "1/100", "seed": 1, "metric": ["copy", 1, "elapsed"],
        "tree": {"path": "/l", "good": "a", "bad": "b"},
    },
    7: {
        "makes": "aged", "scenario": "aging", "filesystem": "ext4", "layout": "raid0", "defaults": "today",
        "sizes": [4096, 4096], "command": "agelab age", "drives": ["model:none"], "run_seed": 1,
    },
}  # fmt: skip
"""Those that no run has, by the number of their kind."""


def one(data: bytes) -> None:
    """Read it as the kind of file that its first byte chooses, and write it again."""
    kind = KINDS[data[0] % len(KINDS) if data else 0]
    path = directory() / "record.json"
    path.write_bytes(data[1:])
    with suppress(AgelabError):
        found = checksummed.read(path, kind)
        checksummed.write_sealed(path, found)
        assert checksummed.read(path, kind) == found


def seeds() -> Iterator[bytes]:
    """Those of a run and its store, and an example of each other kind."""
    with tempfile.TemporaryDirectory() as name:
        store = Store(Path(name, "home"))
        run = made_run(store)
        for number, file in ((0, MADE_OF), (1, PROFILES)):
            yield bytes([number]) + _unsealed(run.path / file)
        for path in sorted(store.home.rglob("*.json")):
            for number, kind in enumerate(KINDS):
                with suppress(AgelabError):
                    checksummed.read(path, kind)
                    yield bytes([number]) + _unsealed(path)
    for number, example in EXAMPLES.items():
        assert KINDS[number].model_validate_json(json.dumps(example))
        yield bytes([number]) + json.dumps(example).encode()


def _unsealed(path: Path) -> bytes:
    return json.dumps({**json.loads(path.read_bytes()), checksummed.SEAL: None}).encode()
