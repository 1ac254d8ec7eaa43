"""Defaults from `mpplan.toml` files: read, checked against the flags, and merged.

Precedence: flag > `MPPLAN_<COMMAND>_<FLAG>` > `./mpplan.toml` > the user's `mpplan.toml` > the program's default.
A file has one table per command and one key per long flag:

    [estimate]
    gpu = "h200-sxm-141gb"
    pue = 1.12
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import typer

from mpplan.ui.console import did_you_mean
from planner.errors import InputFileError, UsageError
from planner.files import kind_unless_file
from planner.lazy import dataclass
from planner.question.input import LIST_METAVARS

CONFIG_NAME = "mpplan.toml"
RECORDS = "records"
"""The flag that takes a file or a folder."""

_SOURCES = {"COMMANDLINE": "flag", "ENVIRONMENT": "environment", "DEFAULT_MAP": "file"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """One parsed `mpplan.toml`."""

    name: str
    """Path as shown in messages."""
    text: str
    tables: Mapping[str, Any]
    """Nested tables as parsed; only the table of the chosen command is checked against its flags."""


def config_paths() -> tuple[Path, ...]:
    """Return the paths to look for, lowest precedence first: the user's directory, then the working directory."""
    return Path(typer.get_app_dir("mpplan")) / CONFIG_NAME, Path(CONFIG_NAME)


def read_config(paths: Sequence[Path]) -> tuple[ConfigFile, ...]:
    """Read the files that exist, in the order given.

    Raises:
        UsageError: a file exists but cannot be read, or a link is dangling.
        InputFileError: a file is not TOML, or a path is not a regular file.
    """
    return tuple(_read(path) for path in paths if os.path.lexists(path))


def _read(path: Path) -> ConfigFile:
    from pricing.files.toml_file import parse_toml  # loaded only for a file: TOML is slow to import

    try:
        kind = kind_unless_file(path.stat().st_mode)
        if kind is not None:
            raise InputFileError(f"{path}: expected a file, found {kind}", hint="remove it, or write defaults there")
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise UsageError(
            f"`{path}` is a link to a file that does not exist", hint="remove the link, or create the file"
        ) from error
    except OSError as error:
        raise UsageError(f"cannot read `{path}`: {error.strerror}", hint="check its permissions") from error
    except UnicodeDecodeError as error:
        raise InputFileError(f"{path}:1: expected UTF-8 text", hint="save the file as UTF-8") from error
    return ConfigFile(name=str(path), text=text, tables=parse_toml(text, str(path), float))


def defaults_for(files: Sequence[ConfigFile], commands: Sequence[str], name: str, command: Any) -> dict[str, Any]:
    """Return the defaults of one command as Click's `default_map`; later files take precedence.

    Args:
        files: parsed files, lowest precedence first.
        commands: names of all commands, to recognise a misspelt table.
        name: the chosen command.
        command: its Click command or group; only its table is checked against flags.

    Raises:
        InputFileError: a table or key is unknown, or the type of a value does not suit its flag.
    """
    merged: dict[str, Any] = {}
    for file in files:
        for table, value in file.tables.items():
            if table not in commands:
                raise _unknown(file, (table,), commands, "a command")
            if table == name:
                _merge(merged, _checked(file, (table,), value, command))
    return merged


def sources(context: Any) -> dict[str, str]:
    """Return the origin of each flag's value: `flag`, `environment` or `file`; flags at their default are absent."""
    origins = {name: context.get_parameter_source(name) for name in context.params}
    return {name: _SOURCES[origin.name] for name, origin in origins.items() if origin and origin.name in _SOURCES}


def _merge(into: dict[str, Any], new: Mapping[str, Any]) -> None:
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _checked(file: ConfigFile, path: tuple[str, ...], table: Any, command: Any) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise InputFileError(
            f"{file.name}:{_line(file.text, path)}: {'.'.join(path)}: expected a table",
            hint=f"write `[{'.'.join(path)}]` and the flags below it",
        )
    subcommands = getattr(command, "commands", None)
    if subcommands is not None:
        for key in table:
            if key not in subcommands:
                raise _unknown(file, (*path, key), list(subcommands), f"a subcommand of `mpplan {path[-1]}`")
        return {key: _checked(file, (*path, key), inner, subcommands[key]) for key, inner in table.items()}
    flags = _flags(command)
    result: dict[str, Any] = {}
    for key, value in table.items():
        flag = key.replace("_", "-")
        if flag not in flags:
            raise _unknown(file, (*path, key), list(flags), f"a flag of `mpplan {' '.join(path)}`")
        if flags[flag].name in result:
            raise InputFileError(
                f"{file.name}:{_line(file.text, (*path, key))}: {'.'.join((*path, key))}: given twice",
                hint=f"keep one of `{flag}` and `{flag.replace('-', '_')}`",
            )
        result[flags[flag].name] = _value(file, (*path, key), value, flags[flag])
    return result


def _flags(command: Any) -> dict[str, Any]:
    """Return the long flags of a command without their dashes, each with its Click option."""
    return {
        name[2:]: option
        for option in command.params
        if option.param_type_name == "option"
        for name in option.opts
        if name.startswith("--") and name != "--help"
    }


def _value(file: ConfigFile, path: tuple[str, ...], value: Any, option: Any) -> Any:
    """Convert a TOML value to the form that the flag takes: a bool for a switch, text for everything else."""
    if option.is_flag:
        if isinstance(value, bool):
            return value
        expected = "true or false"
    elif _is_plain(value) or isinstance(value, date):
        text = _beside(file, str(value), option)
        return [text] if option.multiple else text
    elif not option.multiple and not str(option.metavar or "").endswith(LIST_METAVARS):
        expected = "one value, text or a number"
    elif isinstance(value, list) and all(_is_plain(item) for item in value):
        texts = [str(item) for item in value]
        return texts if option.multiple else ",".join(texts)
    else:
        expected = "text, a number or a list of them"
    raise InputFileError(
        f"{file.name}:{_line(file.text, path)}: {'.'.join(path)}: expected {expected}",
        hint=f"give what you would write after `--{path[-1].replace('_', '-')}`",
    )


def _beside(file: ConfigFile, text: str, option: Any) -> str:
    """Return a value; a file name is resolved beside the configuration file, if such a file exists there."""
    takes_file = str(option.metavar or "").split("|")[-1] == "FILE" or f"--{RECORDS}" in option.opts
    place = Path(file.name).parent
    if not takes_file or place == Path() or not text or "\0" in text:
        return text
    try:
        return str(place / text) if (place / text).exists() else text
    except OSError:  # no file can have this name
        return text


def _is_plain(value: Any) -> bool:
    """Return whether a TOML value is text or a number."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _unknown(file: ConfigFile, path: tuple[str, ...], known: Sequence[str], what: str) -> InputFileError:
    return InputFileError(
        f"{file.name}:{_line(file.text, path)}: {'.'.join(path)}: not {what}",
        hint=did_you_mean(path[-1], known, f"known: {', '.join(known)}"),
    )


def _line(text: str, path: tuple[str, ...]) -> int:
    """Return the line of a key, 1 if it is not found; tomllib keeps no positions, so headers are tracked here."""
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[([^\[\]]+)\]", line)
        if header:
            table = _dotted(header[1])
        key = re.match(r"\s*([\w.\"'-]+)\s*=", line)
        path_of_line = table if header else (*table, *_dotted(key[1])) if key else ()
        if path_of_line[: len(path)] == path:
            return number
    return 1


def _dotted(text: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in text.split("."))
