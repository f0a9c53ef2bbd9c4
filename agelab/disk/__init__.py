"""Drives that a scenario or the user names, and the claim without which nothing real is written to."""

from agelab.disk.claim import DriveClaim, claimed
from agelab.disk.spec import DriveSpec, parse, parse_list

__all__ = ["DriveClaim", "DriveSpec", "claimed", "parse", "parse_list"]
