"""Parts of a kernel that a recipe names by URL and hash: archives and patches that are not part of agelab."""

import hashlib
import http.client
import os
import re
import shutil
import urllib.error
import urllib.request
from pathlib import Path, PurePosixPath
from typing import Self

from pydantic import Field, model_validator

from agelab import atomic, fileio
from agelab.disk_errors import naming_disk_errors
from agelab.errors import InputError
from agelab.model.base import Frozen
from agelab.notify import Notify
from agelab.store import Store, file_hash

DIRECTORY = "AGELAB_PARTS"
"""The environment variable with a directory of parts: a file of a part's hash there is taken, whatever its name."""
MOST = fileio.PROGRAM
"""Bytes of a part at most, packed."""
SILENCE = 30.0
"""Seconds to wait for the next bytes of a download."""
_ARCHIVE = re.compile(r"\.(tar\.(gz|xz|bz2|zst)|tgz)$")
_PATCH = re.compile(r"\.(patch|diff)(\.(gz|xz|bz2|zst))?$")


class RecipePart(Frozen):
    """One file that a recipe fetches."""

    url: str = Field(pattern=r"^https://[^\s?#]+$", description="where it is; its ending says what it is")
    sha256: str = Field(pattern="^[0-9a-f]{64}$", description="hash of the file as it is fetched")
    into: str = Field(
        "",
        description="of an archive: the tree's directory for what is below its top directory",
    )
    only: tuple[str, ...] = Field((), description="of a patch: the tree's files that it changes; none: all")

    @property
    def name(self) -> str:
        return PurePosixPath(self.url).name

    @property
    def is_archive(self) -> bool:
        return bool(_ARCHIVE.search(self.url))

    @model_validator(mode="after")
    def _is_known(self) -> Self:
        if not (self.is_archive or _PATCH.search(self.url)):
            raise ValueError(
                f"{self.name} is no .tar.gz, .tar.xz, .tar.bz2 or .tar.zst, and no .patch or .diff"
            )
        if self.is_archive != bool(self.into):
            raise ValueError("into is the directory of an archive, and a patch has none")
        if self.is_archive and self.only:
            raise ValueError("only is for a patch")
        for path in (self.into, *self.only):
            if path.startswith("/") or ".." in PurePosixPath(path).parts:
                raise ValueError(f"{path!r} is not in the tree")
        return self


def obtain(part: RecipePart, owner: str, store: Store, progress: Notify) -> Path:
    """Return the file of a part: from the store, AGELAB_PARTS or the network, in this order.

    Raises InputError that says which part of ``owner`` cannot be had, and where to put it.
    """
    kept = store.cache("parts") / part.sha256
    with store.lock(f"parts-{part.sha256}"):
        if kept.is_file() and file_hash(kept) == part.sha256:
            return kept
        with naming_disk_errors(store.home), atomic.temp_dir(kept.parent) as directory:
            fetched = directory / "part"
            given = os.environ.get(DIRECTORY)
            if found := _given(part, Path(given).expanduser()) if given else None:
                shutil.copyfile(found, fetched)
            else:
                progress(f"fetching {part.url}")
                if why := _fetch(part, fetched):
                    raise InputError(
                        f"kernel {owner} lacks a part that is not part of agelab, {part.url}: {why}",
                        hint=f"put it (sha256 {part.sha256}) into a directory, and name that: {DIRECTORY}=<directory>",
                    )
            fetched.rename(kept)
    return kept


def _given(part: RecipePart, directory: Path) -> Path | None:
    """Return the file with a part's hash in the user's directory."""
    if not directory.is_dir():
        raise InputError(f"{DIRECTORY}={directory}: there is no such directory")
    for path in sorted(directory.iterdir()):
        if path.is_file() and path.stat().st_size <= MOST and file_hash(path) == part.sha256:
            return path
    return None


def _fetch(part: RecipePart, target: Path) -> str:
    """Download a part. Returns why it cannot be had, or an empty text."""
    digest, size = hashlib.sha256(), 0
    try:
        with urllib.request.urlopen(part.url, timeout=SILENCE) as answer, target.open("wb") as file:
            while piece := answer.read(1 << 20):
                size += len(piece)
                if size > MOST:
                    return f"it is larger than {MOST >> 20} MiB"
                digest.update(piece)
                file.write(piece)
    except urllib.error.HTTPError as error:
        error.close()
        return f"the server answers {error.code}"
    except urllib.error.URLError as error:
        return _one_line(error.reason)
    except (TimeoutError, http.client.HTTPException) as error:
        return _one_line(error)
    if digest.hexdigest() != part.sha256:
        return f"what is there now has another hash, {digest.hexdigest()}"
    return ""


def _one_line(why: object) -> str:
    return " ".join(str(getattr(why, "strerror", None) or why or repr(why)).split())[:200]
