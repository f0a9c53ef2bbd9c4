"""A crash run in one file: what was asked and answered, the record of its drive, and the disk before."""

import gzip
import json
import os
import struct
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

from pydantic import Field, TypeAdapter

from agelab import __version__
from agelab.base import atomic, fileio
from agelab.base.errors import InputError
from agelab.base.types import Frozen
from agelab.machine.drive.record import ROOM
from agelab.runner.crash import crash
from agelab.runner.crash.crash import ANSWER, ANSWERS, QUESTION, QUESTIONS
from agelab.runner.crash.guests import CALLS, CHECK, MADE_OF, load
from agelab.store import parcel
from agelab.store.artefacts import Store, file_hash
from agelab.store.parcel import OneFile, PackedFile, Parcel, Refused

TEXTS = (QUESTION, ANSWER, CALLS, MADE_OF)
DISKS = {"base.gz": crash.LARGEST_MIB << 20, "log.gz": ROOM}
"""What is packed, and its bytes at most."""
PIECE = 1 << 20
_MADE_OF = TypeAdapter(dict[str, str])


class CrashManifest(Frozen):
    """Manifest of a crash run in one file."""

    crash: Literal[1] = 1
    agelab: str
    run: str = Field(pattern=r"^\d{8}-\d{6}-[a-z0-9-]{1,40}$")


def pack(name: str, store: Store, path: Path) -> None:
    """Write a crash run into one file. Raises InputError for what is none, or has not ended."""
    _, recording = crash.answered(store, name)
    directory = store.crashes / name
    if not (directory / MADE_OF).exists():
        raise InputError(f"crash run {name} is of an older agelab", hint="ask again, and pack that")
    contents: dict[str, parcel.Content] = {text: fileio.read_bytes(directory / text, fileio.LINES) for text in TEXTS}
    if (directory / CHECK).exists():
        contents[CHECK] = fileio.read_bytes(directory / CHECK, fileio.PROGRAM)
    with atomic.temp_dir(path.absolute().parent) as place:
        for packed, left in {"base.gz": recording.record.base.stat().st_size, "log.gz": recording.record.end}.items():
            contents[packed] = place / packed
            with (
                (directory / Path(packed).stem).open("rb") as file,
                (place / packed).open("wb") as written,
                gzip.GzipFile("", "wb", 6, written, mtime=0) as content,
            ):
                while left and (piece := file.read(min(PIECE, left))):
                    left -= content.write(piece)
        files = {member: PackedFile.of(content) for member, content in sorted(contents.items())}
        made = Parcel[CrashManifest](manifest=CrashManifest(agelab=__version__, run=name), files=files)
        with (place / "whole").open("wb") as whole:
            parcel.write(whole, made, contents)
        (place / "whole").rename(path)


def unpack(path: Path, store: Store, kernel: str | None) -> str:
    """Put a packed crash run into the store, unless it is there, and return its name.

    Its kernel is the release that it was; one that is none of Debian's must be given. Raises Refused for a file that is
    damaged or no crash run.
    """
    with fileio.opened(path) as file:
        try:
            taken = OneFile(file)
            packed = taken.parcel(Parcel[CrashManifest])
        except Refused as error:
            raise Refused(f"{path} is no packed crash run: {error}") from error
        if set(packed.files) - {CHECK} != {*TEXTS, *DISKS}:
            raise Refused(f"{path} is no packed crash run: it has other files")
        directory = store.crashes / packed.manifest.run
        if directory.exists():
            if not (directory / ANSWER).exists() or file_hash(directory / ANSWER) != packed.file(ANSWER).sha256:
                raise InputError(f"{path}: the store has another crash run {directory.name}")
            return directory.name
        with atomic.temp_dir(store.home) as place:
            new = place / directory.name
            new.mkdir()
            for name in packed.files:
                taken.extract(name, packed, new / name)
            for name, most in DISKS.items():
                _unpack_disk(new / name, most)
            _require_sound(path, new, kernel)
            store.crashes.mkdir(exist_ok=True)
            new.rename(directory)
    return directory.name


def _unpack_disk(packed: Path, most: int) -> None:
    """Unpack a disk in place, with holes for zeros."""
    with packed.with_suffix("").open("xb") as disk:
        for piece in fileio.unpacked_pieces(packed, most):
            disk.seek(len(piece), os.SEEK_CUR) if not any(piece) else disk.write(piece)
        disk.truncate(disk.tell())
    packed.unlink()


def _require_sound(path: Path, new: Path, kernel: str | None) -> None:
    """Read all of it once, and say in the question which kernel it is to have. Raises Refused."""
    try:
        question = QUESTIONS.validate_json(fileio.read_bytes(new / QUESTION))
        release = _MADE_OF.validate_json(fileio.read_bytes(new / MADE_OF))["kernel"]
        ANSWERS.validate_json(fileio.read_bytes(new / ANSWER, fileio.LINES))
        for part in load(new).parts.values():
            part.states(0, 0)
    except (ValueError, LookupError, TypeError, struct.error) as error:
        raise Refused(f"{path} is no crash run that this agelab reads: {parcel.quote(str(error), 200)}") from error
    if (new / "base").stat().st_size != question.mib << 20:
        raise Refused(f"{path}: its disk has another size than was asked for")
    os.truncate(new / "log", ROOM)
    if not (kernel or question.kernel.startswith("debian:")):
        raise InputError(
            f"its kernel ({question.kernel}) was made of files that are not in {path}", hint="name it with --kernel"
        )
    question = replace(question, kernel=kernel or f"debian:{release}")
    (new / QUESTION).write_text(json.dumps(asdict(question), indent=1), encoding="utf-8")
