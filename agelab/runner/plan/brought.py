"""The files that a scenario brings into its guests, as a guest gets them."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Brought:
    """Files for the guest, and how its steps find them."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    """Content by path below /run/agelab."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the steps: where programs and libraries are."""

    @property
    def size(self) -> int:
        """Bytes of all files: they lie in the guest's memory."""
        return sum(map(len, self.files.values()))


NOTHING_BROUGHT = Brought()
