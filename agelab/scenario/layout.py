"""Layout of the disk under test: of which partitions it is made, and how they are put together and taken apart."""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Self

from pydantic import Field, model_validator

from agelab.base.types import Defaults, Frozen, Name

PLACEHOLDER = re.compile(r"\{([a-z_]+)([0-9]*)\}")
EACH = ("member", "sectors")
"""Placeholders that carry the number of a member."""
WHOLE = ("device", "members", "uuid", "identity", "name", "number", "key")
"""Placeholders without a number."""
MOST_MEMBERS = 8
Command = Annotated[tuple[str, ...], Field(min_length=1)]
Parameter = Annotated[int, Field(ge=0)] | Annotated[str, Field(pattern=r"^[A-Za-z0-9._:/-]+$")]


class LayoutMember(Frozen):
    """A partition that the disk under test is made of."""

    share: float = Field(
        gt=0, le=100, allow_inf_nan=False, description="its size, as a part of that of the disk under test"
    )
    beside: int | None = Field(
        default=None, ge=0, description="member on whose drive it lies, behind it; by default it has its own drive"
    )
    drive: str | None = Field(
        default=None, pattern=r"^model:", description="its drive, where the user names none; by default the machine's"
    )


class Replacement(Frozen):
    """The way to put a new drive in the place of one that has failed."""

    survives: int = Field(ge=1, description="drives that may fail at a time")
    commands: tuple[Command, ...] = Field(
        min_length=1, description="run after the last step; {failed} is the member on the new drive"
    )


class Layout(Frozen):
    """A file of scenarios/layouts/.

    Commands are argument lists. {device} is the disk that they make, {members} all members, a word each,
    {member0} and {sectors0} a member and its sectors; {uuid} and {identity} differ between the disk and its control,
    {name} and {number} between all disks of a guest; {key} are 512 bits in hex from the run seed. Each parameter fills
    the place of its name.
    """

    name: Name = Field(description="the file's name, without its ending")
    summary: str = Field(description="the layout in one line")
    members: tuple[LayoutMember, ...] = Field(
        min_length=1, max_length=MOST_MEMBERS, description="partitions, by default each on its own drive"
    )
    packages: tuple[str, ...] = Field(
        default=(), description="Debian packages of the guest with its tools, beside those of every guest"
    )
    modules: tuple[str, ...] = Field(default=(), description="kernel modules; dependencies are added")
    module_parameters: dict[Annotated[str, Field(pattern=r"^[a-z0-9_]+/[a-z0-9_]+$")], str] = Field(
        default={}, description="module/parameter = value, set before it is put together where the kernel has it"
    )
    files: dict[Annotated[str, Field(pattern=r"^/etc/")], str] = Field(
        default={}, description="files of the guest, path to content, written before it is put together"
    )
    seeded: str = Field(min_length=1, description="what of it is fixed, and what follows from a seed")
    device: str = Field(default="", description="path of what the commands make")
    make: tuple[Command, ...] = Field(default=(), description="put new members together")
    open: tuple[Command, ...] = Field(default=(), description="put together what was made before")
    close: tuple[Command, ...] = Field(default=(), description="take it apart")
    fills: bool = Field(
        default=False, description="whether it is written in full when it is made: that is done after the first moment"
    )
    replacement: Replacement | None = Field(default=None, description="omitted where no drive of it may fail")
    period: dict[str, Parameter] = Field(default={}, description="parameters as in the studies' days")
    today: dict[str, Parameter] = Field(default={}, description="parameters as today")
    limits: tuple[str, ...] = Field(default=(), description="known limits, one sentence each")

    @model_validator(mode="after")
    def _parts_hold_together(self) -> Self:
        if problems := list(self._problems()):
            raise ValueError("; ".join(problems))
        return self

    def _problems(self) -> Iterator[str]:
        """Yield every contradiction in the file."""
        given = {part: bool(getattr(self, part)) for part in ("device", "make", "open", "close")}
        if len(set(given.values())) > 1:
            lacking = ", ".join(part for part, there in given.items() if not there)
            yield f"device, make, open and close go together: there is no {lacking}"
        if not self.make and (len(self.members) > 1 or self.replacement):
            yield "several members, or a replacement, need commands that put them together"
        for number, member in enumerate(self.members):
            if member.beside is not None and member.beside >= number:
                yield f"members[{number}].beside: is {member.beside}, not a member before it"
            if member.beside is not None and member.drive:
                yield f"members[{number}]: its own drive, or one beside another member"
        if self.period.keys() != self.today.keys():
            yield "period and today have the same parameters"
        if self.device and not self.device.startswith("/dev/"):
            yield "device: is no path of a device"
        for part, command in (("device", self.device), *self._commands()):
            for placeholder in PLACEHOLDER.finditer(command):
                if not self._has(placeholder[1], placeholder[2], part):
                    yield f"{part}: {placeholder[0]} is no placeholder of it"

    def _commands(self) -> Iterator[tuple[str, str]]:
        """Yield the commands as texts, each with its place."""
        parts = {part: getattr(self, part) for part in ("make", "open", "close")}
        if self.replacement:
            parts["replacement.commands"] = self.replacement.commands
        for part, commands in parts.items():
            yield from ((f"{part}[{number}]", " ".join(words)) for number, words in enumerate(commands))

    def _has(self, name: str, number: str, part: str) -> bool:
        """Return whether a placeholder stands for something there."""
        if name in EACH:
            return bool(number) and int(number) < len(self.members)
        if name == "failed":
            return not number and part.startswith("replacement")
        return name + number in (*WHOLE, *self.today)

    @property
    def drives(self) -> int:
        """The drives that it needs."""
        return sum(member.beside is None for member in self.members)

    def parameters(self, defaults: Defaults) -> dict[str, str]:
        """Return the parameters of a set of defaults, as words."""
        return {name: str(value) for name, value in getattr(self, defaults).items()}


def fill(commands: Sequence[Command], words: dict[str, str]) -> list[list[str]]:
    """Put words into commands; placeholders without one stay."""

    def filled(word: str) -> str:
        return PLACEHOLDER.sub(lambda placeholder: words.get(placeholder[1] + placeholder[2], placeholder[0]), word)

    return [[filled(word) for word in command] for command in commands]
