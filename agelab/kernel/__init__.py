"""Kernels: specs, builds, modules and the initramfs."""

from agelab.kernel.debian_kernel import available
from agelab.kernel.modules import MissingModule, MissingOption, Module, Modules
from agelab.kernel.spec import canonical, resolve
from agelab.kernel.stored_kernel import DEFAULT, Kernel

__all__ = [
    "DEFAULT",
    "Kernel",
    "MissingModule",
    "MissingOption",
    "Module",
    "Modules",
    "available",
    "canonical",
    "resolve",
]
