"""``agelab completion``: completion of command lines in shells; agelab/cli/types.py has the words."""

import os
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
"""The variable that a shell sets when it asks for words (click's name for it)."""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what makes SHELL complete agelab's words: eval "$(agelab completion bash)"."""
    from agelab.cli import agelab

    chosen = get_completion_class(shell)
    assert chosen is not None
    click.echo(chosen(agelab, {}, "agelab", VARIABLE).source(), nl=False)


class Bash(BashComplete):
    """Completion in Bash from the whole line: Bash breaks words at colons, as in kernels, drives and RUN:variant."""

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
        """Return the words after the command's name, and the incomplete one."""
        line = os.environ["COMP_LINE"]
        words = split_arg_string(line)
        incomplete = "" if line[-1:].isspace() else words.pop()
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Cut what lies before Bash's last break: it stays on the line."""
        _, incomplete = self.get_completion_args()
        breaks = [sign for sign in ":=" if sign in os.environ.get("COMP_BREAKS", "")]
        kept = max((incomplete.rfind(sign) + 1 for sign in breaks), default=0)
        word = str(item.value)
        if incomplete.startswith("--") and "=" in incomplete:
            word = incomplete[: incomplete.index("=") + 1] + word
        return f"{item.type},{word[kept:]}"


add_completion_class(Bash)
