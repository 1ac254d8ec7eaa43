"""The settings of a file of `mpplan export --launch`, and what the framework's recorded settings refuse of them."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from reports.launch.forms import ABOUT_KEY

SCHEMAS = Path(__file__).parent / "schemas"
JSON_NAMES = {str: "str", int: "int", float: "float", bool: "bool", type(None): "null", list: "list", dict: "dict"}


@cache
def recorded(framework: str) -> dict[str, dict[str, Any]]:
    """Settings of a framework by name."""
    document = json.loads((SCHEMAS / f"{framework}.json").read_text(encoding="utf-8"))
    settings: dict[str, dict[str, Any]] = document["settings"]
    return settings


def settings(framework: str, text: str) -> list[tuple[str, Any]]:
    """Names of the settings in a file, sections joined by a point, with their values; of a script, its arguments."""
    if framework == "megatron":
        return list(_arguments(text))
    if framework == "deepspeed":
        document = json.loads(text)
        assert next(iter(document)) == ABOUT_KEY
        del document[ABOUT_KEY]
    else:
        document = tomllib.loads(text) if framework == "torchtitan" else yaml.safe_load(text)
    return list(_leaves(document, ""))


def _arguments(text: str) -> Iterator[tuple[str, list[str]]]:
    words = shlex.split(text.split("MEGATRON_ARGS=(\n")[1].split("\n)\n")[0])
    values: list[str] = []
    for word in reversed(words):
        if word.startswith("--"):
            yield word, values[::-1]
            values = []
        else:
            values.append(word)


def _leaves(section: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in section.items():
        if isinstance(value, dict) and f"{prefix}{name}" != "optimizer.params":
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def refusals(framework: str, text: str) -> list[str]:
    """What the framework's recorded settings refuse of a file: unknown names, wrong types, values not to choose."""
    return [
        fault
        for name, value in settings(framework, text)
        if (fault := _fault(recorded(framework), name, value)) is not None
    ]


def _fault(known: Mapping[str, dict[str, Any]], name: str, value: Any) -> str | None:
    if name not in known:
        return _of_a_section(known, name)
    rule = known[name]
    if "values" in rule:
        return _argument_fault(rule, name, value)
    kind = JSON_NAMES[type(value)]
    if "any" not in rule["types"] and kind not in rule["types"] and not (kind == "int" and "float" in rule["types"]):
        return f"{name}: {kind} is none of {rule['types']}"
    if "choices" in rule and kind not in ("bool", "null") and value not in rule["choices"]:
        return f"{name}: `{value}` is none of its choices"
    return None


def _of_a_section(known: Mapping[str, dict[str, Any]], name: str) -> str | None:
    """A name is fine inside what takes any object: variables of a task, another framework's configuration."""
    while "." in name:
        name = name.rpartition(".")[0]
        if name in known:
            inside = any(other.startswith(f"{name}.") for other in known)
            return None if "dict" in known[name]["types"] and not inside else f"{name}: has no such setting"
    return f"{name}: unknown"


def _argument_fault(rule: Mapping[str, Any], name: str, values: list[str]) -> str | None:
    wanted = rule["values"]
    if wanted != len(values) and not (wanted == "+" and values):
        return f"{name}: takes {wanted} values, not {len(values)}"
    for value in values:
        if "choices" in rule and value not in [str(choice) for choice in rule["choices"]]:
            return f"{name}: `{value}` is none of its choices"
        try:
            {"int": int, "float": float}.get(rule["types"][0], str)(value)
        except ValueError:
            return f"{name}: `{value}` is no {rule['types'][0]}"
    return None
