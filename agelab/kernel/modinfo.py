"""What a kernel module says of itself: the ``.modinfo`` section of an ELF64 file.

Formats: ELF-64 Object File Format 1.5 (header, section header table); the section holds
``key=value`` strings, each ended by NUL (include/linux/moduleparam.h of Linux).
"""

import struct
from pathlib import Path

from agelab.base import fileio
from agelab.base.errors import HostError
from agelab.base.types import Frozen

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SIGNATURE = struct.Struct(">5B3xI")
_SIGNED = b"~Module signature appended~\n"


class ModuleInfo(Frozen):
    """One module: where it is and what must be there before it is inserted."""

    name: str
    path: str
    depends: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    """Soft dependencies (``pre:``): module names or aliases, none of them an error when absent."""
    aliases: tuple[str, ...] = ()
    """The plain ones, such as ``crc32c``; patterns that match devices are left out."""


def canonical_name(name: str) -> str:
    """A module's name as the kernel has it: its file may be named with ``-`` for ``_``."""
    return name.replace("-", "_")


def load(path: Path) -> bytes:
    """Return a module's ELF image, unpacked where it is kept as .ko.xz or .ko.gz. Raises as ``fileio`` does."""
    if path.suffix in (".xz", ".gz"):
        return b"".join(fileio.unpacked_pieces(path, fileio.PROGRAM))
    return fileio.read_bytes(path, fileio.PROGRAM)


def unsigned(image: bytes) -> bytes:
    """A module without the signature that a distribution appends (struct module_signature of Linux).

    Checking it takes a guest 50 ms for each module, and proves nothing here: the package's hash was checked.
    """
    if not image.endswith(_SIGNED):
        return image
    trailer = len(image) - len(_SIGNED) - _SIGNATURE.size
    *_, length = _SIGNATURE.unpack_from(image, trailer)
    return image[: trailer - length]


def strings(image: bytes) -> list[tuple[str, str]]:
    """The (key, value) pairs of the ``.modinfo`` section, in file order. Raises ValueError for what is no ELF64."""
    if image[:5] != b"\x7fELF\x02":
        raise ValueError("not an ELF64 file")
    header = _HEADER.unpack_from(image)
    table, width, count, names_at = header[6], header[11], header[12], header[13]
    sections = [_SECTION.unpack_from(image, table + width * number) for number in range(count)]
    names = sections[names_at][4]
    for name, _, _, _, offset, size, *_ in sections:
        start = names + name
        if image[start : image.index(b"\0", start)] == b".modinfo":
            texts = image[offset : offset + size].decode(errors="replace").split("\0")
            return [(key, value) for key, equals, value in (text.partition("=") for text in texts) if equals]
    return []


def read(path: Path, relative: str) -> ModuleInfo:
    """Return the facts of one module file; ``relative`` is where it is kept in its kernel's tree.

    Raises HostError for a file that is no module, or larger than fileio.PROGRAM.
    """
    try:
        pairs = strings(load(path))
    except (ValueError, struct.error, IndexError, fileio.RefusedFile) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise HostError(f"{path} is not a kernel module: {why}") from error
    depends = [name for key, value in pairs if key == "depends" for name in value.split(",") if name]
    before: list[str] = []
    for value in (value for key, value in pairs if key == "softdep"):
        before += _before(value)
    plain = [value for key, value in pairs if key == "alias" and not set(value) & set("*:?[")]
    return ModuleInfo(
        name=canonical_name(path.name.partition(".")[0]),
        path=relative,
        depends=tuple(map(canonical_name, depends)),
        before=tuple(before),
        aliases=tuple(plain),
    )


def _before(softdep: str) -> list[str]:
    """The names after ``pre:`` and before ``post:`` in a softdep such as ``pre: crc32c post: b``."""
    found: list[str] = []
    collecting = False
    for word in softdep.split():
        if word.endswith(":"):
            collecting = word == "pre:"
        elif collecting:
            found.append(word)
    return found
