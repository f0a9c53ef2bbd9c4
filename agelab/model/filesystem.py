"""A filesystem: what the host must install, load and run to make, mount and check one."""

import re
from collections.abc import Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from agelab.model.base import Defaults, Frozen, Pattern

SCALED = re.compile(r"\{scaled:(\d+):(\d+)\}")


class Tooling(Frozen):
    """The commands of one set of defaults.

    Each is an argument list; ``{device}``, ``{mountpoint}`` and ``{uuid}`` stand for what the cell puts there.
    ``mount_options`` are joined with the variant's own into the mount command's ``-o``.
    """

    mkfs: tuple[str, ...] = Field(
        min_length=1, description="makes it on {device}; options go before the last word"
    )
    mount: tuple[str, ...] = Field(
        default=(),
        description="a command of its own in place of mount -t; {options} in it are those of -o, with commas",
    )
    mount_options: tuple[str, ...] = Field(default=(), description="joined with the variant's into -o")
    read_only_options: tuple[str, ...] = Field(
        default=("ro",),
        min_length=1,
        description="more mount options where nothing may be written, not even a journal be looked after",
    )
    umount: tuple[str, ...] = Field(default=("umount", "{mountpoint}"), description="unmounts it")
    fsck: tuple[str, ...] = Field(min_length=1, description="a check that changes nothing")


class FreeSpaceTool(Frozen):
    """What lists a filesystem's free space."""

    format: str = Field(description="the parser of what it prints (agelab.layout.freespace)")
    run: tuple[str, ...] = Field(min_length=1, description="run while the filesystem is not mounted")


class NotListed(Frozen):
    """Nothing lists its free space."""

    why: str = Field(min_length=1, description="the reason, which every result without the figure gives")


class Filesystem(Frozen):
    """One file of scenarios/filesystems/."""

    name: str = Field(description="the file's name, without its ending")
    summary: str = Field(description="what kind it is, in a line")
    packages: tuple[str, ...] = Field(description="Debian packages of the guest that hold its tools")
    modules: tuple[str, ...] = Field(description="kernel modules; their dependencies follow by themselves")
    kernel_config: tuple[str, ...] = Field(
        default=(),
        description="options, without CONFIG_, that its kernel must be built with: a module may do less without them",
    )
    modules_why: str = Field(default="", description="what to know where a kernel lacks one of these")
    tools: tuple[str, ...] = Field(
        default=(), description="programs of harness/filesystems that its commands run: no package holds them"
    )
    mount_type: str = Field(description="what mount -t takes")
    minimum_mib: int = Field(ge=1, description="the smallest disk its mkfs takes, in MiB")
    extents: Literal["fiemap", "fibmap", "none"] = Field(
        description="the kernel's call that tells where files lie"
    )
    extents_why: str = Field(default="", description="the reason for none")
    free_space: FreeSpaceTool | NotListed = Field(
        description="what lists its free space, or why nothing does"
    )
    refuses: tuple[Pattern, ...] = Field(
        default=(),
        description="whole lines of a program's error output (LC_ALL=C) that say what it cannot hold",
    )
    gone: tuple[Pattern, ...] = Field(
        default=(),
        description="what the kernel says, within a line, when it shuts down, goes read-only or finds itself broken",
    )
    processes_mib: int = Field(
        default=0,
        ge=0,
        description="MiB that processes of its own come to hold once it is mounted, beside what they hold then",
    )
    repair: tuple[str, ...] = Field(
        default=(), description="the check that repairs, for after a power cut; nothing where there is none"
    )
    repair_first: bool = Field(
        default=False,
        description="whether that comes before a mount after a power cut: the mount does not replay a journal",
    )
    limits: tuple[str, ...] = Field(default=(), description="known limits, one sentence each")
    period: Tooling = Field(description="its commands as they worked in the studies' days")
    today: Tooling = Field(description="its commands as they work now")

    @model_validator(mode="after")
    def _reasons_are_given(self) -> Self:
        if (self.extents == "none") != bool(self.extents_why):
            raise ValueError("extents_why gives the reason for extents = 'none', and for that alone")
        return self

    @model_validator(mode="after")
    def _places_are_named(self) -> Self:
        for which in ("period", "today"):
            tooling: Tooling = getattr(self, which)
            wanted = {"mkfs": ["{device}"], "fsck": ["{device}"], "umount": ["{mountpoint}"]}
            if tooling.mount:
                wanted["mount"] = ["{device}", "{mountpoint}"]
            for command, places in wanted.items():
                text = " ".join(getattr(tooling, command))
                for place in places:
                    if place not in text:
                        raise ValueError(f"{which}.{command} does not name {place}")
        if self.repair and "{device}" not in " ".join(self.repair):
            raise ValueError("repair does not name {device}")
        if self.repair_first and not self.repair:
            raise ValueError("repair_first needs a repair")
        if isinstance(self.free_space, FreeSpaceTool) and "{device}" not in " ".join(self.free_space.run):
            raise ValueError("free_space.run does not name {device}")
        return self

    def tooling(self, defaults: Defaults) -> Tooling:
        """The commands for one set of defaults."""
        return self.period if defaults == "period" else self.today

    def mkfs_command(
        self, defaults: Defaults, options: Sequence[str] = (), *, shrink: float = 1
    ) -> tuple[str, ...]:
        """What makes it, with these options before its last word; ``{device}`` and ``{uuid}`` are still to fill in.

        An option that is there already (``-O none``) gives way to the one of the same name, with its value.

        ``{scaled:8192:513}`` is 8192 at the study's sizes, less on a disk that is ``shrink`` times smaller, and never
        less than 513: what a filesystem makes as large on every disk would not keep its ratio.
        """
        *first, last = self.tooling(defaults).mkfs

        def scaled(found: re.Match[str]) -> str:
            return str(max(int(found[2]), round(int(found[1]) / shrink)))

        own = {word for word in options if word.startswith("-")}
        kept = [
            word
            for before, word in zip(("", *first), first, strict=False)
            if word not in own and not (before in own and not word.startswith("-"))
        ]
        return tuple(SCALED.sub(scaled, word) for word in (*kept, *options, last))

    def mount_command(
        self, defaults: Defaults, options: Sequence[str] = (), *, read_only: bool = False
    ) -> tuple[str, ...]:
        """What mounts it with these options beside its own; ``{device}`` and ``{mountpoint}`` are still to fill in.

        ``read_only`` is for looking at a filesystem that was unmounted cleanly: nothing of it is written.
        """
        tooling = self.tooling(defaults)
        more = tooling.read_only_options if read_only else ()
        joined = ",".join((*tooling.mount_options, *options, *more))
        if tooling.mount:
            return tuple(word.replace("{options}", joined) for word in tooling.mount)
        given = ("-o", joined) if joined else ()
        return ("mount", "-t", self.mount_type, *given, "{device}", "{mountpoint}")

    def umount_command(self, defaults: Defaults) -> tuple[str, ...]:
        """What unmounts it, with ``{device}`` and ``{mountpoint}`` still to fill in."""
        return self.tooling(defaults).umount

    def refused(self, line: str) -> bool:
        """Whether this line of a program's error output says no more than that it cannot hold a thing."""
        return any(re.fullmatch(pattern, line.strip()) for pattern in self.refuses)
