"""The options of a run, from their table: rows of a page, and make's variables."""

import re
from collections.abc import Iterator

from agelab.runner.request.options import OPTIONS, Level, RunOptions, make_variable, option, options_of
from docs.make.generated.markdown import table

LEVELS: tuple[Level, ...] = ("calibrate", "sweep", "run")
CHANGES = {
    "cells": "cells",
    "digits": "digits",
    "shown": "digits",
    "data": "digits",
    "effort": "time",
    "nothing": "-",
}
TAKEN = {
    "bisect": "plan, calibrate, sweep, age, bisect",
    "calibrate": "plan, calibrate, sweep, age",
    "sweep": "sweep",
    "run": "",
}


def table_of_options() -> str:
    """Write a table of all options with what they change, and which verbs take them."""
    return table(
        ["make", "agelab run", "", "changes", "also of"],
        (
            [
                f"`{variable}=`",
                f"`{option(name)}`",
                re.sub(r"docs/((?:[\w-]+/)*([\w-]+)\.md)", r"[\2](\1)", OPTIONS[name].help).replace("<", "\\<"),
                CHANGES[OPTIONS[name].affects],
                TAKEN[OPTIONS[name].level],
            ]
            for name, variable in _variables("run").items()
        ),
    )


def make_text() -> str:
    """Write options.mk: for each level its variables, and the arguments that they are."""
    return "\n".join(_make_lines())


def _make_lines() -> Iterator[str]:
    yield "# Made of the table of RunOptions by make format."
    before, told = "", set[str]()
    for level in LEVELS:
        own = {name: variable for name, variable in _variables(level).items() if name not in told}
        more = f"$(OPTIONS_{before}) " if before else ""
        yield f"OPTIONS_{level} := {more}{' '.join(own.values())}"
        yield f"ASKED_{level} ={f' $(ASKED_{before})' if before else ''} \\"
        yield from (f"  {_argument(name, variable)} \\" for name, variable in own.items())
        yield ""
        before, told = level, told | {*own}


def _variables(level: Level) -> dict[str, str]:
    """Field to make's variable."""
    return {name: make_variable(name) for name in options_of(level) if make_variable(name)}


def _argument(name: str, variable: str) -> str:
    """Return what a shell makes of a variable: the option, where it is set."""
    value = f"$${variable}$(PATCHED)" if name == "kernel" else f"$${variable}"
    said = option(name) if RunOptions.model_fields[name].annotation is bool else f'{option(name)} "{value}"'
    return f"$${{{variable}:+{said}}}"
