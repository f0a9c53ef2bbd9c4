"""Result of one probe of the host, and its meaning for the user."""

from enum import StrEnum

from pydantic import Field

from agelab.base.types import Frozen


class ProbeStatus(StrEnum):
    """OK: as it should be. MISSING: not there. LIMITED: partly usable. UNKNOWN: not proven."""

    OK = "ok"
    MISSING = "missing"
    LIMITED = "limited"
    UNKNOWN = "unknown"


class Finding(Frozen):
    """Result of one probe."""

    name: str
    status: ProbeStatus
    found: str = Field(description="version or fact found; empty if nothing was")
    meaning: str = Field(description="consequence for the user")
    fix: str = Field(default="", description="what to install or change; empty if nothing")
    required: bool = Field(default=False, description="the virtual clock cannot run without it")


class HostReport(Frozen):
    """All findings about one host. ``schema`` is the version of this layout."""

    schema_: int = Field(default=1, alias="schema")
    findings: tuple[Finding, ...]

    @property
    def virtual_clock(self) -> bool:
        """True if the virtual clock can run here: nothing that it requires is missing."""
        return not any(found.required and found.status is ProbeStatus.MISSING for found in self.findings)
