"""``agelab completion``, and what the words of a command line can be completed to (docs/terminal.md).

A shell asks while somebody types: the answer comes from names of files and a few small ones, in no time. Whatever is
wrong with the store, it is no word, and never a message.
"""

import json
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

VARIABLE = "_AGELAB_COMPLETE"
"""In which a shell says that it asks (click's name for it)."""
LOOKED_AT = 20
"""Runs whose kernels are known."""
FILE = "file"
"""A word that the shell completes itself: the name of a file."""

Words = Callable[[str], Iterable[str]]
"""What a word can become, by what there is of it; of what does not begin so the shell hears nothing."""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what makes SHELL complete agelab's words: eval "$(agelab completion bash)"."""
    from agelab.cli import agelab

    chosen = get_completion_class(shell)
    assert chosen is not None
    click.echo(chosen(agelab, {}, "agelab", VARIABLE).source(), nl=False)


def attach(verb: str, command: click.Command) -> None:
    """Give the words of a verb, and of the commands below it, what they can be completed to."""
    for name, below in command.commands.items() if isinstance(command, click.Group) else ():
        attach(f"{verb} {name}", below)
    for param in command.params:
        words = WORDS.get(f"{verb} {param.name}") or WORDS.get(str(param.name))
        if words:
            param.shell_complete = _completer(words)  # type: ignore[method-assign, assignment]


