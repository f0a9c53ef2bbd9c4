"""Images: the root that guests boot, sealed with a kernel when both have proved every filesystem."""

from agelab.image.packer import DoesNotBoot
from agelab.image.proof import Proof
from agelab.image.sealed_image import Image, build, find

__all__ = ["DoesNotBoot", "Image", "Proof", "build", "find"]
