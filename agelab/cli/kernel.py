"""``agelab kernel``: the kernels that guests can boot."""

import shlex
from typing import Any

import click

from agelab import kernel as kernels
from agelab.base.errors import InputError
from agelab.cli.options import json_option, open_store, print_blocks, print_json, say
from agelab.machine.drive import module
from agelab.present.view import artefacts


@click.group()
def kernel() -> None:
    """Fetch, build and show guest kernels; agelab list kernels lists them.

    A kernel is named by a spec: 6.1 (Debian's newest of that version, in whichever suite), 6.1.0-50 (exactly that
    one), debian:trixie (the one of that suite), deb:<files> (.deb files of one kernel), image:<bzImage>,<directory of
    its modules>, or one that is built: tree:<path>[@<git ref>], source:<version>, recipe:<name>. See docs/kernels.md.
    """


@kernel.command()
@click.argument("specs", nargs=-1, metavar="[SPEC]...")
@click.option("--refresh", is_flag=True, help="Ask the mirror again what each SPEC stands for.")
@json_option
def fetch(specs: tuple[str, ...], refresh: bool, as_json: bool) -> None:
    """Fetch each kernel SPEC (the default kernel when none is given), and build the modelled drive's module for it."""
    store = open_store()
    rows: list[dict[str, Any]] = []
    for spec in specs or (kernels.DEFAULT,):
        kernel = kernels.resolve(spec, store, refresh=refresh, progress=say)
        try:
            built, why = str(module.obtain(kernel, store, say)), ""
        except module.NoHeaders as error:
            built, why = "", str(error)
        rows.append({**artefacts.kernel_json(kernel), "drive_module": built or None, "why_no_module": why or None})
        if not as_json:
            version = f", package version {kernel.version}" if kernel.kind != "image" else ""
            click.echo(f"{kernel.spec} is {kernel.release}{version}, in {kernel.directory}")
            click.echo(f"  the drive's module: {built}" if built else f"  with model:none alone: {why}")
    if as_json:
        print_json(rows)


@kernel.command()
@click.argument("spec")
@click.option(
    "--config", "fragments", multiple=True, help="More lines of configuration, from a file, or one: CONFIG_UFS_FS=m."
)
@click.option("--patches", multiple=True, help="A patch, or a directory of patches, applied in order.")
@click.option("--base", help="A distribution's .config in place of the small configuration.")
@json_option
def build(spec: str, fragments: tuple[str, ...], patches: tuple[str, ...], base: str | None, as_json: bool) -> None:
    """Build the kernel SPEC, and the modelled drive's module for it.

    SPEC is tree:<path>[@<git ref>], source:<version of Debian's> or recipe:<name or file>. The options become a part
    of the spec, which the output names: with it any verb finds the kernel again.
    """
    from agelab.kernel.recipes import KINDS

    if spec.partition(":")[0] not in KINDS:
        raise InputError(f"kernel {spec!r} is not built: {', '.join(f'{kind}:' for kind in KINDS)} are")
    words = [("base", base)] if base else []
    words += [("config", path) for path in fragments] + [("patches", path) for path in patches]
    whole = ",".join([spec, *(f"{key}={value}" for key, value in words)])
    store = open_store()
    kernel = kernels.resolve(whole, store, progress=say)
    built = module.obtain(kernel, store, say)
    if as_json:
        print_json({**artefacts.kernel_json(kernel), "drive_module": str(built)})
        return
    click.echo(f"{kernel.spec} is {kernel.release}, in {kernel.directory}")
    click.echo(f"  the drive's module: {built}")
    click.echo(f"  to run with it: --kernel {shlex.quote(kernel.spec)}")


@kernel.command()
@click.argument("spec", default=kernels.DEFAULT)
@json_option
def show(spec: str, as_json: bool) -> None:
    """Show where the kernel SPEC came from, and which filesystems it serves."""
    from agelab.kernel import guest_needs, stored_kernel
    from agelab.scenario.filesystem import Filesystem
    from agelab.scenario.toml_files import read_all

    kernel = kernels.resolve(spec, open_store(), progress=say)
    provenance = stored_kernel.provenance_of(kernel)
    filesystems = read_all("filesystems", Filesystem)
    served = {
        filesystem.name: f"built from {filesystem.module_source.package}"
        if filesystem.module_source
        else guest_needs.describe_support(kernel.modules, filesystem.modules)
        for filesystem in filesystems
    }
    if as_json:
        print_json({**artefacts.kernel_json(kernel), "provenance": provenance, "filesystems": served})
    else:
        print_blocks(artefacts.provenance_blocks(kernel, provenance, filesystems, served))
