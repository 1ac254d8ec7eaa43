"""The program: take arguments, return an exit code, print errors as `error:` and `hint:` lines."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Annotated, Any, TextIO

import typer

from mpplan.group import NAMES, LazyCommands, plain
from mpplan.ui.console import did_you_mean, fail, show_help
from mpplan.ui.sink import cleaned, uncleaned
from mpplan.ui.streams import open_streams, silence
from mpplan.version import __version__
from planner.decimals import own_decimals
from planner.errors import MpplanError, UsageError

app = typer.Typer(
    cls=LazyCommands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog="You can keep your own defaults in mpplan.toml.\n\n"
    "Exit codes: 0 done; 1 internal error in mpplan; 2 usage; 3 an input file is invalid; 4 this machine cannot "
    "measure that; 5 incomplete, with --strict; 6 unstable, with --strict; 7 a limit you set was exceeded; "
    "8 no feasible plan; 130 interrupted.",
)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"mpplan {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an unexpected failure.")] = False,
) -> None:
    """Plan what a training run costs in each precision: GPUs, days, money, energy, carbon, from measurements."""
    if context.invoked_subcommand is None:
        show_help(context.get_help())
        raise typer.Exit(2)


def program() -> Any:
    """Return the whole program as a Click group whose commands load when they are chosen."""
    group = plain(typer.main.get_command(app))
    for option in group.params:
        option.allow_from_autoenv = option.name == "debug"  # a variable must not turn every call into `--version`
    return group


@cleaned()
@own_decimals()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run `mpplan` and return its exit code (docs/exit-codes.md)."""
    open_streams()
    for stream in (sys.stdout, sys.stderr):
        own = uncleaned(stream)
        if isinstance(own, TextIOWrapper):  # a terminal that cannot encode `≥` shows `?` instead of a traceback
            own.reconfigure(encoding=_encoding(stream), errors="replace")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices are small, so threads would only wait for each other
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = program().main(args=words, prog_name="mpplan", standalone_mode=False, auto_envvar_prefix="MPPLAN")
        sys.stdout.flush()
    except MpplanError as error:
        _fail(error)
        return error.exit_code
    except typer.TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            show_help(error.format_message())
            return UsageError.exit_code
        usage = _usage_error(error, words)
        _fail(usage)
        return usage.exit_code
    except typer.Abort:
        fail("interrupted")
        return 130
    except Exception as error:
        return _unexpected(error, debug="--debug" in words or bool(os.environ.get("MPPLAN_DEBUG")))
    return code if isinstance(code, int) else 0


def _encoding(stream: TextIO) -> str | None:
    """Return UTF-8 for a file or a pipe, whose readers expect it of JSON, CSV and pages; None keeps the encoding."""
    return "utf-8" if stream is sys.stdout and not stream.isatty() else None


def _fail(error: MpplanError) -> None:
    """Print an error and its hint; the message tables load only when a message must be worded."""
    from reports.text.messages import word

    fail(word(error.message), None if error.hint is None else word(error.hint))


def _usage_error(error: typer.TyperException, words: Sequence[str]) -> UsageError:
    """Convert a usage error of Typer to one of mpplan, with near names or a pointer to the help."""
    context: Any = getattr(error, "ctx", None)
    chosen = next((word for word in words if word in NAMES), None)
    command = context.command_path if context else f"mpplan {chosen}" if chosen else "mpplan"
    see = f"see `{command} --help`"
    message = error.format_message().strip().rstrip(".")
    option = getattr(error, "option_name", None)
    if type(error).__name__ == "NoSuchOption" and option is not None:
        possible = getattr(error, "possibilities", None) or ()
        return UsageError(f"`{command}` has no option `{option}`", hint=did_you_mean(option, possible, see))
    unknown = re.match(r"No such command '(.*?)'", message)
    if unknown and context:
        hint = did_you_mean(unknown[1], getattr(context.command, "commands", ()), see)
        return UsageError(f"`{command}` has no command `{unknown[1]}`", hint=hint)
    return UsageError(message, hint=see)


def _unexpected(error: Exception, *, debug: bool) -> int:
    """Report a bug of mpplan, an unwritable stdout, or a path that the system refuses; return the exit code."""
    if isinstance(error, OSError) and error.filename is None:
        silence(sys.stdout)
        fail(f"cannot write the output: {error.strerror}", "check the disk, or the program that reads the output")
        return UsageError.exit_code
    if debug:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, OSError):
        fail(f"cannot use `{error.filename}`: {error.strerror}", "check the path and its permissions")
        return UsageError.exit_code
    fail(
        f"mpplan {__version__} failed unexpectedly: {type(error).__name__}: {error}",
        "this is a bug in mpplan: report it on the project's issue page with the command line and what "
        "`MPPLAN_DEBUG=1` prints",
    )
    return MpplanError.exit_code
