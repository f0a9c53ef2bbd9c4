"""Profile of a filesystem: how to install, load, make, mount and check it."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from agelab.base.types import AlsoFrom, DebianSuite, Defaults, Frozen, Pattern

SCALED = re.compile(r"\{scaled:(\d+):(\d+)\}")


class Tooling(Frozen):
    """Commands of one set of defaults.

    Each is an argument list with the placeholders ``{device}``, ``{mountpoint}`` and ``{uuid}``. ``mount_options``
    and the variant's options are joined into the mount command's ``-o``.
    """

    mkfs: tuple[str, ...] = Field(min_length=1, description="makes it on {device}; options go before the last word")
    mount: tuple[str, ...] = Field(
        default=(), description="command in place of mount -t; {options} stands for the options of -o, with commas"
    )
    mount_options: tuple[str, ...] = Field(default=(), description="joined with the variant's into -o")
    read_only_options: tuple[str, ...] = Field(
        default=("ro",), min_length=1, description="more mount options to write nothing, not even a journal replay"
    )
    umount: tuple[str, ...] = Field(default=("umount", "{mountpoint}"), description="unmounts it")
    fsck: tuple[str, ...] = Field(min_length=1, description="check that changes nothing")


class FreeSpaceTool(Frozen):
    """Tool that lists a filesystem's free space."""

    format: str = Field(description="parser of its output (agelab.evaluate.layout.freespace)")
    run: tuple[str, ...] = Field(min_length=1, description="command, run while the filesystem is not mounted")


class NotListed(Frozen):
    """No tool lists the free space."""

    why: str = Field(min_length=1, description="reason, repeated in every result without the figure")


class ModuleSource(Frozen):
    """A Debian package with the source of kernel modules that no kernel of Debian's has."""

    package: str = Field(description="its name, from where the filesystem's packages are: zfs-dkms")
    build_packages: tuple[str, ...] = Field(
        default=(),
        description="Debian packages of the kernel's suite that the build takes, beside compiler and headers",
    )
    build: tuple[str, ...] = Field(
        min_length=1,
        description="command, run confined in the source; {headers} stands for the directory of the kernel's headers",
    )
    made: tuple[str, ...] = Field(min_length=1, description="files of the modules, below the source")


