"""Typed access to a Hugging Face `config.json`; every error names `file: key: what was expected`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from planner.errors import InputFileError
from planner.lazy import dataclass

_HINT = "pass the config.json that the model was published with"
_LARGEST = 10**9
"""Largest plausible count in a model's shape; any larger number is a mistake."""


@dataclass(frozen=True, slots=True)
class ConfigJson:
    """The object of a config file. A key may have several spellings; the first one found counts."""

    file: str
    """Name as shown in errors."""
    values: Mapping[str, Any]

    def fail(self, key: str, expected: str) -> InputFileError:
        """The error for a value that is missing or invalid."""
        actual = f"found `{json.dumps(self.values[key])[:60]}`" if key in self.values else "but it is missing"
        return InputFileError(f"{self.file}: {key}: expected {expected}, {actual}", hint=_HINT)

    def _find(self, keys: tuple[str, ...]) -> str:
        """The first spelling that has a value, else the first of all (for the error)."""
        return next((key for key in keys if self.values.get(key) is not None), keys[0])

    def opt_count(self, *keys: str, low: int = 1) -> int | None:
        """A whole number of at least `low`; None if the key is missing or null."""
        key = self._find(keys)
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= _LARGEST:
            raise self.fail(key, f"a whole number of at least {low}")
        return value

    def count(self, *keys: str, low: int = 1) -> int:
        """A whole number of at least `low`; the key is required."""
        value = self.opt_count(*keys, low=low)
        if value is None:
            raise self.fail(self._find(keys), f"a whole number of at least {low}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false; `default` if the key is missing or null."""
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.fail(key, "true or false")
        return value

    def text(self, key: str) -> str | None:
        """A text; None if the key is missing or null."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            raise self.fail(key, "text")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; empty if the key is missing or null."""
        value = self.values.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.fail(key, "a list of strings")
        return tuple(value)

    def whole_numbers(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers; empty if the key is missing or null."""
        value = self.values.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(type(item) is int for item in value):
            raise self.fail(key, "a list of whole numbers")
        return tuple(value)

    def over(self, defaults: Mapping[str, Any]) -> ConfigJson:
        """This object with defaults for its missing keys; a null value remains null."""
        return ConfigJson(self.file, {**defaults, **self.values})

    def inner(self, key: str) -> ConfigJson:
        """The object under a key; empty if the key is missing or null."""
        value = self.values.get(key)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise self.fail(key, "an object")
        return ConfigJson(self.file, value)


def parse_config(text: str, name: str) -> ConfigJson:
    """Parse the text of a config file.

    Raises:
        InputFileError: the text is not JSON (for example because it is cut off), or not an object.
    """
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        what = "the file ends in the middle" if cut else f"not JSON: {error.msg}"
        raise InputFileError(f"{name}:{error.lineno}: {what}", hint=_HINT) from None
    except (ValueError, RecursionError):
        raise InputFileError(f"{name}: expected a JSON object of a model's shape", hint=_HINT) from None
    if not isinstance(values, dict):
        raise InputFileError(f"{name}: expected a JSON object, found {type(values).__name__}", hint=_HINT)
    return ConfigJson(name, values)
