"""Drives named by a scenario or the user, and exclusive claims on real ones."""

from agelab.machine.disk.claim import DriveClaim, claim_drives
from agelab.machine.disk.spec import DriveSpec, parse, parse_list

__all__ = ["DriveClaim", "DriveSpec", "claim_drives", "parse", "parse_list"]
