"""The command line: verbs, exit codes, and one clear message for whatever goes wrong.

Exit codes: 0 all is well; 1 some cell is not ok; 2 wrong usage or input; 3 this host cannot do it;
70 a bug in agelab; 130 interrupted; 141 whoever read its output has gone. A verb that returns a number exits with it.
"""

import codecs
import contextlib
import errno
import gc
import importlib
import io
import locale
import os
import signal
import sys
import traceback
from collections.abc import Sequence

import click
from click.exceptions import NoSuchCommand

from agelab import __version__
from agelab.base import limits
from agelab.base.errors import DISK_ERRNOS, FULL_ERRNOS, AgelabError, HostError, InputError, unknown
from agelab.base.fileio import RefusedFile
from agelab.base.sanitize import escape_controls
from agelab.base.verbs import GROUPS, VERBS, as_called
from agelab.present import view

INTERNAL_ERROR = 70
INTERRUPTED = 130
READER_GONE = 128 + signal.SIGPIPE
"""The exit code of a command whose reader (a pager, head) ends before the output, as shells report it."""
NAME_ERRNOS = (errno.ENAMETOOLONG, errno.ELOOP)
"""System errors that no file of ours has: the user named one that there cannot be."""
MAX_NAME_SHOWN = 200
"""Characters of such a name that the error shows."""
FULL = "free some space there (AGELAB_HOME, or where its output goes)"

FLATTER = "directories within directories, lists within lists and headers of an archive go a few hundred deep at most"

UTF_8 = "utf-8"

OBJECTS = 100_000
"""New objects before Python looks for cycles among them: a run of many cells has millions, and hardly any cycle."""

MODULES = {"list": "lists", "help": "help_for"}
"""The modules below agelab.cli whose name is not their verb's: those names are Python's."""


FIRST = """
agelab run aging-ext4 --check           # one small cell: does it work here?
agelab run aging --filesystem ext4,xfs --seeds 1-5
agelab help run
"""
"""Commands to begin with."""


def examples(commands: str) -> str:
    r"""Return commands as a paragraph of a help; ``\b`` keeps click from joining the lines."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in commands.strip().splitlines())


class Verbs(click.Group):
    """A group whose commands are loaded when they are used, so that the help of agelab itself is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*VERBS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        name = MODULES.get(cmd_name, cmd_name)
        command = getattr(importlib.import_module(f"agelab.cli.{name}"), name)
        assert isinstance(command, click.Command)
        shown = examples(VERBS[cmd_name].examples)
        if shown not in (command.epilog or ""):
            command.epilog = f"{shown}\n\n{command.epilog or ''}".rstrip()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, VERBS))
        for group, verbs in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(f"{verb:{width}}", about.does) for verb, about in verbs.items()])


@click.command(
    cls=Verbs,
    subcommand_metavar="VERB ...",
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog=f"{examples(FIRST)}\n\nAGELAB_HOME moves the store of kernels, images and runs (default: .agelab in the "
    "checkout, of an installed agelab ~/.local/share/agelab).",
)
@click.version_option(__version__)
def agelab() -> None:
    """A reproducibility sandbox for filesystem benchmarks."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (``sys.argv`` when None) and return its exit code."""
    if argv is None:
        _use_utf_8()
    _replace_what_cannot_be_shown()
    # Whoever ends a run gets the same clean-up as Ctrl-C; what nohup told us to ignore stays ignored.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    if asked := os.environ.get("_AGELAB_COMPLETE"):
        from agelab.cli import completion

        if completion.answer(agelab, asked):
            return 0
    gc.set_threshold(OBJECTS)
    # Whatever the user's umask allows: what others may write to, others could have run as this user.
    os.umask(os.umask(0o022) | 0o022)
    try:
        limits.prepare()
        result = agelab.main(
            argv, prog_name="agelab", standalone_mode=False, color=False if view.colour_unwanted() else None
        )
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.UsageError as error:
        return _complain(_usage(error))
    except click.ClickException as error:
        return _complain(InputError(error.format_message()))
    except AgelabError as error:
        return _complain(error)
    except (click.Abort, KeyboardInterrupt) as error:
        click.echo("agelab: interrupted", err=True)
        _say_how_to_go_on(error.__cause__ or error)  # click has an Abort for an interrupt
        return INTERRUPTED
    except BrokenPipeError:
        # Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except SystemExit:
        return READER_GONE  # it ends by itself for a BrokenPipeError alone, and has seen to the flush
    except RefusedFile as error:
        return _complain(InputError(f"{error.filename}: {error.strerror}"))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        if error.errno in NAME_ERRNOS:
            return _complain(InputError(f"{where[:MAX_NAME_SHOWN]}{error.strerror}"))
        if error.errno not in DISK_ERRNOS:
            return _unexpected(error)
        code = _complain(HostError(f"{where}{error.strerror}", FULL if error.errno in FULL_ERRNOS else ""))
        _say_how_to_go_on(error)
        return code
    except RecursionError:  # no work of agelab's own goes so deep
        return _complain(InputError("a file or a directory that was named is nested too deeply to be read", FLATTER))
    except Exception as error:
        return _unexpected(error)
    return result if isinstance(result, int) else 0


def _use_utf_8() -> None:
    """Begin this process anew in Python's UTF-8 mode where the locale would have names and arguments read otherwise.

    Python settles how it reads them when it begins (PEP 540).
    """
    if sys.getfilesystemencoding() != UTF_8 and sys.executable:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def _replace_what_cannot_be_shown() -> None:
    """Let no character end the command: a terminal gets what its locale has, a file or pipe UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            shown = locale.getencoding() if stream.isatty() else UTF_8
            # In the C locale terminals show UTF-8 all the same: nobody has told them otherwise.
            ascii_only = codecs.lookup(shown).name == "ascii"
            stream.reconfigure(encoding=UTF_8 if ascii_only else shown, errors="replace")


def _unexpected(error: Exception) -> int:
    """Tell of an error that no code expects: what the host held back, or a bug."""
    if held_back := limits.of_error(error):
        return _complain(held_back)
    with contextlib.suppress(OSError):
        traceback.print_exc()
        click.echo("agelab: a bug in agelab, not in what you asked for; please report it", err=True)
    return INTERNAL_ERROR


def _usage(error: click.UsageError) -> AgelabError:
    command = error.ctx.command if error.ctx else agelab
    where = error.ctx.command_path if error.ctx else "agelab"
    hint = f"see: {where} --help"
    context = error.ctx or click.Context(agelab)
    if isinstance(error, click.NoSuchOption):
        options = [name for param in command.get_params(context) for name in param.opts if name[:2] == "--"]
        return unknown("option", error.option_name, options)
    if isinstance(error, NoSuchCommand) and isinstance(command, click.Group):
        kind = "verb" if command is agelab else f"{command.name} command"
        return unknown(kind, error.command_name, command.list_commands(context))
    return InputError(error.format_message(), hint)


def _complain(error: AgelabError) -> int:
    with contextlib.suppress(BrokenPipeError):
        click.echo(f"agelab: {escape_controls(str(error))}", err=True)
        if error.hint:
            click.echo(f"  {as_called(escape_controls(error.hint))}", err=True)
        _say_how_to_go_on(error)
    return error.exit_code


def _say_how_to_go_on(error: BaseException) -> None:
    """Print the command that goes on with what was begun: of several the one that was typed (errors.goes_on)."""
    for command in getattr(error, "__notes__", [])[-1:]:
        click.echo(f"  go on: {as_called(escape_controls(command))}", err=True)
