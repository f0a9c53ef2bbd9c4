"""QEMU as an input: Debian's package of the guest's suite, unpacked into the store and run with its own libraries."""

from agelab.machine.qemu.emulator import (
    SCHEDULE,
    STOP,
    SUITE,
    SUITE_OF_SEVERAL,
    TURNS,
    Emulator,
    find,
    obtain,
    obtain_library,
    question,
    require_processor,
    resolve_packages,
)

__all__ = [
    "SCHEDULE",
    "STOP",
    "SUITE",
    "SUITE_OF_SEVERAL",
    "TURNS",
    "Emulator",
    "find",
    "obtain",
    "obtain_library",
    "question",
    "require_processor",
    "resolve_packages",
]
