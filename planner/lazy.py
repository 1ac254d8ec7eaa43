"""Frozen dataclasses whose `__init__` is compiled only after many instances; most classes have few instances or none.

This is a drop-in replacement for `dataclasses.dataclass`: fields, `replace`, `asdict`, `fields`, pickling and equality
behave the same. The standard decorator compiles six methods of every class at import, which takes more than a tenth of
a short command's time (`make startup`; docs/decisions/0024-dataclasses-compile-when-used.md). Type checkers see the
standard decorator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from inspect import Parameter, Signature
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        """Make a class a dataclass; see `dataclasses.dataclass`.

        Args:
            cls: the class; None to get a decorator.
            **options: options of the standard decorator. Frozen classes without the options `NOT_LAZY` get an
                `__init__` that is compiled lazily; any other class is passed to the standard decorator.
        """
        if not options.get("frozen") or any(options.get(name) for name in NOT_LAZY) or not options.get("init", True):
            return dataclasses.dataclass(cls, **options)
        return (lambda of: _make(of, options)) if cls is None else _make(cls, options)


__all__ = ["dataclass"]
NOT_LAZY = ("order", "unsafe_hash", "weakref_slot")
"""Options that too few classes use to be worth supporting here."""


def _make(cls: type, options: dict[str, Any]) -> type:
    """Make the dataclass with its fields and slots, and with an `__init__` that compiles itself when needed."""
    own_names = set(vars(cls))
    compares, shows = options.get("eq", True), options.get("repr", True)
    overridden = options | {"init": False, "repr": False, "eq": False, "frozen": False}
    new_cls: Any = dataclasses.dataclass(**overridden)(cls)
    new_cls.__init__ = _lazy_init(new_cls)
    new_cls.__signature__ = _SignatureOfFields()
    new_cls.__setattr__, new_cls.__delattr__ = _set, _delete
    if options.get("slots"):
        new_cls.__getstate__, new_cls.__setstate__ = _state, _restore
    if shows and "__repr__" not in own_names:
        new_cls.__repr__ = _repr
    if compares and "__eq__" not in own_names:
        new_cls.__eq__ = _with_name("__eq__", new_cls, _eq(new_cls))
    if compares and ("__hash__" not in own_names or (vars(cls)["__hash__"] is None and "__eq__" in own_names)):
        new_cls.__hash__ = _with_name("__hash__", new_cls, _hash(new_cls))
    return new_cls  # type: ignore[no-any-return]


FEW = 16
"""Number of instances up to which setting their fields one by one is faster than compiling `__init__`."""


def _with_name(name: str, cls: Any, method: Any) -> Any:
    method.__name__, method.__qualname__, method.__module__ = name, f"{cls.__qualname__}.{name}", cls.__module__
    return method


def _lazy_init(cls: Any) -> Callable[..., None]:
    """An `__init__` that sets the fields by name, and replaces itself by a compiled one after `FEW` instances.

    The compiled one also handles all other calls: positional arguments and mistakes, so that the errors are those of a
    function with these arguments.
    """
    instances = 0

    def init(self: Any, /, *args: Any, **kwargs: Any) -> None:
        nonlocal instances
        instances += 1
        if instances <= FEW and not args and _set_fields(self, fields(cls), kwargs):
            if hasattr(cls, "__post_init__"):
                self.__post_init__()
            return
        compiled = _with_name("__init__", cls, _init(cls))
        cls.__init__ = compiled
        compiled(self, *args, **kwargs)

    return _with_name("__init__", cls, init)  # type: ignore[no-any-return]


def _set_fields(self: Any, all_fields: tuple[Field[Any], ...], kwargs: dict[str, Any]) -> bool:
    """Set the fields; return whether there was a value for each field and a field for each value."""
    used = 0
    for field in all_fields:
        name = field.name
        if field.init and name in kwargs:
            _fill(self, name, kwargs[name])
            used += 1
        elif field.default is not MISSING:
            _fill(self, name, field.default)
        elif field.default_factory is not MISSING:
            _fill(self, name, field.default_factory())
        elif field.init:
            return False
    return used == len(kwargs)


_fill = object.__setattr__


def _method(arguments: str, lines: list[str], names: dict[str, Any]) -> Callable[..., Any]:
    """Compile a function from lines of source; `names` is its global namespace."""
    exec(f"def method({arguments}):\n" + "\n".join(f" {line}" for line in lines), names)
    return names["method"]  # type: ignore[no-any-return]


def _init(cls: Any) -> Callable[..., Any]:
    names: dict[str, Any] = {"_set": object.__setattr__, "_missing": MISSING}
    by_place: list[str] = ["self"]
    by_name: list[str] = []
    lines: list[str] = []
    for number, field in enumerate(fields(cls)):
        default = f"_default_{number}"
        argument, value = field.name, field.name
        if field.default is not MISSING:
            names[default] = field.default
            argument, value = f"{field.name}={default}", field.name if field.init else default
        elif field.default_factory is not MISSING:
            names[default] = field.default_factory
            new_default = f"{default}()"
            argument = f"{field.name}=_missing"
            value = f"{new_default} if {field.name} is _missing else {field.name}" if field.init else new_default
        elif not field.init:
            continue
        if field.init:
            (by_name if field.kw_only else by_place).append(argument)
        lines.append(f"_set(self, {field.name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    return _method(", ".join([*by_place, *(["*", *by_name] if by_name else [])]), lines or ["pass"], names)


def _eq(cls: Any) -> Callable[[Any, Any], Any]:
    values = _values([field.name for field in fields(cls) if field.compare])

    def is_equal(self: Any, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return is_equal


def _hash(cls: Any) -> Callable[[Any], int]:
    values = _values([f.name for f in fields(cls) if (f.compare if f.hash is None else f.hash)])

    def hashed(self: Any) -> int:
        return hash(values(self))

    return hashed


def _values(names: list[str]) -> Callable[[Any], Any]:
    """A function that returns the named fields as a tuple; for a single name, `attrgetter` would return no tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda of: tuple(getattr(of, name) for name in names)


def _repr(self: Any) -> str:
    values = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{type(self).__qualname__}({values})"


def _set(_self: object, name: str, _value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(_self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for field, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


class _SignatureOfFields:
    """Descriptor that gives `inspect.signature` and `help` the signature of the class."""

    def __get__(self, _instance: object, cls: Any) -> Signature:
        by_place, by_name = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY
        init_fields = sorted((field for field in fields(cls) if field.init), key=lambda field: bool(field.kw_only))
        return Signature(
            [
                Parameter(
                    field.name,
                    by_name if field.kw_only else by_place,
                    default=_default(field),
                    annotation=field.type,
                )
                for field in init_fields
            ]
        )


def _default(field: Field[Any]) -> Any:
    """The default of a field as a standard dataclass shows it."""
    if field.default is not MISSING:
        return field.default
    return Parameter.empty if field.default_factory is MISSING else FACTORY


class _Factory:
    """Placeholder shown as the default of a field with a default factory."""

    def __repr__(self) -> str:
        return "<factory>"


FACTORY = _Factory()
