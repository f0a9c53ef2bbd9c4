"""QEMU as an input: Debian's package of the guest's suite, unpacked into the store and run with its own libraries."""

from agelab.machine.qemu.emulator import (
    SUITE,
    SUITE_OF_SEVERAL,
    Emulator,
    find,
    obtain,
    question,
    require_processor,
    resolve_packages,
    schedule_library,
    stop_library,
    turns_library,
)

__all__ = [
    "SUITE",
    "SUITE_OF_SEVERAL",
    "Emulator",
    "find",
    "obtain",
    "question",
    "require_processor",
    "resolve_packages",
    "schedule_library",
    "stop_library",
    "turns_library",
]
