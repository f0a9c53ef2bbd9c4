"""Kernels: specs, builds, modules and the initramfs."""

from agelab.kernel.debian_kernel import available
from agelab.kernel.modules import MissingModule, MissingOption, Module, Modules
from agelab.kernel.spec import ask_packages, canonical, require_spec, resolve
from agelab.kernel.stored_kernel import DEFAULT, Kernel, NamedKernel

__all__ = [
    "DEFAULT",
    "Kernel",
    "MissingModule",
    "MissingOption",
    "Module",
    "Modules",
    "NamedKernel",
    "ask_packages",
    "available",
    "canonical",
    "require_spec",
    "resolve",
]
