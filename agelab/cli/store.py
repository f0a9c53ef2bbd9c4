"""``agelab store``: the disk that the store takes, and less of it."""

import click

from agelab.base.errors import unknown
from agelab.cli.options import SIZE, json_option, open_store, print_blocks, print_json


@click.group(invoke_without_command=True)
@click.pass_context
def store(context: click.Context) -> None:
    """List what the store holds, and remove what was used least recently (docs/howto/cache.md).

    Without a command: agelab store list.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_items)


@store.command("list")
@click.option("--kind", help="Each artefact of this kind (image, kernel, ...), and what names it.")
@json_option
def list_items(kind: str | None = None, as_json: bool = False) -> None:
    """List number, size and last use of what the store holds, by kind."""
    from agelab.present.view.artefacts import items_blocks, items_json, kinds, usage_blocks, usage_json
    from agelab.store.usage import survey

    usage = survey(open_store())
    if kind is None:
        print_json(usage_json(usage)) if as_json else print_blocks(usage_blocks(usage))
        return
    by_kind = kinds(usage)
    if kind not in by_kind:
        raise unknown("kind", kind, list(by_kind) or ["none yet"])
    print_json(items_json(usage, by_kind[kind])) if as_json else print_blocks(items_blocks(usage, by_kind[kind]))


@store.command(epilog="Exit: 0 it fits; 1 what must stay is more than SIZE alone; 2 wrong input.")
@click.option("--to", "limit", required=True, metavar="SIZE", type=SIZE, help="The most it may take: 20G.")
@click.option("--dry-run", is_flag=True, help="Remove nothing: say what would be removed.")
@json_option
def prune(limit: int, dry_run: bool, as_json: bool) -> int:
    """Remove artefacts and downloads, the least recently used first, until the store takes no more than SIZE.

    It keeps what a run, a stored disk or a process uses, all stored disks, and all runs but those of agelab crash.
    """
    from agelab.present.view.artefacts import pruned_blocks, pruned_json
    from agelab.store import usage as store_usage

    pruned = store_usage.prune(open_store(), limit, dry_run=dry_run)
    if as_json:
        print_json(pruned_json(pruned, limit, dry_run=dry_run))
    else:
        print_blocks(pruned_blocks(pruned, limit, dry_run=dry_run))
    return int(pruned.left > limit)
