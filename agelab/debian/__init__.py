"""Debian packages through the host's own apt configuration, into a private apt root."""

from agelab.debian.archive import Archive, PackagesVanished
from agelab.debian.packages import (
    SUITES,
    Dependency,
    Package,
    dependencies,
    host_suite,
    local_repository,
    newest,
)
from agelab.debian.resolution import cached_resolution

__all__ = [
    "SUITES",
    "Archive",
    "Dependency",
    "Package",
    "PackagesVanished",
    "cached_resolution",
    "dependencies",
    "host_suite",
    "local_repository",
    "newest",
]
