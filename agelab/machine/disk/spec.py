"""Drive names: ``model:<name>``, ``file:<path>``, ``block:<device>``, ``pci:<address>``, some with options behind ?."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import parse_qsl

from agelab.base.errors import InputError

Kind = Literal["model", "file", "block", "pci"]
Cache = Literal["none", "directsync", "writethrough", "writeback", "unsafe"]
Aio = Literal["native", "threads", "io_uring"]

KINDS: tuple[str, ...] = get_args(Kind)
FORMS = "model:<name>, file:<path>, block:<device>, pci:<address>"
EXAMPLES = {
    "model": "model:none",
    "file": "file:/var/tmp/disk.img?cache=none&aio=native",
    "block": "block:/dev/disk/by-id/ata-MODEL_SERIAL",
    "pci": "pci:0000:01:00.0",
}
BEGINS = ("fresh", "trimmed", "used")
"""How a modelled solid-state drive begins: never written; used and then discarded; used."""
OPTIONS: dict[str, tuple[str, ...]] = {"cache": get_args(Cache), "aio": get_args(Aio)}
DIRECT = ("none", "directsync")
"""Cache modes that bypass the host's page cache: required by aio=native, and for meaningful times."""
HERE = Path()
"""The current directory."""
_ADDRESS = re.compile(r"(?:([0-9a-f]{4}):)?([0-9a-f]{2}):([01][0-9a-f])\.([0-7])", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class DriveSpec:
    """A drive as named by the user, with defaults filled in."""

    kind: Kind
    name: str
    """Model name, absolute path, or full PCI address."""
    cache: str = ""
    """QEMU cache mode (``file`` and ``block``)."""
    aio: str = ""
    """QEMU's asynchronous I/O mode (``file`` and ``block``)."""
    begins: str = ""
    """How a solid-state drive begins (``model``), one of BEGINS; fresh if it is not said."""

    @property
    def real(self) -> bool:
        """True for a real disk or file, which must be claimed and requires the wall clock."""
        return self.kind != "model"

    def __str__(self) -> str:
        """Return the spec with every option, as results record it."""
        options = f"?cache={self.cache}&aio={self.aio}" if self.cache else ""
        begins = f"?begins={self.begins}" if self.begins else ""
        return f"{self.kind}:{self.name}{options}{begins}"


def parse(text: str, directory: Path = HERE) -> DriveSpec:
    """Parse a drive name; a relative path starts in ``directory``. Raises InputError with the nearest valid form."""
    kind, colon, rest = text.strip().partition(":")
    if kind not in KINDS or not colon:
        raise InputError(f"no drive {text!r}; a drive is one of {FORMS}", hint=_suggestion(text, kind, rest))
    if not rest:
        raise _spec_error(kind, text, "names nothing")
    if kind == "model":
        return _model(rest, text)
    if kind == "pci":
        return DriveSpec("pci", _address(rest, text))
    path, question, query = rest.partition("?")
    cache, aio = _options(query, text) if question else _options("", text)
    if not path or any(not char.isprintable() for char in path):
        raise _spec_error(kind, text, "has no usable path")
    return DriveSpec("file" if kind == "file" else "block", str((directory / path).absolute()), cache, aio)


def _model(rest: str, text: str) -> DriveSpec:
    name, _, query = rest.partition("?")
    if not _NAME.fullmatch(name):
        raise _spec_error("model", text, "has no valid model name")
    option, _, begins = query.partition("=")
    if query and (option != "begins" or begins not in BEGINS):
        raise InputError(f"drive {text!r}: no option {query!r}", hint=f"begins= is one of {', '.join(BEGINS)}")
    return DriveSpec("model", name, begins=begins)


def parse_list(text: str, directory: Path = HERE) -> tuple[DriveSpec, ...]:
    """Parse a comma-separated list of drives as ``parse`` does. Raises InputError, also for a drive listed twice."""
    specs = tuple(parse(word, directory) for word in text.split(","))
    for number, spec in enumerate(specs):
        if spec.real and spec.name in (other.name for other in specs[:number]):
            raise InputError(f"drive {spec.kind}:{spec.name} is named twice in {text!r}")
    return specs


def _suggestion(text: str, kind: str, rest: str) -> str:
    """Return a hint for a name that is no drive."""
    word = text.strip()
    if word.startswith("/dev/"):
        return f"did you mean block:{word}?"
    if word.startswith(("/", ".")):
        return f"did you mean file:{word}?"
    if _ADDRESS.fullmatch(word):
        return f"did you mean pci:{word}?"
    if near := get_close_matches(kind, KINDS, n=1, cutoff=0.5):
        return f"did you mean {near[0]}:{rest or '...'}?"
    return f"for example {EXAMPLES['block']}"


def _spec_error(kind: str, text: str, why: str) -> InputError:
    return InputError(f"drive {text!r} {why}", hint=f"for example {EXAMPLES[kind]}")


def _address(word: str, text: str) -> str:
    match = _ADDRESS.fullmatch(word)
    if match is None:
        raise _spec_error("pci", text, "has no PCI address")
    domain, bus, slot, function = match.groups(default="0000")
    return f"{domain}:{bus}:{slot}.{function}".lower()


def _options(query: str, text: str) -> tuple[str, str]:
    """Return cache mode and aio of a spec; by default they bypass the page cache, asynchronously."""
    given: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in OPTIONS:
            raise InputError(f"drive {text!r}: no option {name!r}", hint="the options are cache= and aio=")
        if value not in OPTIONS[name]:
            near = get_close_matches(value, OPTIONS[name], n=1, cutoff=0.5)
            hint = f"did you mean {name}={near[0]}?" if near else f"{name} is one of {', '.join(OPTIONS[name])}"
            raise InputError(f"drive {text!r}: no {name} {value!r}", hint=hint)
        if name in given:
            raise InputError(f"drive {text!r}: {name} is given twice")
        given[name] = value
    if query and not given:
        raise InputError(f"drive {text!r}: no option {query!r}", hint="the options are cache= and aio=")
    cache = given.get("cache", "none")
    aio = given.get("aio", "native" if cache in DIRECT else "threads")
    if aio == "native" and cache not in DIRECT:
        raise InputError(
            f"drive {text!r}: aio=native goes around the host's page cache, cache={cache} through it",
            hint="take cache=none, or aio=threads",
        )
    return cache, aio
