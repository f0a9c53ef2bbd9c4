"""ccache for kernels that are built: what one build has compiled is taken by another that it had a right to.

Whatever is built can write anything into the ccache that it is given, so it decides what is found there later. Each
build has one of its own, which begins as a copy of another's if all that had a hand in that one has a hand in this one,
too: an ancestor of its commit, none but its patches and none but its configuration.
"""

import os
from pathlib import Path

from pydantic import Field, ValidationError

from agelab import atomic, fileio, git, process
from agelab.disk_errors import naming_disk_errors
from agelab.kernel.build_inputs import BuildInputs
from agelab.model.base import Frozen
from agelab.store import key_of

KEPT = 4
"""Caches that a repository keeps: those that were used last."""
_MADE_BY = "made-by.json"
"""File beside a cache, where what is built cannot write it."""


class Hands(Frozen):
    """What decides what a build writes, besides its repository (or package, or directory) and the compiler."""

    commit: str = Field(description="its history decides, too; empty for a package and for a directory")
    others: tuple[str, ...] = Field(description="hashes of patches and of texts of configuration")


def of(inputs: BuildInputs) -> Path:
    """Return the ccache directory of a build. The caller holds the lock of its repository."""
    source = inputs.source
    texts = [text for text in (inputs.base, *inputs.fragments.values()) if text is not None]
    others = {*(patch.sha256 for patch in source.patches), *(key_of(text) for text in texts)}
    if source.uncommitted:
        others.add("uncommitted files")
    hands = Hands(commit=source.commit or source.uncommitted, others=tuple(sorted(others)))
    top = source.cache_dir / "ccaches"
    own = top / key_of(hands.model_dump())[:16]
    if not own.exists():
        with naming_disk_errors(source.cache_dir), atomic.locked_directory(atomic.temp_name(own)) as partial:
            begun = next((there for there in _latest(top) if _serves(there, hands, source.cache_dir)), None)
            if begun:
                os.utime(begun)
                process.run(["cp", "-a", "--reflink=auto", str(begun / "cache"), str(partial / "cache")])
            else:
                (partial / "cache").mkdir()
            (partial / _MADE_BY).write_text(hands.model_dump_json(), encoding="utf-8")
            partial.rename(own)
    os.utime(own)
    for old in _latest(top)[KEPT:]:
        atomic.remove(old)
    return own / "cache"


def _latest(top: Path) -> list[Path]:
    """List the caches, the one that was used last first."""
    there = [path for path in top.iterdir() if not path.name.endswith(atomic.SUFFIX)]
    return sorted(there, key=lambda path: path.stat().st_mtime_ns, reverse=True)


def _serves(there: Path, hands: Hands, place: Path) -> bool:
    """Return True where nothing has had a hand in a cache that does not have one in a build, too."""
    try:
        theirs = Hands.model_validate_json(fileio.read_text(there / _MADE_BY))
    except (OSError, ValidationError):  # after a power cut
        return False
    if not set(theirs.others) <= set(hands.others):
        return False
    return theirs.commit in ("", hands.commit) or _is_ancestor(theirs.commit, hands.commit, place)


def _is_ancestor(commit: str, of: str, place: Path) -> bool:
    # A repository's commit-graph could make up ancestors.
    argv = ["-c", "core.commitGraph=false", "merge-base", "--is-ancestor", commit, of]
    return git.run(place / "git", argv, ok=range(256)).returncode == 0
