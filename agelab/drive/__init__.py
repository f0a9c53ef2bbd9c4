"""The modelled drive: the kernel module that is one, built for the kernel that is to have it."""

from agelab.drive.module import SOURCES, obtain

__all__ = ["SOURCES", "obtain"]
