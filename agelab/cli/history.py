"""``agelab history``: operation logs, written by the engines or checked."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from pydantic import TypeAdapter, ValidationError

from agelab.base.errors import InputError, did_you_mean
from agelab.cli.options import OUTPUT, SIZE, force_option, json_option, print_blocks, print_json
from agelab.data.history.operations import LogSummary
from agelab.present.report.blocks import Block, facts
from agelab.scenario.history import History

POINTS = 10
"""Points of a log to name."""


def log_blocks(log: LogSummary) -> Iterator[Block]:
    shown_facts: dict[str, object] = {}
    for name, value in asdict(log).items():
        shown = value
        if name == "counts":
            shown = ", ".join(f"{what} {count}" for what, count in value.items())
        elif name == "points":
            named = ", ".join(map(str, value[:POINTS]))
            shown = str(len(value)) + (f", after operation {named}" if value else "")
            shown += " ..." if len(value) > POINTS else ""
        unit = " bytes" if name in ("space", "peak_space") or "bytes" in name else ""
        words = name.replace("_bytes", "").replace("bytes_", "").replace("_", " ")
        shown_facts[words] = f"{shown}{unit}"
    yield facts(shown_facts)


TAKES = {
    "profile": ("profile", "fullness", "overwrites", "points", "seed"),
    "history": ("fullness", "overwrites", "points", "seed"),
    "churn": ("fullness", "overwrites", "freed", "points", "seed"),
    "git": ("repository", "revision", "points"),
}
"""The options of each engine."""
FIGURES = ("fullness", "overwrites", "freed")


class NoResults(click.Group):
    """A group that says of words which name none of its commands where results over time are shown."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = (*self.commands, *ctx.help_option_names)
        if args and args[0] not in known and not did_you_mean(args[0], [*self.commands]):
            raise InputError(
                "agelab history shows no results any more: agelab track FILE.toml follows them over kernels, commits "
                "and dates, agelab sweep RUN... puts those of several kernels into one table"
            )
        return super().parse_args(ctx, args)


@click.group(cls=NoResults)
def history() -> None:
    """Make and check histories, logs of operations that a guest replays."""


@history.command()
@click.argument("engine", type=click.Choice(list(TAKES)))
@click.option("--output", "-o", type=OUTPUT, required=True, help="The log, a text file.")
@force_option
@click.option("--disk", type=SIZE, default="256M", help="Size of the disk that it is for.")
@click.option(
    "--profile",
    default="agrawal-2007",
    help="profile: one of agelab list profiles, or a file of your own: ./mine.toml.",
)
@click.option("--fullness", type=float, default=0.8, help="profile, history, churn: the share of the disk to fill.")
@click.option(
    "--overwrites", type=float, default=2.0, help="profile, history, churn: bytes to write, in sizes of the disk."
)
@click.option("--freed", type=float, default=0.3, help="churn: the share of files to delete at the end.")
@click.option("--repository", type=click.Path(path_type=Path), help="git: path of the repository.")
@click.option("--revision", default="HEAD", help="git: its newest version.")
@click.option(
    "--points", type=click.IntRange(1, 1000), default=1, help="Number of points at which a run may stop and measure."
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=1, help="profile, history, churn: the corpus seed.")
@json_option
def make(engine: str, output: Path, disk: int, seed: int, as_json: bool, **options: Any) -> None:
    """Write the log of ENGINE (profile, history, churn or git) and report what it holds."""
    from agelab.data.history import engines
    from agelab.data.history.report import report_lines

    given = click.get_current_context().get_parameter_source
    for name in ("seed", *options):
        if name not in TAKES[engine] and given(name) is click.core.ParameterSource.COMMANDLINE:
            takes = ", ".join(f"--{option}" for option in ("disk", *TAKES[engine]))
            raise InputError(f"--{name} has no meaning for engine {engine}", hint=f"it takes: {takes}")
    if engine == "git" and options["repository"] is None:
        raise InputError("engine git needs --repository: where the repository is")
    asked = {name: options[name] for name in TAKES[engine] if name != "seed"}
    report = engines.write_log(engines.log_source(_parse_history(engine, asked), disk, seed), output)
    if as_json:
        print_json(report.model_dump(mode="json", by_alias=True))
        return
    click.echo("\n".join(report_lines(report)))


@history.command()
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def check(file: Path, as_json: bool) -> None:
    """Check the log FILE: report what is in it, or every line that cannot be replayed."""
    from agelab.data.history.operations import check_log as checked

    log = checked(file)
    print_json({"schema": 1, **asdict(log)}) if as_json else print_blocks(log_blocks(log))


def _parse_history(engine: str, asked: dict[str, Any]) -> Any:
    """Make the request as a scenario would. Raises InputError naming the option that is out of range."""
    raw = {name: {"value": value, "origin": "estimated"} if name in FIGURES else value for name, value in asked.items()}
    if "repository" in raw:
        raw["repository"] = str(raw["repository"])
    adapter: TypeAdapter[History] = TypeAdapter(History)
    try:
        return adapter.validate_python({"engine": engine, "name": engine, **raw})
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"--{first['loc'][1]} {first['input']}: {first['msg']}") from error
