"""Which modules a guest must insert, and in which order."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import TypeAdapter

from agelab.base import fileio
from agelab.base.errors import AgelabError
from agelab.kernel import elf
from agelab.kernel.elf import ModuleInfo, canonical_name

INDEX = "modules.json"
"""The facts of every module kept, read once when the kernel is unpacked."""
BUILTIN = "modules/modules.builtin"
CONFIG = "config"
"""What the kernel was built with."""

_INFOS = TypeAdapter(tuple[ModuleInfo, ...])


class MissingModule(AgelabError):
    """The kernel has no such module and has not built it in: a cell that needs it is ``unsupported``."""

    def __init__(self, module: str, release: str) -> None:
        self.module = module
        self.release = release
        super().__init__(f"kernel {release} has no module {module}")


class MissingOption(AgelabError):
    """The kernel was built without an option: a cell that needs it is ``unsupported``."""

    def __init__(self, option: str, release: str) -> None:
        super().__init__(f"kernel {release} was built without CONFIG_{option}")


@dataclass(frozen=True)
class Module:
    """One module to insert."""

    name: str
    path: Path
    optional: bool = False
    """Only a soft dependency wants it, such as an algorithm made for a CPU that the guest may not have."""

    def read(self) -> bytes:
        """Its ELF image, as ``insmod`` takes it, without a signature."""
        return elf.unsigned(elf.load(self.path))


@dataclass(frozen=True)
class Modules:
    """The modules of one kernel: those kept as files, and the names of those built in."""

    release: str
    directory: Path
    infos: tuple[ModuleInfo, ...]
    builtin: frozenset[str]

    @classmethod
    def of(cls, release: str, directory: Path) -> "Modules":
        """Read the index of an unpacked kernel's ``directory``."""
        infos = _INFOS.validate_json(fileio.read_bytes(directory / INDEX))
        return cls(release, directory, infos, builtin_names(directory / BUILTIN))

    @cached_property
    def _named(self) -> dict[str, ModuleInfo]:
        return {info.name: info for info in self.infos}

    @cached_property
    def _aliased(self) -> dict[str, list[str]]:
        by_alias: dict[str, list[str]] = {}
        for info in self.infos:
            for alias in info.aliases:
                by_alias.setdefault(alias, []).append(info.name)
        return by_alias

    def closure(self, names: Sequence[str]) -> tuple[Module, ...]:
        """These modules with all they depend on, dependencies first, built-in ones left out.

        Raises MissingModule for a name that is neither a file nor built in.
        """
        needed = self._walk(names, soft=False)
        return tuple(
            Module(info.name, self.directory / info.path, optional=info not in needed) for info in self._walk(names)
        )

    def kept(self, prefixes: tuple[str, ...]) -> list[ModuleInfo]:
        """Return the facts of the modules whose paths begin so, and of all that they depend on that is here."""
        chosen = [info.name for info in self.infos if info.path.startswith(prefixes)]
        return self._walk(chosen, required=False)

    def require(self, options: Sequence[str]) -> None:
        """Raises MissingOption for the first of these (without ``CONFIG_``) that is neither ``y`` nor ``m``."""
        if not options:
            return
        lines = set(fileio.read_text(self.directory / CONFIG).splitlines())
        for option in options:
            if lines.isdisjoint((f"CONFIG_{option}=y", f"CONFIG_{option}=m")):
                raise MissingOption(option, self.release)

    def has(self, name: str) -> bool:
        """Return True if the kernel can serve that module, built in or not."""
        return canonical_name(name) in self._named or canonical_name(name) in self.builtin

    def _walk(self, names: Sequence[str], *, soft: bool = True, required: bool = True) -> list[ModuleInfo]:
        """The facts of ``names`` and their dependencies in an order in which they can be inserted."""
        seen: set[str] = set()
        ordered: list[ModuleInfo] = []

        def visit(name: str) -> None:
            if name in seen:
                return
            seen.add(name)
            info = self._named.get(name)
            if info is None:
                if required and name not in self.builtin:
                    raise MissingModule(name, self.release)
                return
            if soft:
                for before in info.before:
                    for provider in self._providers(before):
                        visit(provider)
            for needed in info.depends:
                visit(needed)
            ordered.append(info)

        for name in names:
            visit(canonical_name(name))
        return ordered

    def _providers(self, name: str) -> list[str]:
        """The modules that answer to a soft dependency, which may be an algorithm of the crypto layer.

        Of the providers of an algorithm the portable one is enough; Intel's crc32c is added because every CPU
        model that a guest gets has the instruction, and the portable one costs ext4, xfs and btrfs dearly.
        """
        if canonical_name(name) in self._named:
            return [canonical_name(name)]
        providers = sorted(self._aliased.get(name, []))
        portable = [provider for provider in providers if provider.endswith("generic")] or providers[:1]
        return portable + [provider for provider in providers if provider == "crc32c_intel"]


def builtin_names(file: Path) -> frozenset[str]:
    """The module names in a ``modules.builtin`` file (one path for each line)."""
    paths = (Path(line) for line in fileio.read_text(file).splitlines())
    return frozenset(canonical_name(path.name.partition(".")[0]) for path in paths)


def index(infos: Sequence[ModuleInfo]) -> bytes:
    """The text of the index file."""
    return _INFOS.dump_json(tuple(infos), indent=1) + b"\n"
