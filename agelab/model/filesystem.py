"""A filesystem: what the host must install, load and run to make, mount and check one."""

from typing import Literal, Self

from pydantic import Field, model_validator

from agelab.model.base import Defaults, Frozen


class Tooling(Frozen):
    """The commands of one set of defaults.

    Each is an argument list; ``{device}``, ``{mountpoint}`` and ``{uuid}`` stand for what the cell puts there.
    ``mount_options`` are joined with the variant's own into the mount command's ``-o``.
    """

    mkfs: tuple[str, ...] = Field(min_length=1)
    mount_options: tuple[str, ...] = ()
    fsck: tuple[str, ...] = Field(min_length=1, description="a check that changes nothing")


class Filesystem(Frozen):
    """One file of scenarios/filesystems/."""

    name: str
    summary: str
    packages: tuple[str, ...] = Field(description="Debian packages of the guest that hold its tools")
    modules: tuple[str, ...] = Field(description="kernel modules; their dependencies follow by themselves")
    mount_type: str = Field(description="what mount -t takes")
    minimum_mib: int = Field(ge=1, description="the smallest disk its mkfs takes, in MiB")
    extents: Literal["fiemap", "fibmap", "none"]
    free_space: str = Field(description="the tool that lists its free space, or 'none'")
    limits: tuple[str, ...] = Field(default=(), description="known limits, one sentence each")
    period: Tooling
    today: Tooling

    @model_validator(mode="after")
    def _device_is_named(self) -> Self:
        for which in ("period", "today"):
            tooling: Tooling = getattr(self, which)
            for command in ("mkfs", "fsck"):
                if "{device}" not in getattr(tooling, command):
                    raise ValueError(f"{which}.{command} does not name {{device}}")
        return self

    def tooling(self, defaults: Defaults) -> Tooling:
        """The commands for one set of defaults."""
        return self.period if defaults == "period" else self.today
