"""The options of the verbs that run cells, from the table of ``RunOptions``, and running with progress shown."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from agelab.cli.options import JOBS, open_store
from agelab.machine.disk import DriveClaim
from agelab.present.view.progress import show_progress
from agelab.results.run_directory import RunDirectory
from agelab.runner.request import options as table
from agelab.runner.request.options import RunOptions

AnyCommand = TypeVar("AnyCommand", bound=Callable[..., Any])


COMMON = {name for name, about in table.OPTIONS.items() if about.common}


class CellsCommand(click.Command):
    """A verb that runs cells: the options that most people need are the first of its help."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = (param for param in self.get_params(ctx) if isinstance(param, click.Option))
        params = [(param.name in COMMON, param.get_help_record(ctx)) for param in options]
        for title, wanted in (("Common options", True), ("Other options", False)):
            with formatter.section(title):
                formatter.write_dl([record for common, record in params if record and common is wanted])


def _option(name: str, default: Any = None) -> Callable[[AnyCommand], AnyCommand]:
    """Return the option of the command line for a field of RunOptions, perhaps with another default."""
    field, about = RunOptions.model_fields[name], table.OPTIONS[name]
    names, default = (table.option(name), name), field.default if default is None else default
    if field.annotation is bool:
        return click.option(*names, is_flag=True, help=about.help)
    if isinstance(default, tuple):
        default = ",".join(map(str, default)) or None
    several, kind = name == "kernel", _type_of(name)
    return click.option(
        *names,
        type=kind,
        multiple=several,
        default=[default] if several else default,
        show_default=bool(default),
        metavar=about.metavar or (None if kind else name.upper()),
        help=about.help,
    )


def _type_of(name: str) -> click.ParamType[Any] | type | None:
    """Return the type of a field's option; None for text, which RunOptions reads."""
    if name == "jobs":
        return JOBS
    if words := table.choices(name):
        return click.Choice(words)
    annotation = RunOptions.model_fields[name].annotation
    return next((number for number in (int, float) if annotation in (number, number | None)), None)


def _adding(
    level: table.Level, metavar: str = "SCENARIO[-VARIANT]", *, required: bool = True, **defaults: Any
) -> Callable[[AnyCommand], AnyCommand]:
    """Return a decorator that adds the scenario argument and the options of a level to a command, in their order."""
    argument = click.argument("name", metavar=metavar, required=required)
    shown = () if level == "bisect" else (argument,)

    def add(command: AnyCommand) -> AnyCommand:
        taken = sorted(table.options_of(level), key=lambda name: name not in COMMON)
        options = (_option(name, defaults.get(name)) for name in taken)
        for param in reversed((*shown, *options)):
            command = param(command)
        return command

    return add


shared_options = _adding("bisect")
"""The options of a verb that chooses scenario, kernels and run seeds itself."""
run_options = _adding("calibrate")
"""The scenario argument, and the options that every verb takes that runs a scenario."""
options_of_run = _adding("run", "[SCENARIO[-VARIANT]]", required=False)
"""All options, and a scenario where no control file stands in its place."""
test_options = _adding("sweep", "SUITE", schedule=1)
"""A suite in the scenario's place, and the options of a run that changes nothing beside its cells."""


def execute(
    options: RunOptions, begun: RunDirectory | None = None, claims: tuple[DriveClaim, ...] | None = None
) -> RunDirectory:
    """Run the options in the user's store, or the unfinished cells of ``begun``, and show progress."""
    from agelab.runner.execute import runner

    with show_progress() as progress:
        return runner.run(options, open_store(), progress, begun=begun, claims=claims)
