"""What a shell completes: verbs, options and their words from a cached table, names from the data files and the store.

Loading the verbs takes longer than whoever presses Tab waits; the table has what they say, and is made again when their
code changes.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from agelab.base import catalogue, fileio, hashing
from agelab.base.errors import AgelabError
from agelab.base.places import PACKAGE
from agelab.base.verbs import VERBS

ASKED_BY = "_AGELAB_COMPLETE"
"""The variable that a shell sets when it asks for words."""
SHELLS = ("bash", "zsh", "fish")
FILE = [CompletionItem("", type="file")]
"""What lets the shell complete a file."""
OWN_FILES = ("corpus", "log", "control", "suite", "config", "fragments", "patches", "base")
"""Options and arguments that name a file, and take other words, too."""

Table = Mapping[str, Any]
"""Of a command: its help, commands below it, options with the kind of their values, and the kind of its arguments."""


@click.command(epilog="Exit: 0; 2 wrong input.")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print what lets SHELL complete verbs, options and names.

    In bash (4.4 and newer) and zsh it goes into ~/.bashrc and ~/.zshrc as eval "$(agelab completion bash)", in zsh
    after compinit; in fish into ~/.config/fish/completions/agelab.fish.
    """
    click.echo(_words_of(shell).source())


def answer(commands: click.Group, asked: str) -> bool:
    """Answer a shell that asks for the words that may come next, or how to ask. Return False for an unknown one."""
    shell, _, what = asked.partition("_")
    if shell not in SHELLS:
        return False
    asking = _words_of(shell)
    if what != "complete":
        click.echo(asking.source())
        return True
    words, begun = asking.get_completion_args()
    for item in _items(_table(commands), words, begun):
        if item.type != "plain" or item.value.startswith(begun):
            click.echo(asking.format_completion(item))
    return True


def _words_of(shell: str) -> ShellComplete:
    """Return click's side of a shell's completion."""
    kind = get_completion_class(shell)
    assert kind is not None, "click knows it"
    return kind(click.Command("agelab"), {}, "agelab", ASKED_BY)


# ---- the table ----


def _table(commands: click.Group) -> Table:
    """Return the table of the verbs: the cached one, or a new one where their code is another."""
    code = [*(PACKAGE / "cli").glob("*.py"), *(PACKAGE / "runner" / "request").glob("*.py")]
    key = hashing.key_of(sorted([str(path), path.stat().st_mtime_ns] for path in code))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agelab" / "completion.json"
    with suppress(OSError, ValueError, LookupError, TypeError):  # none yet, or a damaged one
        kept = json.loads(fileio.read_text(cache))
        if kept["key"] == key:
            return kept["table"]  # type: ignore[no-any-return]
    from agelab.base import atomic  # the usual answer needs none of it

    table = _described(commands, click.Context(commands, info_name="agelab"))
    with suppress(OSError, AgelabError):  # a cache that cannot be written is made each time
        cache.parent.mkdir(parents=True, exist_ok=True)
        atomic.write(cache, json.dumps({"key": key, "table": table}).encode())
    return table


def _described(command: click.Command, context: click.Context) -> dict[str, Any]:
    below = command.list_commands(context) if isinstance(command, click.Group) else []
    commands = {}
    for name in below:
        assert isinstance(command, click.Group)
        if inner := command.get_command(context, name):
            commands[name] = _described(inner, click.Context(inner, context, name))
    options: dict[str, Any] = {}
    arguments = []
    for param in command.get_params(context):
        if isinstance(param, click.Option):
            values = None if param.is_flag or param.count else _kind(param)
            options |= {name: [values, param.help or ""] for name in param.opts}
        else:
            arguments.append(_kind(param))
    return {"help": command.get_short_help_str(60), "commands": commands, "options": options, "arguments": arguments}


def _kind(param: click.Parameter) -> Any:
    """Return the values of an option or an argument: a list of words, or the kind of their names."""
    if isinstance(param.type, click.Choice):
        return list(param.type.choices)
    name = param.metavar if isinstance(param, click.Argument) and param.metavar else (param.name or "")
    if isinstance(param.type, click.Path) or param.name in OWN_FILES:
        return "file"
    return re.sub(r"[^a-z]", "", name.lower().partition("-")[0])


# ---- what may come next ----


def _items(table: Table, words: Sequence[str], begun: str) -> Iterator[CompletionItem]:
    """Yield what may come after the words."""
    position, at = 0, 0
    while position < len(words):
        word = words[position]
        position += 1
        if word in table["commands"]:
            table, at = table["commands"][word], 0
        elif word.startswith("-"):
            takes_value = "=" not in word and word in table["options"] and table["options"][word][0] is not None
            if takes_value and position == len(words):
                yield from _named(table["options"][word][0], begun)
                return
            position += takes_value
        else:
            at += 1
    if begun.startswith("-"):
        yield from (CompletionItem(name, help=text) for name, (_, text) in table["options"].items())
        return
    for name, command in table["commands"].items():
        yield CompletionItem(name, help=command["help"])
    if arguments := table["arguments"]:
        yield from _named(arguments[min(at, len(arguments) - 1)], begun)


def _named(kind: Any, begun: str) -> Iterator[CompletionItem]:
    """Yield the names of a kind; of a list with commas those that may end it."""
    if kind == "file":
        yield from FILE
        return
    before, comma, _ = begun.rpartition(",")
    names = kind if isinstance(kind, list) else NAMES[kind]() if kind in NAMES else ()
    with suppress(AgelabError, OSError):
        yield from (CompletionItem(before + comma + name) for name in names)
    if kind in ("scenario", "run") and not any(True for name in names if begun and name.startswith(begun)):
        yield from FILE


def _scenarios() -> Iterator[str]:
    """Yield scenarios, each with its variants behind it."""
    import tomllib

    for name in catalogue.names("scenarios"):
        yield name
        variants = tomllib.loads(fileio.read_text(catalogue.FILES["scenarios"] / f"{name}.toml"))["variants"]
        yield from (f"{name}-{variant if isinstance(variant, str) else variant['name']}" for variant in variants)


def _runs() -> Iterable[str]:
    from agelab.store.home import default_home

    return ["latest", *sorted((path.parent.name for path in default_home().glob("runs/*/plan.json")), reverse=True)]


def _kernels() -> Iterator[str]:
    """Yield the releases of Debian's kernels in the store."""
    from agelab.store.home import default_home

    for path in default_home().glob("store/kernel/*/manifest.json"):
        package = json.loads(fileio.read_text(path)).get("inputs", {}).get("package", "")
        yield package.removeprefix("linux-image-").removesuffix("-amd64")


def _files(kind: str, before: str = "") -> Callable[[], Iterable[str]]:
    return lambda: [before + name for name in catalogue.names(kind)]


NAMES: Mapping[str, Callable[[], Iterable[str]]] = {
    "scenario": _scenarios,
    "run": _runs,
    "ab": _runs,
    "kernel": _kernels,
    "good": _kernels,
    "bad": _kernels,
    "filesystem": _files("filesystems"),
    "machine": _files("machines"),
    "layout": _files("layouts"),
    "disks": _files("drives", "model:"),
    "kind": _files("corpora"),
    "verbcommand": lambda: VERBS,
    "what": lambda: ["runs", "disks", "kernels", "metrics", *catalogue.FILES],
}
"""What lists the names of a kind, by the name of the argument or option that takes one."""