def _completer(words: Words) -> Callable[[click.Context, str], list[CompletionItem[Any]]]:
    def complete(ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        try:
            found = list(dict.fromkeys(words(incomplete)))
        except Exception:  # half a file, a store of somebody else, a name that is none: no word
            return []
        if found == [FILE]:
            return [CompletionItem(incomplete, type=FILE)]
        return [CompletionItem(word) for word in found if word.startswith(incomplete)]

    return complete


def _fixed(*words: str) -> Words:
    return lambda incomplete: words


def _listed(words: Words) -> Words:
    """Several with commas between: the last one is completed, and none is named twice."""

    def complete(incomplete: str) -> Iterator[str]:
        before, comma, last = incomplete.rpartition(",")
        said = before.split(",")
        yield from (f"{before}{comma}{word}" for word in words(last) if word not in said)

    return complete


def _home() -> Path:
    from agelab.store import default_home

    return default_home()


def _names(directory: str) -> list[str]:
    """Of the files of one kind beside the scenarios."""
    from agelab.scenario.toml_files import SCENARIOS

    return sorted(path.stem for path in (SCENARIOS / directory).glob("*.toml"))


def _scenarios(incomplete: str) -> Iterator[str]:
    """The scenarios; of one that is there already its variants, too; a scenario file of one's own."""
    from agelab.scenario.toml_files import SCENARIOS

    if "/" in incomplete or incomplete.startswith("."):
        yield FILE
        return
    for name in _names(""):
        yield name
        if incomplete.startswith(name):
            variants = tomllib.loads((SCENARIOS / f"{name}.toml").read_text())["variants"]
            yield from (f"{name}-{variant['name']}" for variant in variants)


def _runs(incomplete: str = "") -> Iterator[str]:
    """The newest first, as agelab list has them; the newest of all has a name of its own, too."""
    found = sorted((path.parent.name for path in (_home() / "runs").glob("*/plan.json")), reverse=True)
    yield from ["latest", *found] if found else []


def _groups(incomplete: str) -> Iterator[str]:
    """Runs; behind a colon the variants of the one before it."""
    name, colon, _ = incomplete.partition(":")
    if not colon:
        yield from _runs()
        return
    if name == "latest":
        name = (_home() / "runs" / "latest").read_text().strip()
    cells = json.loads((_home() / "runs" / name / "plan.json").read_bytes())["cells"]
    yield from (f"{incomplete.partition(':')[0]}:{cell['variant']}" for cell in cells)


def _kernels(incomplete: str) -> Iterator[str]:
    """Those that the newest runs booted, by their specs; packaged ones in the store; recipes."""
    for name in [one for one in _runs() if one != "latest"][:LOOKED_AT]:
        kernel = json.loads((_home() / "runs" / name / "plan.json").read_bytes()).get("kernel")
        if kernel:
            yield kernel["spec"]
    for path in sorted((_home() / "store" / "kernel").glob("*/manifest.json")):
        package = str(json.loads(path.read_bytes())["inputs"].get("package", ""))
        if package:
            yield "debian:" + package.removeprefix("linux-image-")
    yield from (f"recipe:{name}" for name in _names("kernels"))


def _drives(incomplete: str) -> Iterator[str]:
    yield from ("model:none", *(f"model:{name}" for name in _names("drives")), "file:", "block:", "pci:")


def _artefacts(kind: str) -> Words:
    """The keys in the store, as short as lists show them."""

    def complete(incomplete: str) -> Iterator[str]:
        for path in sorted((_home() / "store" / kind).glob("*/manifest.json")):
            key = path.parent.name
            yield key if len(incomplete) > SHORT_KEY else key[:SHORT_KEY]

    return complete


SHORT_KEY = 12
"""Characters of a key in a list."""


def _stored_kinds(incomplete: str) -> Iterator[str]:
    for path in sorted((_home() / "store").glob("*/*/manifest.json")):
        yield path.parent.parent.name


WORDS: dict[str, Words] = {
    "run name": _scenarios,
    "age name": _scenarios,
    "calibrate name": _scenarios,
    "bisect scenario": lambda incomplete: _names(""),
    "run": _runs,
    "runs": _groups,
    "names": _groups,
    "sides": _groups,
    "kernel": _kernels,
    "spec": _kernels,
    "specs": _kernels,
    "good": _kernels,
    "bad": _kernels,
    "filesystem": _listed(lambda incomplete: _names("filesystems")),
    "machine": lambda incomplete: _names("machines"),
    "disks": _listed(_drives),
    "disk": _artefacts("disk"),
    "disk show key": _artefacts("disk"),
    "disk export key": _artefacts("disk"),
    "disk rm keys": _artefacts("disk"),
    "corpus show key": _artefacts("corpus"),
    "store list kind": _stored_kinds,
    "scale": _fixed("quick", "paper"),
    "defaults": _fixed("period", "today"),
    "layout": _fixed("single", "raid0"),
    "clock": _fixed("virtual", "wall"),
    "corpus": _fixed(FILE),
    "log": _fixed(FILE),
    "control": _fixed(FILE),
}
"""A parameter, behind its verb where others are called the same, and what it can be."""


class Bash(BashComplete):
    """Bash breaks words at colons, which kernels, drives and RUN:variant have: the whole line is asked about."""

    source_template = """\
%(complete_func)s() {
    local IFS=$'\\n' response completion type value
    response=$(env COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_BREAKS="$COMP_WORDBREAKS" \
%(complete_var)s=bash_complete "$1" 2>/dev/null)
    COMPREPLY=()
    for completion in $response; do
        IFS=',' read -r type value <<< "$completion"
        if [[ $type == plain ]]; then
            COMPREPLY+=("$value")
        else
            compopt -o default
        fi
    done
    if [[ ${#COMPREPLY[@]} == 1 && $COMPREPLY == *: ]]; then
        compopt -o nospace
    fi
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that is completed, without the command's own, and as much as there is of that."""
        line = os.environ["COMP_LINE"]
        words = split_arg_string(line)
        incomplete = "" if line[-1:].isspace() else words.pop()
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Without what lies before Bash's last break: that stays on the line."""
        _, incomplete = self.get_completion_args()
        breaks = [sign for sign in ":=" if sign in os.environ.get("COMP_BREAKS", "")]
        kept = max((incomplete.rfind(sign) + 1 for sign in breaks), default=0)
        word = str(item.value)
        if incomplete.startswith("--") and "=" in incomplete:
            word = incomplete[: incomplete.index("=") + 1] + word
        return f"{item.type},{word[kept:]}"


add_completion_class(Bash)
