"""Drives that a scenario or the user names, and the claim without which nothing real is written to."""

from agelab.disk.claim import DriveClaim, claim_drives
from agelab.disk.spec import DriveSpec, parse, parse_list

__all__ = ["DriveClaim", "DriveSpec", "claim_drives", "parse", "parse_list"]
