"""``agelab disk``: the stored disks."""

import shlex
from pathlib import Path
from typing import Any, Literal

import click

from agelab.base.errors import InputError
from agelab.cli.options import json_option, open_store, print_blocks, print_json
from agelab.present.view.artefacts import disk_blocks, disk_json, disks_blocks
from agelab.store import disk_import, stored_disk

SCHEMA = 1


@click.group()
def disk() -> None:
    """Show, export, import and remove stored disks; agelab list disks lists them.

    They come from agelab age, agelab run --keep-disk and agelab disk import; agelab run --disk KEY starts from one.
    """


@disk.command()
@click.argument("key")
@json_option
def show(key: str, as_json: bool) -> None:
    """Show what the disk KEY (or its beginning) is, and verify its content."""
    stored = stored_disk.find(open_store(), key)
    if as_json:
        stored.verify()
        print_json({"schema": SCHEMA, **disk_json(stored), "inputs": stored.inputs})
    else:
        print_blocks(disk_blocks(stored))


@disk.command()
@click.argument("key")
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--format", "image_format", type=click.Choice(["raw", "qcow2"]))
def export(key: str, target: Path, image_format: Any) -> None:
    """Write the disk KEY to the image file TARGET, and its recipe beside it.

    Anyone can mount the image: mount -o loop,ro TARGET /mnt. A RAID-0 disk makes two, one for each member. Without
    --format a name that ends in .qcow2 makes a qcow2 image, any other a raw one.
    """
    chosen: Literal["raw", "qcow2"] = image_format or ("qcow2" if target.suffix == ".qcow2" else "raw")
    for path in stored_disk.export(stored_disk.find(open_store(), key), target, chosen):
        click.echo(path)


@disk.command("import")
@click.argument("images", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--filesystem", required=True, help="The filesystem on it.")
@click.option(
    "--defaults", type=click.Choice(["period", "today"]), default="today", help="Which defaults to mount it with."
)
def take_in(images: tuple[Path, ...], filesystem: str, defaults: Any) -> None:
    """Store your own aged filesystem: an image file of it, raw or qcow2.

    Two images are the members of a RAID-0 array that agelab exported.
    """
    from agelab.scenario import selection

    selection.filesystem(filesystem)
    if len(images) > 2:
        raise InputError(f"{len(images)} images: a disk is one, or two in RAID-0")
    options = ["--filesystem", filesystem, "--defaults", defaults, *map(str, images)]
    command = shlex.join(["agelab", "disk", "import", *options])
    layout: Any = "raid0" if len(images) == 2 else "single"
    imported = disk_import.import_images(open_store(), images, filesystem, layout, defaults, command)
    print_blocks(disks_blocks([imported]))


@disk.command()
@click.argument("keys", nargs=-1, required=True)
def rm(keys: tuple[str, ...]) -> None:
    """Remove the disks KEYS from the store."""
    store = open_store()
    artefacts = [stored_disk.find_artefact(store, key) for key in keys]
    commands = {disk.key: disk.recipe.command for disk in stored_disk.list_disks(store)}
    for artefact in {artefact.key: artefact for artefact in artefacts}.values():
        stored_disk.remove(artefact)
        again = f": {commands[artefact.key]} makes it again" if artefact.key in commands else ""
        click.echo(f"removed {artefact.key[: stored_disk.SHORT_KEY]}{again}")
