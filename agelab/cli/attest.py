"""``agelab attest``: a run's digests, signed."""

from pathlib import Path

import click

from agelab.cli.options import find_runs, open_store
from agelab.cli.types import RUN


@click.command(epilog="Exit: 0; 2 nothing to attest, or no key that signs.")
@click.argument("run", default="latest", type=RUN)
@click.option(
    "--key",
    type=click.Path(path_type=Path),
    default=Path("~/.ssh/id_ed25519"),
    show_default=True,
    help="An SSH key; of a public one the agent has the other half.",
)
def attest(run: str, key: Path) -> None:
    """Print the line of a ledger that attests what RUN (default: the latest) has measured.

    It names each key with its digest, the host and the versions, and is signed with your SSH key (ssh-keygen -Y).
    """
    from agelab.present import ledger

    [found] = find_runs([run])
    store = open_store()
    store.read([store.root / "image" / str(found.plan().provenance.get("image"))], again=True)
    click.echo(ledger.attest(found, key.expanduser()))
