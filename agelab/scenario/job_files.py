"""Job files of programs: the files that they include, and the places that they and a step's arguments name.

A place is known by the name of its option, which the program's file lists. What is done in a place that is not on the
disk under test is done in the guest's memory, so such a place is an error before the run.
"""

import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from agelab.base.errors import InputError
from agelab.scenario.guest_places import BESIDE_MOUNT, GUEST, MOUNT, SOURCE, UNDER_TEST, device
from agelab.scenario.workload import GuestProgram

MOST_FILES, MOST_LEVELS = 50, 8
"""Files that a job file may include, and how far they may include one another."""
_ENTRY = re.compile(r"(?:set\s+)?([A-Za-z][A-Za-z0-9_-]*)(?:\s*=\s*|\s+)(.*)", re.DOTALL)
"""An option of a job file with its value: ``size=4m``, ``set location /mnt``, ``include common.inc``."""
_SECTION = re.compile(r"\[(/.*)\]", re.DOTALL)
"""The name of a job that is a path: its file, too, if that is a device."""
_BRACED = re.compile(r"\$\{([^}]*)\}")
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_SEPARATOR = re.compile(r"(?<!\\):")
"""Between several files of one option."""
_SHELL = re.compile(r"[`$;&|<>]")
"""What a shell takes for other commands, or for other places of what a program prints."""
_COMMENT = re.compile(r"[;#].*", re.DOTALL)
Load = Callable[[str], bytes]
"""Returns the content of a file by its path from the job file's directory on. Raises InputError."""


class Entry(NamedTuple):
    """An option in a job file."""

    file: str
    line: int
    option: str
    value: str


def read(name: str, program: GuestProgram, load: Load) -> dict[str, bytes]:
    """Return a job file and all that it includes, by their paths from its directory on. Raises InputError."""
    files: dict[str, bytes] = {}

    def add(path: str, content: bytes, level: int) -> None:
        files[path] = content
        for entry in _entries(path, files[path]):
            if not program.include or entry.option != program.include:
                continue
            place = f"{path}:{entry.line}: {program.include} {entry.value}"
            if entry.value.startswith(("/", "~")) or ".." in entry.value.split("/"):
                raise InputError(
                    f"{place}: an included file lies beside the job file, or below: copy it there, and write its name"
                )
            included = posixpath.normpath(posixpath.join(posixpath.dirname(path), entry.value))
            if included in files:
                continue
            if level == MOST_LEVELS or len(files) > MOST_FILES:
                raise InputError(
                    f"{place}: files are included {MOST_LEVELS} levels deep and {MOST_FILES} in all at most"
                )
            try:
                content = load(included)
            except InputError as error:
                raise InputError(f"{place}: {error}") from error
            add(included, content, level + 1)

    add(name, load(name), 0)
    return files


def entries(name: str, program: GuestProgram, jobs: Mapping[str, bytes]) -> Iterator[Entry]:
    """Yield the options of a job file and of those that it includes."""
    for path in read(name, program, jobs.__getitem__):
        yield from _entries(path, jobs[path])


def _entries(path: str, data: bytes) -> Iterator[Entry]:
    for number, line in enumerate(data.decode(errors="replace").splitlines(), start=1):
        words = _COMMENT.sub("", line).strip()
        if entry := _ENTRY.fullmatch(words):
            yield Entry(path, number, entry[1], entry[2])
        elif section := _SECTION.fullmatch(words):
            yield Entry(path, number, "name", section[1])


def misplaced(
    name: str, program: GuestProgram, jobs: Mapping[str, bytes], variables: Mapping[str, str]
) -> Iterator[str]:
    """Yield each place of a job file that is not on the disk under test, with its line."""
    for entry in entries(name, program, jobs):
        if entry.option not in (*program.places, *program.inputs):
            continue
        place = f"{entry.file}:{entry.line}: {entry.option}={entry.value}"
        bare = [word for _, word in _VARIABLE.findall(entry.value) if word in variables]
        if bare and program.include:
            yield f"{place}: a job file has braces around a variable: ${{{bare[0]}}}"
            continue
        # An option of a job file has the empty string for a variable that is not set, as in a shell.
        value = _BRACED.sub(lambda name: variables.get(name[1], ""), entry.value)
        if why := _misfit(value, entry.option in program.inputs, shown=value != entry.value):
            yield f"{place}: {why}"


def misplaced_arguments(arguments: str, program: GuestProgram, variables: Mapping[str, str]) -> Iterator[str]:
    """Yield each place among the arguments of a program that is not on the disk under test."""
    try:
        words = shlex.split(arguments)
    except ValueError as error:
        yield f"arguments: a shell does not take them: {error}"
        return
    for option, value in _options(words, program):
        place = filled(value, variables)
        if "$" in place or "`" in place:  # a command's output, which nobody knows yet
            continue
        name = option.strip("-= ")
        if why := _misfit(place, not name or name in program.inputs, shown=place != value):
            yield f"arguments: {option}{value}: {why}"


def _options(words: list[str], program: GuestProgram) -> Iterator[tuple[str, str]]:
    """Yield the options that are places, as written up to their value, and these values.

    ``--directory=/mnt``, ``--directory /mnt``, ``-d /mnt``, ``-d/mnt``; and a word of its own that is a path.
    """
    for before, word in zip(("", *words), words, strict=False):
        name, equals, value = word.partition("=")
        letter, rest = word[1:2], word[2:]
        if word.startswith("-"):
            if equals and name.lstrip("-") in (*program.places, *program.inputs):
                yield name + equals, value
            elif rest and not word.startswith("--") and letter in program.places:
                yield word[:2], rest
        elif before.startswith("-") and before.lstrip("-") in (*program.places, *program.inputs):
            yield f"{before} ", word
        elif not before.startswith("-") and word.startswith(("/", "$")):
            yield "", word


def filled(text: str, variables: Mapping[str, str]) -> str:
    """Return a text with the values of its variables, empty ones for those that are not set."""
    return _VARIABLE.sub(lambda name: variables.get(name[1] or name[2], ""), text)


def words(arguments: str, variables: Mapping[str, str]) -> list[str]:
    """Return the words of a command line, its variables filled in; none where a shell does more with them."""
    texts = [filled(word, variables) for word in shlex.split(arguments)]
    return [] if any(_SHELL.search(text) for text in texts) else texts


def uses(name: str, text: str) -> bool:
    """Return True if a command or a job file names that variable."""
    return any(name in variable for variable in _VARIABLE.findall(text))


def _misfit(value: str, may_be_read: bool, *, shown: bool) -> str:
    """Return what is wrong with the places of an option; empty where nothing is."""
    elsewhere = (GUEST, SOURCE, BESIDE_MOUNT) if may_be_read else ()
    for part in _SEPARATOR.split(value):
        where = posixpath.normpath(posixpath.join(MOUNT, part.strip()))
        if where == device(UNDER_TEST) or any(_is_below(where, place) for place in (MOUNT, *elsewhere)):
            continue
        stands = f"there it is {value!r}, which" if shown else "it"
        bring = ', or ${BROUGHT}/traces/NAME for a file of bring = ["./traces"]' if may_be_read else ""
        return (
            f"{stands} is not on the disk under test: it would be measured in the guest's memory, not on its drive; "
            f"leave it out, or write a path without / before it (steps begin where the disk is mounted, {MOUNT}), or "
            f"${{DEVICE}} for the disk itself{bring}"
        )
    return ""


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")
