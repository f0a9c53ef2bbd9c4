"""Images: the root that guests boot, sealed with a kernel when both have proved every filesystem."""

from agelab.image.proof import Proof
from agelab.image.sealed import Image, build, find

__all__ = ["Image", "Proof", "build", "find"]
