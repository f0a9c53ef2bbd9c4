"""Guest images on a terminal and as JSON."""

from collections.abc import Sequence
from typing import Any

import click

from agelab.image import Image


def print_images(images: Sequence[Image]) -> None:
    """Print each image with what it proved in a guest."""
    for one in images:
        click.echo(f"image {one.key[:12]} of {one.kernel.release} ({one.kernel.version})")
        click.echo(f"  content  {one.content}")
        click.echo(f"  in       {one.artefact.directory}")
        for (filesystem, defaults), proof in one.proof.items():
            reason = f": {proof.reason}" if proof.reason else ""
            click.echo(f"  {filesystem:<10} {defaults:<7} {proof.status}{reason}")


def images_json(images: Sequence[Image]) -> list[dict[str, Any]]:
    """Return each image's identity and description."""
    return [{"key": one.key, "content": one.content, **one.description.model_dump()} for one in images]
