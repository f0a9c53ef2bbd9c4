"""``agelab ledger``: what signed lines of many hosts say together."""

from pathlib import Path

import click

from agelab.cli.options import json_option, print_json


@click.group()
def ledger() -> None:
    """Check ledgers: lines that agelab attest prints."""


@ledger.command(
    epilog="Exit: 0; 1 a key has two digests, or a signature is wrong; 2 a file is no ledger.",
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--signers",
    type=click.Path(path_type=Path),
    default=None,
    help="Count these people's lines alone: ALLOWED SIGNERS of ssh-keygen(1).",
)
@json_option
def check(files: tuple[Path, ...], signers: Path | None, as_json: bool) -> int:
    """Say how many hosts have found each key of FILES, and where they disagree."""
    from agelab.present import ledger
    from agelab.present.view.ledger import as_document, print_check

    found = ledger.check(files, signers)
    if as_json:
        print_json(as_document(found))
    else:
        print_check(found)
    return 1 if found.disagreements or found.refused else 0
