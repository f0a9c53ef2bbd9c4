"""The parts that a kernel was made of, and the record of them that a build writes."""

from pydantic import Field

from agelab.base.types import Frozen

PROVENANCE_FILE = "provenance.json"


class KernelPart(Frozen):
    """One thing that a kernel was made of: a package, a file, a patch."""

    name: str
    version: str = ""
    sha256: str = Field(default="", description="empty where nobody recorded it")


class BuildRecord(Frozen):
    """PROVENANCE_FILE, which a build writes beside its kernel."""

    sources: tuple[KernelPart, ...] = ()
    commit: str | None = Field(default=None, description="of the tree that it was built from")
    patches: tuple[KernelPart, ...] = Field(default=(), description="in the order in which they were applied")
