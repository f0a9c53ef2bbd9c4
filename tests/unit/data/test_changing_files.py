"""Files of the user's that change between their hash and their use, and names that could be those of others."""

import io
import os
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from agelab.base.errors import InputError
from agelab.data.corpus import corpus_from_user
from agelab.data.history import artefact
from agelab.present.report.command import repeat_command
from agelab.scenario.history import Logged, Traced
from agelab.store.artefacts import Artefact, Store
from tests.build import run_builder


class Changing(Store):
    """A store that is busy for a moment before it builds."""

    def __init__(self, home: Path, change: Callable[[], None]) -> None:
        super().__init__(home)
        self.change = change

    def obtain(
        self, kind: str, inputs: Mapping[str, Any], build: Callable[[Path], None], *more: Any, **others: Any
    ) -> Artefact:
        def late(directory: Path) -> None:
            self.change()
            build(directory)

        return super().obtain(kind, inputs, late, *more, **others)


def packed(path: Path, data: bytes) -> None:
    with tarfile.open(path, "w") as tar:
        entry = tarfile.TarInfo("file")
        entry.size = len(data)
        tar.addfile(entry, io.BytesIO(data))


def logged(path: Path, size: int) -> None:
    path.write_text(f"agelab-operations 1\ncreate a\nappend a {size}\npoint 1\n")


def traced(path: Path, size: int) -> None:
    path.write_text(f"fio version 3 iolog\n0 a add\n0 a write 1048576 {size}\n")


@pytest.mark.parametrize("kind", ["archive", "log", "trace"])
def test_what_changes_once_it_is_hashed_is_not_kept_under_that_hash(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "given"

    def put(turn: int) -> None:
        {"archive": lambda: packed(path, b"%d" % turn), "log": lambda: logged(path, turn)}.get(
            kind, lambda: traced(path, 512 * turn)
        )()

    put(1)
    store = Changing(tmp_path / "home", lambda: put(2))
    with pytest.raises(InputError, match="changed while it was being read"):
        if kind == "archive":
            corpus_from_user(path, store)
        else:
            wanted: Logged | Traced = Traced(name="own", engine="iolog", trace=str(path))
            if kind == "log":
                wanted = Logged(name="own", engine="log", log=str(path))
            artefact.obtain_history(wanted, 40_000_000, 1, store)
    assert store.all("corpus") == []


def test_a_name_that_is_no_text_is_not_that_of_another_file(tmp_path: Path) -> None:
    """One directory has a file called by a byte, the other by what that byte is shown as."""
    keys = set()
    for number, name in enumerate((b"\xff", rb"\xff")):
        directory = tmp_path / str(number)
        directory.mkdir()
        (directory / os.fsdecode(name)).write_bytes(b"same")
        keys.add(corpus_from_user(directory, Store(tmp_path / "home")).key)
    assert len(keys) == 2


def test_what_makes_a_run_again_has_make_run_nothing() -> None:
    """A plan may be anybody's, and make expands what stands in a variable."""
    command = {"directory": "/", "name": "aging-$(shell date)", "options": {"corpus": "/$HOME"}}
    said = repeat_command(run_builder.plan(command=command))
    assert "NAME='aging-$$(shell date)'" in said and "CORPUS='/$$HOME'" in said
