"""Kernels: a spec resolved and unpacked, its modules in order, its initramfs."""

from agelab.kernel.bundle import DEFAULT, Kernel, available, resolve
from agelab.kernel.modules import MissingModule, Module, Modules

__all__ = ["DEFAULT", "Kernel", "MissingModule", "Module", "Modules", "available", "resolve"]
