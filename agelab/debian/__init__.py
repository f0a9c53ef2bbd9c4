"""Debian packages through the host's own apt configuration, into a private apt root."""

from agelab.debian.archive import WITHOUT_SECURITY, Archive, PackagesVanished, archives, to_have_security
from agelab.debian.packages import Package, control_fields, dependencies, host_suite, local_repository, newest
from agelab.debian.resolution import cached_resolution, remembered
from agelab.debian.snapshot import first_suite, mirrors
from agelab.debian.unpacking import unpack, unpack_source, unpack_zstd

__all__ = [
    "WITHOUT_SECURITY",
    "Archive",
    "Package",
    "PackagesVanished",
    "archives",
    "cached_resolution",
    "control_fields",
    "dependencies",
    "first_suite",
    "host_suite",
    "local_repository",
    "mirrors",
    "newest",
    "remembered",
    "to_have_security",
    "unpack",
    "unpack_source",
    "unpack_zstd",
]
