"""Frozen dataclasses whose `__init__` is compiled once many objects were made: of most classes there are few, or none.

A drop-in for `dataclasses.dataclass`: fields, `replace`, `asdict`, `fields`, pickling and equality are the same. The
standard one compiles six methods of every class at import, a good tenth of what a short command takes
(`make startup`; docs/decisions/0024-dataclasses-compile-when-used.md). Type checkers see the standard one.
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
            cls: the class; None: a decorator is returned.
            **options: of the standard one. Methods of frozen classes without an order are compiled when they are first
                called; any other class is handed to the standard one.
        """
        if not options.get("frozen") or any(options.get(name) for name in NOT_LAZY) or not options.get("init", True):
            return dataclasses.dataclass(cls, **options)
        return (lambda of: _made(of, options)) if cls is None else _made(cls, options)


__all__ = ["dataclass"]
NOT_LAZY = ("order", "unsafe_hash", "weakref_slot")
"""Options of which there are too few classes to be worth a way of their own."""


def _made(cls: type, options: dict[str, Any]) -> type:
    """A class with its fields and slots, and methods that compile themselves."""
    own = set(vars(cls))
    compares, shows = options.get("eq", True), options.get("repr", True)
    asked = options | {"init": False, "repr": False, "eq": False, "frozen": False}
    made: Any = dataclasses.dataclass(**asked)(cls)
    made.__init__ = _filling(made)
    made.__signature__ = _SignatureOfFields()
    made.__setattr__, made.__delattr__ = _set, _delete
    if options.get("slots"):
        made.__getstate__, made.__setstate__ = _state, _restore
    if shows and "__repr__" not in own:
        made.__repr__ = _shown
    if compares and "__eq__" not in own:
        made.__eq__ = _named("__eq__", made, _eq(made))
    if compares and ("__hash__" not in own or (vars(cls)["__hash__"] is None and "__eq__" in own)):
        made.__hash__ = _named("__hash__", made, _hash(made))
    return made  # type: ignore[no-any-return]


FEW = 16
"""Objects of a class up to which filling in their fields one by one takes less time than to compile `__init__`."""


def _named(name: str, cls: Any, method: Any) -> Any:
    method.__name__, method.__qualname__, method.__module__ = name, f"{cls.__qualname__}.{name}", cls.__module__
    return method


def _filling(cls: Any) -> Callable[..., None]:
    """An `__init__` that fills in the fields by their names, and puts a compiled one in its place after `FEW` objects.

    The compiled one also takes every call that is more than that: values by their place, and mistakes, so that the
    errors are those of a function with these arguments.
    """
    made = 0

    def init(self: Any, /, *given: Any, **named: Any) -> None:
        nonlocal made
        made += 1
        if made <= FEW and not given and _filled(self, fields(cls), named):
            if hasattr(cls, "__post_init__"):
                self.__post_init__()
            return
        compiled = _named("__init__", cls, _init(cls))
        cls.__init__ = compiled
        compiled(self, *given, **named)

    return _named("__init__", cls, init)  # type: ignore[no-any-return]


def _filled(self: Any, known: tuple[Field[Any], ...], named: dict[str, Any]) -> bool:
    """Fill in the fields; whether there was a value for each, and a field for each value."""
    taken = 0
    for field in known:
        name = field.name
        if field.init and name in named:
            _fill(self, name, named[name])
            taken += 1
        elif field.default is not MISSING:
            _fill(self, name, field.default)
        elif field.default_factory is not MISSING:
            _fill(self, name, field.default_factory())
        elif field.init:
            return False
    return taken == len(named)


_fill = object.__setattr__


def _method(arguments: str, lines: list[str], names: dict[str, Any]) -> Callable[..., Any]:
    """Compile a function of some lines; `names` are what it can see."""
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
            made = f"{default}()"
            argument = f"{field.name}=_missing"
            value = f"{made} if {field.name} is _missing else {field.name}" if field.init else made
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
    """The values of some fields as a tuple; `attrgetter` gives one of several alone."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda of: tuple(getattr(of, name) for name in names)


def _shown(self: Any) -> str:
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
    """What `inspect.signature` and `help` say of the class."""

    def __get__(self, _instance: object, cls: Any) -> Signature:
        by_place, by_name = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY
        taken = sorted((field for field in fields(cls) if field.init), key=lambda field: bool(field.kw_only))
        return Signature(
            [
                Parameter(
                    field.name,
                    by_name if field.kw_only else by_place,
                    default=_default(field),
                    annotation=field.type,
                )
                for field in taken
            ]
        )


def _default(field: Field[Any]) -> Any:
    """As the standard one shows it."""
    if field.default is not MISSING:
        return field.default
    return Parameter.empty if field.default_factory is MISSING else FACTORY


class _Factory:
    """The default of a field that is made anew for each object."""

    def __repr__(self) -> str:
        return "<factory>"


FACTORY = _Factory()
