"""A matrix of mkfs and mount options: each combination is a variant of its own."""

import re
import shlex
from collections.abc import Sequence
from itertools import product
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field

from agelab.base.types import Frozen, Name

MOST_COMBINATIONS = 64
"""Combinations for one variant at most."""


class ChosenOption(NamedTuple):
    """An option of mkfs or of mount that a variant has."""

    words: tuple[str, ...]

    @property
    def of_mkfs(self) -> bool:
        return self.words[0].startswith("-")

    @property
    def slug(self) -> str:
        """The option in a variant's name: ``no-has_journal``, ``data-writeback``, ``b-1024``."""
        *flags, value = self.words
        plain = value.lstrip("^+")
        shown = plain if plain[:1].isalpha() else " ".join((*flags, plain))
        text = f"no-{shown}" if value.startswith("^") else shown
        return re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-")


def parse_choices(entry: str) -> tuple[ChosenOption, ...]:
    """Read what an entry offers: ``data=writeback|data=journal``. Raises ValueError."""
    choices = tuple(ChosenOption(tuple(shlex.split(word))) for word in entry.split("|"))
    for choice in choices:
        if not choice.words or not choice.slug:
            raise ValueError(f"{entry!r} is no option: -O ^has_journal, data=writeback, or several with | between them")
        if not choice.of_mkfs and len(choice.words) > 1:
            raise ValueError(f"{entry!r}: options of mount have commas between them, those of mkfs begin with a dash")
    return choices


def _entry(text: str) -> str:
    parse_choices(text)
    return text


class OptionMatrix(Frozen):
    """Options with which a filesystem's variants are multiplied: each is off, or on."""

    filesystem: Name = Field(description="whose variants are multiplied")
    options: tuple[Annotated[str, AfterValidator(_entry)], ...] = Field(
        min_length=1,
        description="each is off, or one of those that | separates; what begins with a dash is mkfs's, all else "
        "mount's. An mkfs option replaces the filesystem's own of that name; a value that begins with ^ or + is added",
    )

    def combinations(self) -> tuple[tuple[ChosenOption, ...], ...]:
        """Return every combination, that of nothing first. Raises ValueError for too many."""
        axes = [(None, *parse_choices(entry)) for entry in self.options]
        combinations = [tuple(option for option in chosen if option) for chosen in product(*axes)]
        if len(combinations) > MOST_COMBINATIONS:
            raise ValueError(
                f"{self.filesystem}: {len(combinations)} combinations of options: {MOST_COMBINATIONS} at most"
            )
        return tuple(combinations)


def parse_matrix(text: str) -> tuple[OptionMatrix, ...]:
    """Read ``ext4:-O ^has_journal,data=writeback;xfs:...``. Raises ValueError.

    A comma that is part of an option has a backslash before it.
    """
    matrices = []
    for part in filter(None, map(str.strip, text.split(";"))):
        filesystem, colon, rest = part.partition(":")
        entries = [entry.strip().replace("\\,", ",") for entry in re.split(r"(?<!\\),", rest)]
        if not colon or not filesystem or not all(entries):
            raise ValueError(
                f"{part!r}: say FILESYSTEM:OPTION,OPTION..., like 'ext4:-O ^has_journal,data=writeback', with ; "
                "between filesystems"
            )
        for entry in entries:
            parse_choices(entry)
        matrices.append(OptionMatrix.model_construct(filesystem=filesystem, options=tuple(entries)))
    if not matrices:
        raise ValueError("names no option")
    return tuple(matrices)


def names_of(options: Sequence[ChosenOption]) -> str:
    """Return what a combination adds to a variant's name."""
    return "".join(f"-{option.slug}" for option in options)