class Filesystem(Frozen):
    """A file of scenarios/filesystems/."""

    name: str = Field(description="the file's name, without its ending")
    summary: str = Field(description="kind of filesystem in one line")
    packages: tuple[str, ...] = Field(description="Debian packages of the guest with its tools")
    suite: DebianSuite = Field(
        default="", description="Debian suite of the whole root, where the guest's usual one has no such packages"
    )
    also_from: tuple[AlsoFrom, ...] = Field(
        default=(), description="where its packages are of Debian, beside the suite's main ones"
    )
    modules: tuple[str, ...] = Field(description="kernel modules; dependencies are added")
    module_source: ModuleSource | None = Field(
        default=None, description="package that these modules are built from, for the run's kernel"
    )
    kernel_config: tuple[str, ...] = Field(
        default=(),
        description="kernel options required, without CONFIG_; without them a module may have fewer functions",
    )
    modules_why: str = Field(default="", description="remark for a kernel without one of the modules")
    tools: tuple[str, ...] = Field(
        default=(), description="programs of harness/filesystems that its commands run, as no package has them"
    )
    mount_type: str = Field(description="type for mount -t")
    minimum_mib: int = Field(ge=1, description="smallest disk that mkfs accepts, MiB")
    extents: Literal["fiemap", "fibmap", "none"] = Field(description="system call that tells where files lie")
    extents_why: str = Field(default="", description="reason for none")
    free_space: FreeSpaceTool | NotListed = Field(description="tool that lists its free space, or why there is none")
    refuses: tuple[Pattern, ...] = Field(
        default=(), description="expressions for whole lines of error output (LC_ALL=C) about things it cannot store"
    )
    gone: tuple[Pattern, ...] = Field(
        default=(),
        description="expressions for kernel messages, within a line, when it shuts down, goes read-only or is damaged",
    )
    processes_mib: int = Field(
        default=0, ge=0, description="MiB that its own processes will take after the mount, beside what they hold then"
    )
    repair: tuple[str, ...] = Field(
        default=(), description="check that repairs, for after a power cut; empty if there is none"
    )
    repair_first: bool = Field(
        default=False,
        description="whether to repair before mounting after a power cut: the mount does not replay a journal",
    )
    commit_seconds: int | None = Field(
        default=None,
        ge=1,
        description="seconds between two commits, where the mount option commit= sets them: the kernel's default",
    )
    timers: Mapping[str, int] = Field(
        default_factory=dict, description="its timers below /proc/sys, in hundredths of a second: the kernel's defaults"
    )
    limits: tuple[str, ...] = Field(default=(), description="known limits, one sentence each")
    period: Tooling = Field(description="commands as in the studies' days")
    today: Tooling = Field(description="commands as today")

    @model_validator(mode="after")
    def _reasons_are_given(self) -> Self:
        if (self.extents == "none") != bool(self.extents_why):
            raise ValueError("extents_why gives the reason for extents = 'none', and for that alone")
        return self

    @model_validator(mode="after")
    def _places_are_named(self) -> Self:
        for which in ("period", "today"):
            tooling: Tooling = getattr(self, which)
            required = {"mkfs": ["{device}"], "fsck": ["{device}"], "umount": ["{mountpoint}"]}
            if tooling.mount:
                required["mount"] = ["{device}", "{mountpoint}"]
            for command, places in required.items():
                text = " ".join(getattr(tooling, command))
                for place in places:
                    if place not in text:
                        raise ValueError(f"{which}.{command} does not name {place}")
        if self.module_source and not self.suite:
            raise ValueError("module_source needs the suite that has the package")
        if self.module_source and "{headers}" not in " ".join(self.module_source.build):
            raise ValueError("module_source.build does not name {headers}")
        if self.repair and "{device}" not in " ".join(self.repair):
            raise ValueError("repair does not name {device}")
        if self.repair_first and not self.repair:
            raise ValueError("repair_first needs a repair")
        if isinstance(self.free_space, FreeSpaceTool) and "{device}" not in " ".join(self.free_space.run):
            raise ValueError("free_space.run does not name {device}")
        return self

    def tooling(self, defaults: Defaults) -> Tooling:
        """Return the commands of one set of defaults."""
        return self.period if defaults == "period" else self.today

    def mkfs_command(self, defaults: Defaults, options: Sequence[str] = (), *, shrink: float = 1) -> tuple[str, ...]:
        """Return the mkfs command with these options before its last word; ``{device}`` and ``{uuid}`` remain to be
        replaced.

        An option replaces one of the same name (``-O none``) with its value, or adds to its value what begins with ^
        or + (``-O ^has_journal``).

        ``{scaled:8192:513}`` is 8192 at the study's sizes, less on a disk ``shrink`` times smaller, and at least 513:
        structures that a filesystem makes equally large on every disk would change their ratio otherwise.
        """
        *first, last = self.tooling(defaults).mkfs

        def scaled(placeholder: re.Match[str]) -> str:
            return str(max(int(placeholder[2]), round(int(placeholder[1]) / shrink)))

        options = _with_added(first, options)
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
        """Return the mount command with additional options; ``{device}`` and ``{mountpoint}`` remain to be replaced.

        ``read_only`` mounts a cleanly unmounted filesystem without writing anything.
        """
        tooling = self.tooling(defaults)
        more = tooling.read_only_options if read_only else ()
        joined = ",".join((*tooling.mount_options, *options, *more))
        if tooling.mount:
            return tuple(word.replace("{options}", joined) for word in tooling.mount)
        given = ("-o", joined) if joined else ()
        return ("mount", "-t", self.mount_type, *given, "{device}", "{mountpoint}")

    def refused(self, line: str) -> bool:
        """Return True if a line of error output only says that the filesystem cannot store a thing."""
        return any(re.fullmatch(pattern, line.strip()) for pattern in self.refuses)


def _with_added(first: Sequence[str], options: Sequence[str]) -> list[str]:
    """Return options with what begins with ^ or + joined to the value that its option has before, in these or in
    ``first``."""
    joined: list[str] = []
    for word in options:
        flag = joined[-1] if joined and joined[-1].startswith("-") else ""
        if not flag or not word.startswith(("^", "+")):
            joined.append(word)
            continue
        words = [*first, *joined[:-1]]
        places = [place for place, word_before in enumerate(words[:-1]) if word_before == flag]
        before = [words[places[-1] + 1]] if places else []
        if places and places[-1] >= len(first):  # one of these options, which this one now stands for
            del joined[places[-1] - len(first) : places[-1] - len(first) + 2]
        joined.append(",".join((*before, word.removeprefix("+"))))
    return joined
