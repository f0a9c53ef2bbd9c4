"""Dilation: one second on the guest's clock stands for so many seconds of the machine that it models.

The instruction counter knows powers of two of a nanosecond only; with a dilation an instruction may cost anything.
D. Gupta et al., "To Infinity and Beyond: Time-Warped Network Emulation", NSDI 2006. Every time of a plan, and every
time that is reported, is the machine's.
"""

from dataclasses import dataclass
from pathlib import Path

MODULE = Path("/sys/module/agedrive/parameters/dilation")
PARTS = 1_000_000
TIMERS = (
    *("read_expire", "write_expire", "prio_aging_expire"),
    *("slice_idle_us", "fifo_expire_sync", "fifo_expire_async", "timeout_sync"),
    *("read_lat_nsec", "write_lat_nsec"),
)
"""Times of mq-deadline (milliseconds), of bfq (milliseconds, but for slice_idle_us) and of kyber, in queue/iosched."""


@dataclass(frozen=True)
class Dilation:
    """Converts times of the guest and of the machine into each other."""

    factor: float = 1.0
    """Seconds of the machine for one of the guest."""

    def machine_seconds(self, nanoseconds: float) -> float:
        """Return a time on the guest's clock as seconds of the machine: to the microsecond, as a result promises."""
        return round(nanoseconds * self.factor / 1e9, 6)

    def guest_seconds(self, seconds: float) -> float:
        """Return a time of the machine as seconds on the guest's clock."""
        return seconds / self.factor

    def guest_units(self, units: int) -> int:
        """Return a time of the machine on the guest's clock, in whole units, one at least of any that is not 0."""
        return max(1, round(self.guest_seconds(units))) if units else 0

    def tell_module(self) -> None:
        """Have the modelled drives take the machine's time."""
        MODULE.write_text(str(round(self.factor * PARTS)))

    def scale_scheduler(self, queue: Path) -> None:
        """Have the I/O scheduler of a drive take the machine's time."""
        if self.factor != 1:
            for place in (queue / "iosched" / name for name in TIMERS):
                if place.exists():
                    place.write_text(str(self.guest_units(int(place.read_text()))))
