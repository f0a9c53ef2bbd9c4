"""``agelab kernel``: the kernels that guests can boot."""

import click

from agelab.cli.common import json_option, open_store, print_json


@click.group()
def kernel() -> None:
    """Fetch and list guest kernels.

    A kernel is named by a spec: debian:6.1 (the newest of that version in this host's suites),
    debian:6.1.0-56-amd64 (exactly that one) or debian:trixie (the one of that suite).
    """


@kernel.command("list")
@click.option("--refresh", is_flag=True, help="Ask the mirror what there is now.")
@json_option
def list_kernels(refresh: bool, as_json: bool) -> None:
    """List the kernels of the mirror; those in the store are marked."""
    from agelab import kernel as kernels

    store = open_store()
    stored = {
        artefact.manifest.inputs["package"].removeprefix("linux-image-"): artefact.manifest.inputs["version"]
        for artefact in store.all("kernel")
    }
    found = {**kernels.available(store, refresh=refresh), **stored}
    if as_json:
        print_json(
            [
                {"spec": f"debian:{release}", "version": version, "stored": release in stored}
                for release, version in sorted(found.items())
            ]
        )
        return
    for release, version in sorted(found.items()):
        click.echo(f"{'*' if release in stored else ' '} debian:{release:<34} {version}")
    click.echo("* in the store")


@kernel.command()
@click.argument("spec", default="")
@click.option("--refresh", is_flag=True, help="Ask the mirror again what SPEC stands for.")
@json_option
def fetch(spec: str, refresh: bool, as_json: bool) -> None:
    """Fetch and unpack the kernel SPEC (the default kernel when none is given)."""
    from agelab import kernel as kernels

    found = kernels.resolve(spec or kernels.DEFAULT, open_store(), refresh=refresh)
    if as_json:
        print_json(
            {
                "spec": found.spec,
                "release": found.release,
                "version": found.version,
                "key": found.key,
                "directory": str(found.directory),
            }
        )
        return
    click.echo(f"{found.spec} is {found.release}, package version {found.version}, in {found.directory}")
