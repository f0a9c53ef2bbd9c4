"""Specs and recipe files of kernels to build: source, patches and configuration."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import Field

from agelab import fileio
from agelab.errors import InputError, unknown
from agelab.kernel.edits import TreeEdit
from agelab.kernel.parts import RecipePart
from agelab.model.base import Frozen, Name
from agelab.scenario.toml_files import SCENARIOS, read

DIRECTORY = SCENARIOS / "kernels"
"""Directory of recipe files, agelab's configurations, and patches that the user adds."""
KINDS = ("tree", "source", "recipe")
"""The kinds of specs whose kernels are built here."""
_OPTIONS = ("base", "config", "patches")


class KernelRecipe(Frozen):
    """A recipe file of scenarios/kernels."""

    name: Name = Field(description="the file's name, without its ending")
    summary: str = Field(description="what kernel it is, in a line")
    source: str = Field(pattern="^(tree|source):.", description="what is built, as a kernel spec says it")
    base: str = Field("small", description="small, or a .config beside the recipe: a distribution's")
    config: tuple[str, ...] = Field((), description="more lines of configuration: CONFIG_UFS_FS_WRITE=y")
    patches: tuple[str, ...] = Field((), description="files or directories beside the recipe, in order")
    patches_from: str = Field(
        "", description="who makes the patches that are not part of agelab, and which to take"
    )
    fetch: tuple[RecipePart, ...] = Field(
        (), description="parts by URL and hash, in order, before the patches"
    )
    edits: tuple[TreeEdit, ...] = Field(
        (), description="replacements in the tree, in order, after the patches"
    )


@dataclass(frozen=True)
class BuildSpec:
    """A kernel to build, as a spec or recipe asks for it."""

    source: str
    """``tree:<path>[@<ref>]`` or ``source:<version>``."""
    base: Path | None = None
    """A distribution's configuration to use instead of the small one."""
    fragments: tuple[Path, ...] = ()
    lines: tuple[str, ...] = ()
    """Configuration lines of a recipe, applied after the fragments."""
    patches: tuple[Path, ...] = ()
    parts: tuple[RecipePart, ...] = ()
    """What a recipe fetches."""
    edits: tuple[TreeEdit, ...] = ()


def parse(spec: str) -> BuildSpec:
    """Parse a ``tree:``, ``source:`` or ``recipe:`` spec.

    ``<kind>:<what>[,base=<.config>][,config=<fragment>]...[,patches=<file or directory>]...``
    Raises InputError for a malformed spec or one that names a missing file.
    """
    first, *rest = spec.split(",")
    kind, _, wanted = first.partition(":")
    built = _read_recipe(wanted) if kind == "recipe" else BuildSpec(first)
    base, fragments, patches = built.base, list(built.fragments), list(built.patches)
    for word in rest:
        key, _, value = word.partition("=")
        path = Path(value).expanduser()
        if key not in _OPTIONS or not value:
            raise InputError(f"kernel {spec!r}: {word!r} is not base=, config= or patches=")
        if not path.exists():
            raise InputError(
                f"kernel {spec!r}: {value}: there is no such {'path' if key == 'patches' else 'file'}"
            )
        if key != "patches" and path.is_dir():
            raise InputError(f"kernel {spec!r}: {value}: it is a directory, not a configuration")
        if key == "base":
            base = path
        elif key == "config":
            fragments.append(path)
        else:
            found = _list_patches(path)
            if not found:
                raise InputError(
                    f"kernel {spec!r}: there is no patch in {value}: none ends in .patch or .diff"
                )
            patches += found
    return replace(built, base=base, fragments=tuple(fragments), patches=tuple(patches))


def canonical(spec: str) -> str:
    """Return the spec with absolute paths."""
    first, *rest = spec.split(",")
    kind, _, wanted = first.partition(":")
    if kind == "tree" or wanted.endswith(".toml"):
        path, at, ref = wanted.partition("@")
        first = f"{kind}:{_absolute(path)}{at}{ref}"
    words = (word.partition("=") for word in rest)
    more = [
        f"{key}={_absolute(value)}" if key in _OPTIONS and value else key + equals + value
        for key, equals, value in words
    ]
    return ",".join([first, *more])


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())


def list_recipes() -> list[str]:
    return sorted(path.stem for path in DIRECTORY.glob("*.toml"))


def _read_recipe(name: str) -> BuildSpec:
    named = name.endswith(".toml")
    path = Path(name).expanduser() if named else DIRECTORY / f"{name}.toml"
    if not (named or path.is_file()):
        raise unknown("kernel", f"recipe:{name}", [f"recipe:{one}" for one in list_recipes()])
    recipe = read(path, KernelRecipe)
    patches: list[Path] = []
    for word in recipe.patches:
        place = path.parent / word
        found = _list_patches(place) if place.exists() else []
        if not found:
            raise InputError(
                f"kernel recipe:{recipe.name} is unsupported until its patch is there: {place}",
                hint=recipe.patches_from,
            )
        patches += found
    base = None if recipe.base == "small" else path.parent / recipe.base
    if base and not base.is_file():
        raise InputError(f"{path}: base: there is no file {base}")
    return BuildSpec(recipe.source, base, (), recipe.config, tuple(patches), recipe.fetch, recipe.edits)


def _list_patches(path: Path) -> list[Path]:
    """List the patches of a directory, in the order of its series file or else by name; a file is its own list."""
    if not path.is_dir():
        return [path]
    series = path / "series"
    if series.is_file():
        named = (re.sub(r"\s*#.*", "", line).strip() for line in fileio.read_text(series).splitlines())
        return [path / line.split()[0] for line in named if line]
    return sorted([*path.glob("*.patch"), *path.glob("*.diff")])
