"""Corpora on a terminal and as JSON."""

from collections.abc import Sequence
from typing import Any

import click

from agelab.corpus import Corpus
from agelab.view.terminal import Head, open_console, print_facts, print_table

SHORT = 12
"""Digits of a key that are shown."""


def print_corpora(corpora: Sequence[Corpus]) -> None:
    """Print one line for each corpus."""
    rows = [
        (one.key[:SHORT], f" {one.size / 1e6:8.1f} MB ", f" {one.files:7d} files ", one.description)
        for one in corpora
    ]
    if rows:
        heads: list[Head] = [("", "left"), ("", "left"), ("", "left"), ("", "wrapped")]
        print_table(open_console(), heads, rows, named=False)
    else:
        click.echo("none yet; a run makes what it needs, or: agelab corpus make")


def print_corpus(one: Corpus) -> None:
    """Print what is known of a corpus."""
    print_facts(
        {
            name.replace("_bytes", ""): f"{value} bytes" if name in ("size", "content_bytes") else value
            for name, value in corpus_json(one).items()
        }
    )


def corpus_json(one: Corpus) -> dict[str, Any]:
    """Return what is known of a corpus; sizes in bytes."""
    return {
        "key": one.key,
        "description": one.description,
        "image": str(one.image),
        "size": one.size,
        "sha256": one.sha256,
        "files": one.files,
        "content_bytes": one.content_bytes,
    }
