"""Changes of a kernel's source before it is built: fetched parts, patches, and a recipe's edits, in this order."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agelab import atomic, fileio, git, process
from agelab.debian import unpack_file, unpack_source
from agelab.errors import InputError
from agelab.kernel.edits import TreeEdit
from agelab.kernel.origin import KernelPart
from agelab.kernel.parts import RecipePart
from agelab.kernel.source_tree import SETTINGS, SourceTree, git_output, import_files
from agelab.store import file_hash


def apply_parts(source: SourceTree, parts: Sequence[tuple[RecipePart, Path]]) -> SourceTree:
    """Add fetched parts to a source, in this order: archives as new directories, patches as changes.

    Raises InputError for a patch that does not apply, and for an archive whose directory is there already.
    """
    if not parts:
        return source
    named = tuple(KernelPart(name=part.name, sha256=part.sha256) for part, _ in parts)
    with atomic.temp_dir(source.cache_dir) as directory:
        index = _index(source, directory)
        for number, (part, file) in enumerate(parts):
            place = directory / str(number)
            if part.is_archive:
                unpack_source(file, place, part.name)
                tree = import_files(place, source.cache_dir)
                _add_directory(source, part, tree, index, place)
            else:
                patch = place / part.name.removesuffix(".gz").removesuffix(".xz")
                unpack_file(file, patch, part.name)
                _apply_patch(source, patch, [], index, part.only)
        return _changed(source, index, named)


def apply_patches(source: SourceTree, files: Sequence[Path]) -> SourceTree:
    """Apply patches to a source, in this order.

    Raises InputError for a patch that does not apply, with the places where it fails.
    """
    if not files:
        return source
    named = tuple(KernelPart(name=file.name, sha256=file_hash(file, fileio.TEXT)) for file in files)
    with atomic.temp_dir(source.cache_dir) as directory:
        index = _index(source, directory)
        for number, file in enumerate(files):
            _apply_patch(source, file, files[:number], index)
        return _changed(source, index, named)


def apply_edits(source: SourceTree, edits: Sequence[TreeEdit], owner: str) -> SourceTree:
    """Make the edits of a recipe in a source, in this order. Raises InputError for one whose place is not there."""
    if not edits:
        return source
    with atomic.temp_dir(source.cache_dir) as directory:
        index = _index(source, directory)
        changed = directory / "file"
        for path in dict.fromkeys(edit.path for edit in edits):
            entry = git_output(source.cache_dir, ["ls-tree", source.tree, "--", path]).split()
            if not entry:
                raise InputError(f"kernel {owner}: Linux {source.version} has no {path} to edit")
            mode, _, blob, *_ = entry
            git.run(source.cache_dir / "git", ["cat-file", "blob", blob], stdout=changed)
            text = fileio.read_text(changed, fileio.TEXT)
            for edit in edits:
                if edit.path == path:
                    try:
                        text = edit.apply(text)
                    except InputError as error:
                        raise InputError(f"kernel {owner}: Linux {source.version}: {error}") from error
            changed.write_text(text, encoding="utf-8")
            made = git_output(source.cache_dir, ["hash-object", "-w", "--no-filters", str(changed)])
            git_output(source.cache_dir, ["update-index", "--cacheinfo", f"{mode},{made},{path}"], index)
        return _changed(source, index, ())


def _index(source: SourceTree, directory: Path) -> dict[str, str]:
    """Read a source into an index of its own, as another process may be changing the same tree."""
    index = {"GIT_INDEX_FILE": f"{directory}/index"}
    git_output(source.cache_dir, ["read-tree", source.tree], index)
    return index


def _changed(source: SourceTree, index: Mapping[str, str], named: tuple[KernelPart, ...]) -> SourceTree:
    tree = git_output(source.cache_dir, ["write-tree"], index)
    return replace(source, tree=tree, patches=(*source.patches, *named))


def _add_directory(
    source: SourceTree, part: RecipePart, tree: str, index: Mapping[str, str], work: Path
) -> None:
    """Add a tree object as a directory; git wants a work tree for that, and leaves it as it is."""
    argv = [*SETTINGS, "read-tree", f"--prefix={part.into.strip('/')}/", tree]
    try:
        git.run(source.cache_dir / "git", argv, env=index, work_tree=work)
    except process.ProcessFailed as error:
        raise InputError(
            f"{part.name} cannot become {part.into} of Linux {source.version}: {error.stderr.strip()[-200:]}"
        ) from error


def _apply_patch(
    source: SourceTree, file: Path, before: Sequence[Path], index: Mapping[str, str], only: Sequence[str] = ()
) -> None:
    """Apply one patch to an index. Raises as ``apply_patches`` does."""
    chosen = [f"--include={path}" for path in only]
    argv = ["apply", "--cached", "--whitespace=nowarn", *chosen, str(file.absolute())]
    done = git.run(source.cache_dir / "git", [*SETTINGS, *argv], env=index, ok=range(256))
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        errors = [line.removeprefix("error: ").removeprefix("patch failed: ") for line in lines]
        places = "; ".join(errors) or done.stderr.strip()[-300:]
        after = f" (after {', '.join(one.name for one in before)})" if before else ""
        raise InputError(f"{file} does not apply to {source.version}{after}: {places}")
