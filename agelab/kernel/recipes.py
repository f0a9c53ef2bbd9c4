"""Specs and recipe files of kernels to build: source, patches and configuration."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from agelab.base import fileio
from agelab.base.errors import InputError, unknown
from agelab.base.types import Frozen, Name
from agelab.scenario.toml_files import SCENARIOS, read

DIRECTORY = SCENARIOS / "kernels"
"""Directory of recipe files and of agelab's configurations."""
KINDS = ("tree", "source", "recipe")
"""The kinds of specs whose kernels are built here."""
OPTIONS = ("base", "config", "patches")
"""What may follow a spec after commas."""
_LINE = re.compile(r"CONFIG_\w+=.+")
"""A line of configuration, in the place of a file with such lines."""


class KernelRecipe(Frozen):
    """A recipe file: of scenarios/kernels, or the user's own."""

    name: Name = Field(description="the file's name, without its ending")
    summary: str = Field(description="what kernel it is, in a line")
    source: str = Field(pattern="^(tree|source):.", description="what is built, as a kernel spec says it")
    base: str = Field("small", description="small, or a .config beside the recipe: a distribution's")
    config: tuple[str, ...] = Field((), description="more lines of configuration: CONFIG_UFS_FS_WRITE=y")
    patches: tuple[str, ...] = Field((), description="files or directories beside the recipe, in order")

    @model_validator(mode="before")
    @classmethod
    def _fetches_nothing(cls, said: Any) -> Any:
        if isinstance(said, dict) and not {"fetch", "edits"}.isdisjoint(said):
            raise ValueError(
                "fetch and edits are gone, agelab downloads nothing that a recipe names: make a patch of it "
                'beside this file, and name that: patches = ["mine.patch"]'
            )
        return said


@dataclass(frozen=True)
class BuildSpec:
    """A kernel to build, as a spec or recipe asks for it."""

    source: str
    """``tree:<path>[@<ref>]`` or ``source:<version>``."""
    base: Path | None = None
    """A distribution's configuration to use instead of the small one."""
    fragments: tuple[Path, ...] = ()
    lines: tuple[str, ...] = ()
    """Configuration lines of a recipe or a spec, applied after the fragments."""
    patches: tuple[Path, ...] = ()


def parse(spec: str) -> BuildSpec:
    """Parse a ``tree:``, ``source:`` or ``recipe:`` spec.

    ``<kind>:<what>[,base=<.config>][,config=<fragment or line>]...[,patches=<file or directory>]...``
    Raises InputError for a malformed spec or one that names a missing file.
    """
    first, *rest = spec.split(",")
    kind, _, wanted = first.partition(":")
    built = _read_recipe(wanted) if kind == "recipe" else BuildSpec(first)
    for word in rest:
        key, _, value = word.partition("=")
        path = Path(value).expanduser()
        if key not in OPTIONS or not value:
            raise InputError(f"kernel {spec!r}: {word!r} is not base=, config= or patches=")
        if _is_line(key, value):
            built = replace(built, lines=(*built.lines, value))
        elif not path.exists():
            raise InputError(
                f"kernel {spec!r}: {value}: there is no such {'path' if key == 'patches' else 'file'}"
            )
        elif key == "patches":
            found = _list_patches(path)
            if not found:
                raise InputError(
                    f"kernel {spec!r}: there is no patch in {value}: none ends in .patch or .diff"
                )
            built = replace(built, patches=(*built.patches, *found))
        elif path.is_dir():
            raise InputError(f"kernel {spec!r}: {value}: it is a directory, not a configuration")
        elif key == "base":
            built = replace(built, base=path)
        else:
            built = replace(built, fragments=(*built.fragments, path))
    return built


def canonical(spec: str) -> str:
    """Return the spec with absolute paths."""
    first, *rest = spec.split(",")
    kind, _, wanted = first.partition(":")
    if kind == "recipe" and wanted not in list_recipes() and Path(f"{wanted}.toml").is_file():
        wanted += ".toml"
    if kind == "tree" or wanted.endswith(".toml"):
        path, at, ref = wanted.partition("@")
        first = f"{kind}:{_absolute(path)}{at}{ref}"
    more = [
        option(key, value) if key in OPTIONS and value else key + equals + value
        for key, equals, value in (word.partition("=") for word in rest)
    ]
    return ",".join([first, *more])


def option(key: str, value: str) -> str:
    """Return an option of a spec, a file by its absolute path."""
    return f"{key}={value if _is_line(key, value) else _absolute(value)}"


def _is_line(key: str, value: str) -> bool:
    return key == "config" and _LINE.fullmatch(value) is not None


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())


def list_recipes() -> list[str]:
    return sorted(path.stem for path in DIRECTORY.glob("*.toml"))


def _read_recipe(name: str) -> BuildSpec:
    named = name.endswith(".toml")
    path = Path(name).expanduser() if named else DIRECTORY / f"{name}.toml"
    if not (named or path.is_file()):
        error = unknown("kernel recipe", name, list_recipes())
        error.hint = (
            f"{name}.toml in this directory would be one of your own: docs/kernels.md says how to write it"
        )
        raise error
    recipe = read(path, KernelRecipe)
    patches: list[Path] = []
    for word in recipe.patches:
        place = path.parent / word
        found = _list_patches(place) if place.exists() else []
        if not found:
            raise InputError(f"kernel recipe:{recipe.name} lacks its patch: there is none at {place}")
        patches += found
    base = None if recipe.base == "small" else path.parent / recipe.base
    if base and not base.is_file():
        raise InputError(f"{path}: base: there is no file {base}")
    return BuildSpec(recipe.source, base, (), recipe.config, tuple(patches))


def _list_patches(path: Path) -> list[Path]:
    """List the patches of a directory, in the order of its series file or else by name; a file is its own list."""
    if not path.is_dir():
        return [path]
    series = path / "series"
    if series.is_file():
        named = (re.sub(r"\s*#.*", "", line).strip() for line in fileio.read_text(series).splitlines())
        return [path / line.split()[0] for line in named if line]
    return sorted([*path.glob("*.patch"), *path.glob("*.diff")])
