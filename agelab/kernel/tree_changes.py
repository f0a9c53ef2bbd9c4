"""Patches of a kernel's source."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agelab.base import atomic, fileio, git
from agelab.base.errors import InputError
from agelab.kernel.origin import KernelPart
from agelab.kernel.source_tree import SETTINGS, SourceTree, git_output
from agelab.store.artefacts import file_hash


def apply_patches(source: SourceTree, files: Sequence[Path]) -> SourceTree:
    """Apply patches to a source, in this order.

    Raises InputError for a patch that does not apply, with the places where it fails.
    """
    if not files:
        return source
    named = tuple(KernelPart(name=file.name, sha256=file_hash(file, fileio.TEXT)) for file in files)
    with atomic.temp_dir(source.cache_dir) as directory:
        # An index of its own: another process may be changing the same tree.
        index = {"GIT_INDEX_FILE": f"{directory}/index"}
        git_output(source.cache_dir, ["read-tree", source.tree], index)
        for number, file in enumerate(files):
            _apply_patch(source, file, files[:number], index)
        tree = git_output(source.cache_dir, ["write-tree"], index)
    return replace(source, tree=tree, patches=(*source.patches, *named))


def _apply_patch(source: SourceTree, file: Path, before: Sequence[Path], index: Mapping[str, str]) -> None:
    """Apply one patch to an index. Raises as ``apply_patches`` does."""
    argv = ["apply", "--cached", "--whitespace=nowarn", str(file.absolute())]
    done = git.run(source.cache_dir / "git", [*SETTINGS, *argv], env=index, ok=range(256))
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        errors = [line.removeprefix("error: ").removeprefix("patch failed: ") for line in lines]
        places = "; ".join(errors) or done.stderr.strip()[-300:]
        after = f" (after {', '.join(one.name for one in before)})" if before else ""
        raise InputError(f"{file} does not apply to {source.version}{after}: {places}")
