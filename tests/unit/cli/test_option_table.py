"""What is made of the table of a run's options: make's variables and the table of docs/options.md.

``AGELAB_REGENERATE=1 pytest tests/unit/cli/test_option_table.py`` writes both anew; read the difference.
"""

import os
import re
from pathlib import Path

import pytest

from agelab.runner.request import options as table
from agelab.runner.request.options import OPTIONS, RunOptions, make_variable, option, options_of

PROJECT = Path(__file__).parents[3]
MAKE, PAGE = PROJECT / "options.mk", PROJECT / "docs/options.md"
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


def variables(level: table.Level) -> dict[str, str]:
    """Field to make's variable."""
    return {name: make_variable(name) for name in options_of(level) if make_variable(name)}


def argument(name: str, variable: str) -> str:
    """What a shell makes of a variable: the option, where it is set."""
    value = f"$${variable}$(PATCHED)" if name == "kernel" else f"$${variable}"
    said = option(name) if RunOptions.model_fields[name].annotation is bool else f'{option(name)} "{value}"'
    return f"$${{{variable}:+{said}}}"


def make_text() -> str:
    """options.mk: for each level its variables, and the arguments that they are."""
    lines = [
        "# Made of the table of RunOptions: AGELAB_REGENERATE=1 .venv/bin/pytest tests/unit/cli/test_option_table.py"
    ]
    before, told = "", set[str]()
    for level in ("calibrate", "sweep", "run"):
        own = {name: variable for name, variable in variables(level).items() if name not in told}
        more = f"$(OPTIONS_{before}) " if before else ""
        lines += [f"OPTIONS_{level} := {more}{' '.join(own.values())}"]
        lines += [f"ASKED_{level} ={f' $(ASKED_{before})' if before else ''} \\"]
        lines += [f"  {argument(name, variable)} \\" for name, variable in own.items()]
        lines += [""]
        before, told = level, told | {*own}
    return "\n".join(lines)


def row(name: str, variable: str) -> str:
    """An option's row in docs/options.md."""
    about = OPTIONS[name]
    linked = re.sub(r"docs/((?:[\w-]+/)*([\w-]+)\.md)", r"[\2](\1)", about.help).replace("<", "\\<")
    cells = (f"`{variable}=`", f"`{option(name)}`", linked, CHANGES[about.affects], TAKEN[about.level])
    return f"| {' | '.join(cells)} |"


def page_text() -> str:
    """The table of docs/options.md."""
    head = ["| make | agelab run | | changes | also of |", "|---|---|---|---|---|"]
    return "\n".join([*head, *(row(name, variable) for name, variable in variables("run").items())])


@pytest.mark.parametrize(("path", "made"), [(MAKE, make_text), (PAGE, page_text)])
def test_make_and_the_page_have_the_options_of_the_table(path: Path, made: type[str]) -> None:
    whole = made()
    if path == PAGE:
        before, mark, after = path.read_text().partition("<!-- options -->\n")
        whole = before + mark + whole + after[after.index("\n<!-- end -->") :]
    if os.environ.get("AGELAB_REGENERATE"):
        path.write_text(whole)
    assert path.read_text() == whole


def test_no_option_is_called_as_another() -> None:
    names = [option(name) for name, about in OPTIONS.items() if about.help]
    variables_ = [variable for name in OPTIONS if (variable := make_variable(name))]
    assert len({*names}) == len(names) and len({*variables_}) == len(variables_)


def test_a_replay_takes_no_path_of_another_host() -> None:
    assert table.PATHS <= table.NOT_REPLAYED
    assert not {"fail", "layout", "boot"} & table.NOT_REPLAYED
    assert {"kernel", "seeds", "jobs", "ask", "until_decided", "keep_disk"} <= table.NOT_REPLAYED
