"""How the domain of a guest ended."""

from enum import Enum


class Ending(Enum):
    """Reason why a domain has ended."""

    STOPPED = "stopped"
    """The guest powered off or reset itself (a panic resets)."""
    WATCHDOG = "watchdog"
    """The hardware watchdog fired: nothing ran in the guest any more."""
    CRASHED = "crashed"
    """QEMU itself ended (a full host filesystem kills it with SIGBUS), was destroyed, or got a signal."""
    DAEMON_LOST = "lost"
    """The libvirt daemon ended, so the guest was ended too."""
    OUTPUT_LOST = "unheard"
    """The host's disk was full and part of the output is lost (agelab.runner.execute.guest_launcher)."""
    TIMEOUT = "timeout"
    """The timeout in host time expired."""
    PAUSED = "paused"
    """The timeout expired while somebody on the host had paused the guest."""
    OUTPUT_TOO_LARGE = "flooded"
    """The guest wrote more than the limit (agelab.vm.guest_output)."""
