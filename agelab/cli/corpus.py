"""``agelab corpus``: make and list the seeded input data."""

from pathlib import Path

import click
from pydantic import ValidationError

from agelab.base.errors import InputError, unknown
from agelab.base.places import corpus_names
from agelab.cli.options import SIZE, json_option, open_store, print_blocks, print_json
from agelab.data.corpus import Corpus, CorpusSpec, corpus_from_user
from agelab.data.corpus import make as make_corpus
from agelab.data.corpus.artefact import list_corpora as stored_corpora
from agelab.present.view.artefacts import corpora_blocks, corpus_blocks, corpus_json


@click.group()
def corpus() -> None:
    """Make and list the input data of scenarios: seeded stand-ins, or your own."""


@corpus.command()
@click.option("--kind", default="debian-iso", help=f"Which stand-in: {', '.join(corpus_names())}.")
@click.option("--bytes", "size", type=SIZE, default="40M", help="Size of its files together.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=1, help="The corpus seed.")
@click.option("--from", "source", type=click.Path(path_type=Path), help="Your own ISO image, directory or tar archive.")
@json_option
def make(kind: str, size: int, seed: int, source: Path | None, as_json: bool) -> None:
    """Make a corpus, unless it is there already, and show it."""
    store = open_store()
    given = click.get_current_context().get_parameter_source
    if source:
        for name in ("kind", "size", "seed"):
            if given(name) is click.core.ParameterSource.COMMANDLINE:
                raise InputError(f"--{name.replace('size', 'bytes')} has no meaning for your own data (--from)")
        contents = corpus_from_user(source, store, say=lambda line: click.echo(f"agelab: {line}", err=True))
    else:
        try:
            spec = CorpusSpec(kind=kind, bytes=size, seed=seed)
        except ValidationError as error:
            first = error.errors()[0]
            problem = first["msg"].removeprefix("Value error, ")
            raise InputError(f"--{first['loc'][0]} {first['input']}: {problem}") from error
        contents = make_corpus(spec, store)
    _show(contents, as_json)


@corpus.command("list")
@json_option
def list_corpora(as_json: bool) -> None:
    """List the corpora in the store, oldest first."""
    corpora = stored_corpora(open_store())
    if as_json:
        print_json({"schema": 1, "corpora": [corpus_json(corpus) for corpus in corpora]})
    else:
        print_blocks(corpora_blocks(corpora))


@corpus.command()
@click.argument("key")
@json_option
def show(key: str, as_json: bool) -> None:
    """Show one corpus, named by the beginning of its KEY."""
    corpora = stored_corpora(open_store())
    matching = [corpus for corpus in corpora if corpus.key.startswith(key)]
    if not matching:
        raise unknown("corpus", key, [corpus.key[:12] for corpus in corpora] or ["none yet"])
    if len(matching) > 1:
        raise InputError(f"{key!r} begins the key of {len(matching)} corpora", hint="give more of it")
    _show(matching[0], as_json)


def _show(corpus: Corpus, as_json: bool) -> None:
    print_json({"schema": 1, **corpus_json(corpus)}) if as_json else print_blocks(corpus_blocks(corpus))
