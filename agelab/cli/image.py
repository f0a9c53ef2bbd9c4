"""``agelab image``: sealed guest images."""

from collections.abc import Sequence

import click

from agelab import kernel as kernels
from agelab.base.errors import InputError
from agelab.cli.options import json_option, open_store, print_blocks, print_json, say
from agelab.machine import image as images
from agelab.present.view.artefacts import images_blocks, images_json

kernel_option = click.option(
    "--kernel",
    "spec",
    default=kernels.DEFAULT,
    show_default=False,
    metavar="SPEC",
    help="The kernel to boot; see agelab kernel --help.",
)


@click.group()
def image() -> None:
    """Build and list guest images.

    An image is a root, a kernel and an initramfs, with which a guest has made, mounted and checked each filesystem.
    """


@image.command()
@kernel_option
@click.option(
    "--filesystem",
    "more",
    multiple=True,
    metavar="NAME",
    help="Also serve this filesystem, which usual images do not have; may be given again.",
)
@click.option("--refresh", is_flag=True, help="Use the newest kernel and packages that the mirror has now.")
@json_option
def build(spec: str, more: tuple[str, ...], refresh: bool, as_json: bool) -> None:
    """Build the image of a kernel, unless the store has it already."""
    from agelab.machine import dkms
    from agelab.machine.image import root

    store, filesystems = open_store(), root.served(root.definition(), more)
    kernel = kernels.resolve(spec, store, refresh=refresh, progress=say)
    kernel = dkms.with_modules(kernel, filesystems, store, say)
    _show([images.build(kernel, store, filesystems, refresh=refresh, progress=say)], as_json)


@image.command()
@kernel_option
@json_option
def show(spec: str, as_json: bool) -> None:
    """Show the images of a kernel that are in the store, newest last, with their filesystems."""
    store = open_store()
    kernel = kernels.resolve(spec, store)
    built = images.find(kernel, store)
    if not built:
        raise InputError(f"the store has no image of {kernel.spec}", hint="make it with: agelab image build")
    _show(built, as_json)


def _show(built: Sequence[images.Image], as_json: bool) -> None:
    print_json(images_json(built)) if as_json else print_blocks(images_blocks(built))
