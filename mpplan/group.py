"""The command group: import a command only when it is chosen, and fill its defaults from `mpplan.toml`."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from mpplan.commands import COMMANDS, Command
from mpplan.ui.config import config_paths, defaults_for, read_config
from mpplan.ui.console import did_you_mean, fail
from mpplan.ui.streams import silence
from planner.errors import UsageError
from planner.question.input import LIST_METAVARS

NAMES = tuple(command.name for command in COMMANDS)


def load_command(command: Command) -> Any:
    """Import a command's module and build its Click command."""
    module, attribute = command.target.split(":")
    target = getattr(import_module(module), attribute)
    if isinstance(target, typer.Typer):
        app = target
    else:
        app = typer.Typer()
        app.command(name=command.name, cls=SectionedCommand)(target)
    app.rich_markup_mode = None  # plain text suits grep and screen readers, and Rich takes most of the start-up time
    app.pretty_exceptions_enable = False
    app._add_completion = False  # only the program itself offers completion
    click_command = typer.main.get_command(app)
    click_command.name = command.name
    return plain(click_command)


class _LazyConversion:
    """Typer's conversion, created only when a value must be converted, because it imports pydantic, which is slow."""

    def __init__(self, option: Any) -> None:
        self._kind = option.type_descriptor.annotation
        self._conversion = option.get_runtime_param

    def coerce(self, value: Any, *, param: Any, ctx: Any) -> Any:
        if value is None or isinstance(value, self._kind):
            return value
        return self._conversion().coerce(value, param=param, ctx=ctx)


def _convert_lazily(option: Any) -> Any:
    """Give an option the lazy conversion if it takes a single text or is a switch."""
    kind = getattr(option, "type_descriptor", None)
    if kind is not None and kind.annotation in (str, bool) and not option.multiple and option.nargs == 1:
        conversion = _LazyConversion(option)
        option.get_runtime_param = lambda: conversion
    return option


def plain(click_command: Any) -> Any:
    """Hide environment variables (see docs/configuration.md) and types, list subcommands whole; convert lazily."""
    for option in click_command.params:
        option.show_envvar = False
        if option.param_type_name == "argument":
            option.display_type_rich = _no_type  # from Typer 0.29 on, it shows `FILE <list[str]>`
        _convert_lazily(option)
    for inner in getattr(click_command, "commands", {}).values():
        inner.short_help = inner.short_help or str(inner.help).partition("\n")[0]  # whole; Click would cut it
        plain(inner)
    return click_command


def _no_type(ctx: Any) -> None:
    """Display nothing as the type of an argument."""


class _LazyHelp:
    """Mixed into a command so that its `--help` is converted lazily, like every switch."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return the `--help` option with lazy conversion."""
        option = super().get_help_option(ctx)  # type: ignore[misc]
        return option if option is None or "get_runtime_param" in vars(option) else _convert_lazily(option)


class SectionedCommand(_LazyHelp, TyperCommand):
    """A command whose help shows its flags in their sections (`rich_help_panel`)."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of the command line.

        Raises:
            UsageError: a flag that takes a list is given twice, so that the second list would replace the first.
        """
        order = [] if ctx.resilient_parsing else self.make_parser(ctx).parse_args(args=list(args))[2]
        for option in order:
            if order.count(option) > 1 and str(option.metavar or "").endswith(LIST_METAVARS):
                flag = option.opts[0]
                raise UsageError(f"`{flag}` is given twice", hint=f"give one list with commas: `{flag} A,B`")
        remaining_args: list[str] = super().parse_args(ctx, args)
        return remaining_args

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write one list of flags per section, in the order of the command's parameters."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None:
                kind = "Arguments" if option.param_type_name == "argument" else "Options"
                sections.setdefault(getattr(option, "rich_help_panel", None) or kind, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


class LazyCommands(_LazyHelp, TyperGroup):
    """The rows of `COMMANDS` as a Click group."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """Return the command names in the order of `COMMANDS`."""
        return list(NAMES)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        """Import the command; return None if there is no such name."""
        command = next((command for command in COMMANDS if command.name == cmd_name), None)
        return None if command is None else load_command(command)

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """List the commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(command.name, command.help) for command in COMMANDS])

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> tuple[str | None, Any, list[str]]:  # type: ignore[override]
        """Find the chosen command and give it the defaults of the configuration files.

        To complete a word in a shell, neither is needed, and an error would end up in the line that is being typed.

        Raises:
            UsageError: there is no such command.
            InputFileError: a configuration file is invalid.
        """
        if ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        name = args[0]
        if name not in NAMES and not name.startswith("-"):
            raise UsageError(f"`mpplan` has no command `{name}`", hint=did_you_mean(name, NAMES, "see `mpplan --help`"))
        resolved, command, remaining_args = super().resolve_command(ctx, args)
        if resolved is not None and "--help" not in remaining_args:
            ctx.default_map = {resolved: defaults_for(read_config(config_paths()), NAMES, resolved, command)}
        return resolved, command, remaining_args

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Run the command; a closed pipe (`mpplan gpus | head`) and Ctrl-C are not errors."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            silence(sys.stdout)
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            fail("interrupted")
            raise typer.Exit(130) from None
        return result
