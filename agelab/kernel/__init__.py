"""Kernels: a spec resolved and unpacked, its modules in order, its initramfs."""

from agelab.kernel.bundle import DEFAULT, Kernel
from agelab.kernel.modules import MissingModule, MissingOption, Module, Modules
from agelab.kernel.packaged import available
from agelab.kernel.spec import canonical, resolve

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
