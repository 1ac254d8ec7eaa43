"""The commands and flags are frozen: a new or changed one is a decision, seen in `cli_surface.txt`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mpplan.commands import COMMANDS
from mpplan.group import load_command

GOLDEN = Path(__file__).with_name("cli_surface.txt")


def lines(path: str, command: Any) -> Iterator[str]:
    subcommands = getattr(command, "commands", None)
    if subcommands:
        for name in sorted(subcommands):
            yield from lines(f"{path} {name}", subcommands[name])
        return
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            yield f"{path} {parameter.name.upper()}{'' if parameter.required else ' (optional)'}"
    for parameter in command.params:
        if parameter.param_type_name == "option":
            yield f"{path} {'/'.join([*parameter.opts, *parameter.secondary_opts])}"
    if not command.params:
        yield path


def surface() -> str:
    entries = [line for command in COMMANDS for line in lines(f"mpplan {command.name}", load_command(command))]
    return "\n".join(entries) + "\n"


def test_the_commands_and_flags_are_those_that_were_agreed():
    assert surface() == GOLDEN.read_text(encoding="utf-8"), "if the change is meant: `make surface`"


def test_help_of_every_command_and_flag_is_written():
    silent = []
    for command in COMMANDS:
        loaded = load_command(command)
        for entry in (loaded, *getattr(loaded, "commands", {}).values()):
            silent += [] if entry.help else [f"{command.name}: {entry.name}"]
            silent += [
                f"{command.name} {option.name}"
                for option in entry.params
                if option.param_type_name == "option" and not option.help
            ]

    assert silent == []


if __name__ == "__main__":
    GOLDEN.write_text(surface(), encoding="utf-8")
