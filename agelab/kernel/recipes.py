"""Specs and recipe files of kernels to build: source, patches and configuration.

Format of a configuration: Documentation/kbuild/kconfig.rst of Linux (.config, KCONFIG_ALLCONFIG).
"""

import re
from collections.abc import Mapping
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
_CONFIG_LINE = re.compile(r"CONFIG_\w+=.+")
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
    def _fetches_nothing(cls, data: Any) -> Any:
        if isinstance(data, dict) and not {"fetch", "edits"}.isdisjoint(data):
            raise ValueError(
                "fetch and edits are gone, agelab downloads nothing that a recipe names: make a patch of it "
                'beside this file, and name that: patches = ["mine.patch"]'
            )
        return data


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
    kind, _, name = first.partition(":")
    built = _read_recipe(name) if kind == "recipe" else BuildSpec(first)
    for word in rest:
        key, _, value = word.partition("=")
        path = Path(value).expanduser()
        if key not in OPTIONS or not value:
            raise InputError(f"kernel {spec!r}: {word!r} is not base=, config= or patches=")
        if _is_line(key, value):
            built = replace(built, lines=(*built.lines, value))
        elif not path.exists():
            raise InputError(f"kernel {spec!r}: {value}: there is no such {'path' if key == 'patches' else 'file'}")
        elif key == "patches":
            patches = _list_patches(path)
            if not patches:
                raise InputError(f"kernel {spec!r}: there is no patch in {value}: none ends in .patch or .diff")
            built = replace(built, patches=(*built.patches, *patches))
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
    kind, _, name = first.partition(":")
    if kind == "recipe" and name not in list_recipes() and Path(f"{name}.toml").is_file():
        name += ".toml"
    if kind == "tree" or name.endswith(".toml"):
        path, at, ref = name.partition("@")
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
    return key == "config" and _CONFIG_LINE.fullmatch(value) is not None


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())


def list_recipes() -> list[str]:
    return sorted(path.stem for path in DIRECTORY.glob("*.toml"))


def _read_recipe(name: str) -> BuildSpec:
    named = name.endswith(".toml")
    path = Path(name).expanduser() if named else DIRECTORY / f"{name}.toml"
    if not (named or path.is_file()):
        error = unknown("kernel recipe", name, list_recipes())
        error.hint = f"{name}.toml in this directory would be one of your own: docs/kernels.md says how to write it"
        raise error
    recipe = read(path, KernelRecipe)
    patches: list[Path] = []
    for word in recipe.patches:
        place = path.parent / word
        files = _list_patches(place) if place.exists() else []
        if not files:
            raise InputError(f"kernel recipe:{recipe.name} lacks its patch: there is none at {place}")
        patches += files
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


NEEDED = DIRECTORY / "needed.config"
"""Options that every guest needs."""
SMALL = DIRECTORY / "small.config"
"""Options of the small configuration, which is the default."""
DISTRIBUTION = DIRECTORY / "distribution.config"
"""Changes to a distribution's configuration."""

# As conf reads it: the one comment with a meaning is "is not set", also with text behind it (up to Linux 6.8), and text
# after a value is ignored.
_OPTION = re.compile(r'# (CONFIG_\w+) is not set.*|(CONFIG_\w+)=(".*"|[^#]*?)(?:\s*#.*)?')


# Lines that conf reads as they are meant. Behind a number it takes nothing, before an option neither.
_READ = re.compile(
    r"(#.*|\s+#(?! CONFIG_\w+ is not set).*|"
    r'CONFIG_\w+=(-?(0[xX])?[0-9a-fA-F]+|([ymn]|"([^"\\]|\\.)*")(\s*#.*)?))?'
)


def options(text: str) -> dict[str, str]:
    """Map name to value in a .config or a fragment. The last line of a name counts; "is not set" is ``n``."""
    values: dict[str, str] = {}
    for match in filter(None, (_OPTION.fullmatch(line.strip()) for line in text.split("\n"))):
        name = match[1] or match[2]
        values.pop(name, None)  # of a choice the last option counts
        values[name] = match[3] or "n"
    return values


def set_options(config: str) -> dict[str, str]:
    """Map each option that is set (without CONFIG_) to its value: y, m, a number or a quoted text."""
    return {name.removeprefix("CONFIG_"): value for name, value in options(config).items() if value != "n"}


def options_text(values: Mapping[str, str]) -> str:
    """Return the lines of options, as conf writes them."""
    lines = (f"# {name} is not set" if value == "n" else f"{name}={value}" for name, value in values.items())
    return "".join(f"{line}\n" for line in lines)


def require_readable(name: str, text: str) -> None:
    """Raise InputError for a line of a .config or a fragment that conf would drop."""
    for number, line in enumerate(text.split("\n"), 1):
        if not _READ.fullmatch(line.rstrip()):
            raise InputError(
                f"{name}, line {number}: Linux would drop {line.strip()[:80]!r}",
                hint='write CONFIG_A=y, m, n, 5, 0x5 or "text", or # CONFIG_A is not set, with nothing before it, '
                "and nothing behind a number",
            )


def missing_options(text: str, fragment: str) -> dict[str, str]:
    """Map the options of a fragment that a .config does not honour to its values; ``=m`` is also honoured by ``=y``."""
    has = options(text)
    got = {name: (value, has.get(name, "n")) for name, value in options(fragment).items()}
    return {name: had for name, (asked, had) in got.items() if had not in ({asked, "y"} if asked == "m" else {asked})}


def check_options(text: str, fragments: Mapping[str, str], version: str) -> None:
    """Raise InputError when a .config lacks options that guests need or that the user's fragments set."""
    if missing := missing_options(text, fileio.read_text(NEEDED)):
        raise InputError(
            f"the configuration lacks options that a guest needs: {', '.join(sorted(missing))}",
            hint=f"{NEEDED.name} says what for; an option may need others: make menuconfig in the tree tells which",
        )
    for name, fragment in fragments.items():
        if ignored := missing_options(text, fragment):
            listed = ", ".join(f"{option} (it is {had})" for option, had in sorted(ignored.items()))
            raise InputError(
                f"{name}: Linux {version} does not accept {listed}",
                hint="it needs other options too, or this version has no such option",
            )
