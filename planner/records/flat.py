"""Conversion between the flat keys of a record line and the nested `Measurement`.

Each field of a group has one key: its name, with the group's prefix if the group has one. For example,
`run.time.median_s` has the key `time_median_s`, and `run.setup.recipe` has the key `recipe`.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, lru_cache

from planner.lazy import dataclass
from planner.records.communication import OPS_OF_NCCL_TESTS
from planner.records.measurement import Measurement

PREFIXES = {
    "time": "time_", "memory": "memory_", "energy": "energy_", "power": "power_", "predicted": "predicted_",
    "imported": "imported_", "ranks": "rank_", "overlap": "overlap_",
    "training_numerics": "numerics_", "merged": "merged_",
}  # fmt: skip
"""Map from group to the prefix of its keys; a group that is not listed has none."""

KEYS = {
    ("memory", "alloc_retries"): "alloc_retries",
    ("memory", "ooms"): "ooms",
    ("memory", "optimizer_state_bytes_per_param"): "optimizer_state_bytes_per_param",
    ("predicted", "probe_ids"): "predicted_from",
    ("device", "kind"): "device_kind",
    ("device", "name"): "device_name",
    ("device", "uuid_hash"): "device_hash",
}
"""Map from group and field to the key, if it does not follow from the prefix."""


FIRST = "mpplan.probe/1"
"""Format from before records of several ranks. It names collectives as nccl-tests does."""
EARLIER = (FIRST, "mpplan.probe/2")
"""Earlier formats that are still read; the second had no lines of `mpplan numerics`."""
_RENAMED = {"ranks": "world", "message_bytes": "bytes"}
"""Map from keys of `FIRST` to current keys."""


def brought_up(document: Mapping[str, object]) -> dict[str, object]:
    """Convert a line of an `EARLIER` format to the current keys."""
    if document.get("schema") != FIRST:
        return dict(document)
    values = {_RENAMED.get(key, key): value for key, value in document.items()}
    if values.get("kind") == "collective" and isinstance(op := values.pop("role", None), str):
        values["op"] = OPS_OF_NCCL_TESTS.get(op, op)
    return values


_SHARED = ("device", "software", "imported", "merged")
"""Groups that are the same in every line of a record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatKey:
    """One key of a line and the field that it fills."""

    key: str
    """Key of the JSON object."""
    group: str | None
    """Attribute of `Measurement` that holds the field; None for a field of `Measurement` itself."""
    name: str
    """Name of the field."""
    type: object
    """Type of the field, without None."""
    required: bool
    """True: a line without it cannot be used."""


@cache
def columns() -> tuple[FlatKey, ...]:
    """Every key of a line, in the order in which lines are written."""
    flat_keys: list[FlatKey] = []
    for column in _columns_of(Measurement, None):
        if is_dataclass(column.type):
            flat_keys += _columns_of(typing.cast(type, column.type), column.name)
        else:
            flat_keys.append(column)
    return tuple(flat_keys)


def _columns_of(cls: type, group: str | None) -> list[FlatKey]:
    """One column per field of a dataclass."""
    hints = typing.get_type_hints(cls)
    return [
        FlatKey(
            key=KEYS.get((group or "", field.name), PREFIXES.get(group or "", "") + field.name),
            group=group,
            name=field.name,
            type=_without_none(hints[field.name]),
            required=field.default is MISSING and field.default_factory is MISSING,
        )
        for field in fields(cls)
    ]


def _without_none(hint: object) -> object:
    if typing.get_origin(hint) is types.UnionType:
        return next(part for part in typing.get_args(hint) if part is not types.NoneType)
    return hint


def flatten(measurement: Measurement) -> dict[str, object]:
    """Convert a measurement to flat keys, in the order of writing; None and empty collections are left out."""
    values: dict[str, object] = {}
    for column in columns():
        owner = measurement if column.group is None else getattr(measurement, column.group)
        value = getattr(owner, column.name)
        if value is not None and value != () and value != {}:
            values[column.key] = value
    return values


def nest(values: Mapping[str, object]) -> Measurement:
    """Build the measurement with these values by key; missing keys take their defaults.

    A record repeats its device and software in every line. Equal ones share one object, so that a long record takes
    little memory.

    Args:
        values: values of the types of the fields, with all required keys.

    Raises:
        KeyError: a key is not one of the format.
    """
    by_key = columns_by_key()
    top_level: dict[str, object] = {}
    groups: dict[str, dict[str, object]] = {"device": {}}
    for key, value in values.items():
        column = by_key[key]
        target = top_level if column.group is None else groups.setdefault(column.group, {})
        target[column.name] = value
    parts = dict(_defaults())
    for group, filled in groups.items():
        parts[group] = _shared(group, filled) if group in _SHARED else _groups()[group](**filled)
    return Measurement(**top_level, **parts)  # type: ignore[arg-type] # callers have checked the types


@cache
def columns_by_key() -> dict[str, FlatKey]:
    """Every key of a line, by name."""
    return {column.key: column for column in columns()}


@cache
def _groups() -> dict[str, type]:
    """Classes of the groups, by the attribute of `Measurement` that holds them."""
    hints = typing.get_type_hints(Measurement)
    return {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}


@cache
def _defaults() -> dict[str, object]:
    """Default groups, for groups without any given key; they are frozen, so all lines can share them."""
    return {field.name: field.default_factory() for field in fields(Measurement) if callable(field.default_factory)}


def _shared(group: str, filled: Mapping[str, object]) -> object:
    return _cached_group(group, tuple((name, _hashable(value)) for name, value in filled.items()))


def _hashable(value: object) -> object:
    return _Pairs(value.items()) if isinstance(value, dict) else value


class _Pairs(tuple[tuple[str, str], ...]):
    """A dictionary as a hashable tuple of pairs."""


@lru_cache(maxsize=64)
def _cached_group(group: str, filled: tuple[tuple[str, object], ...]) -> object:
    values = {name: dict(value) if isinstance(value, _Pairs) else value for name, value in filled}
    return _groups()[group](**values)
