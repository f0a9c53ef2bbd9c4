"""Sealed images: the root and kernel that guests boot, with a proof of every filesystem."""

from agelab.machine.image.packer import DoesNotBoot
from agelab.machine.image.proof import Proof
from agelab.machine.image.sealed_image import Image, build, find

__all__ = ["DoesNotBoot", "Image", "Proof", "build", "find"]
