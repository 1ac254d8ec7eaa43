"""Frozen dataclasses that leave the work of the standard decorator until something needs it, which is often never.

This is a drop-in replacement for `dataclasses.dataclass`: fields, `replace`, `asdict`, `fields`, pickling and equality
behave the same. The standard decorator inspects every field and compiles six methods of every class at import, which
takes a tenth of a short command's time (`make startup`, docs/decisions/0024-dataclasses-compile-when-used.md).
Here, the standard decorator creates the fields when they are first asked for, and an `__init__` is compiled only after
many instances; most classes have few instances or none. Type checkers see the standard decorator.
"""

from __future__ import annotations

import dataclasses
from _thread import RLock
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from inspect import Parameter, Signature, get_annotations
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        """Make a class a dataclass; see `dataclasses.dataclass`.

        Args:
            cls: the class; None to get a decorator.
            **options: options of the standard decorator. Frozen classes with slots, no options beside `LAZY` and no
                annotations of `SPECIAL` kinds are completed lazily; any other class is passed to the standard
                decorator.
        """
        if not (options.get("frozen") and options.get("slots")) or not options.keys() <= LAZY:
            return dataclasses.dataclass(cls, **options)
        return (lambda of: _make(of, options)) if cls is None else _make(cls, options)


__all__ = ["dataclass"]
LAZY = frozenset({"frozen", "slots", "kw_only", "eq", "repr"})
"""Options that are supported here; too few classes use the others."""
SPECIAL = ("ClassVar", "InitVar", "KW_ONLY")
"""Kinds of annotations that declare no ordinary field; too few classes have them."""


def _make(cls: type, options: dict[str, Any]) -> type:
    """Make the dataclass: a class with slots whose fields and `__init__` are completed when they are needed."""
    annotations = get_annotations(cls)
    own = vars(cls)
    bases = [vars(base) for base in reversed(cls.__mro__[1:-1])]
    is_special = any(kind in annotation for annotation in map(str, annotations.values()) for kind in SPECIAL)
    if is_special or any("__dataclass_fields__" in base and "__declared__" not in base for base in bases):
        return dataclasses.dataclass(**options)(cls)
    declared = {name: value for base in bases for name, value in base.get("__declared__", {}).items()}
    inherited = tuple(declared)
    declared |= {name: own.get(name, MISSING) for name in annotations}
    standard = _Standard(cls, {"kw_only": options.get("kw_only", False)})
    made: dict[str, Any] = {
        name: _FromStandard(name, standard) for name in ("__dataclass_fields__", "__dataclass_params__")
    }
    made |= {
        "__slots__": tuple(name for name in annotations if name not in inherited), "__declared__": declared,
        "__qualname__": cls.__qualname__, "__signature__": _SignatureOfFields(),
        "__setattr__": _set, "__delattr__": _delete, "__getstate__": _state, "__setstate__": _restore,
    }  # fmt: skip
    made["__init__"] = _with_name("__init__", cls, _lazy_init(standard, declared))
    if "__match_args__" not in own:
        made["__match_args__"] = _FromStandard("__match_args__", standard)
    if options.get("repr", True) and "__repr__" not in own:
        made["__repr__"] = _repr
    if options.get("eq", True):
        if "__eq__" not in own:
            made["__eq__"] = _with_name("__eq__", cls, _eq(declared))
        if own.get("__hash__") is None:  # Python sets it to None where a class defines equality alone
            made["__hash__"] = _with_name("__hash__", cls, _hash(declared))
    kept = {name: value for name, value in own.items() if name not in declared and name not in OF_INSTANCES}
    new_cls: Any = type(cls)(cls.__name__, cls.__bases__, kept | made)
    standard.slotted = new_cls
    return new_cls  # type: ignore[no-any-return]


OF_INSTANCES = ("__dict__", "__weakref__")
"""Attributes of a class without slots that one with slots must not inherit."""


COMPLETING = RLock()
"""Held while a class is completed."""


class _Standard:
    """The class as written, which the standard decorator completes once something needs its fields."""

    def __init__(self, cls: type, options: dict[str, Any]) -> None:
        self.slotted: Any = None
        """The class made from it."""
        self._cls, self._options = cls, options
        self._completed: Any = None

    def complete(self) -> Any:
        """Return the standard dataclass, after moving its fields to the class made from it.

        The standard decorator must see the class as written, and it changes that class: only one thread may run it.
        """
        with COMPLETING:
            if self._completed is not None:
                return self._completed
            cls: Any = self._cls
            annotations = get_annotations(cls)
            cls.__annotations__ = dict.fromkeys(annotations, object)  # it would parse each text, for `SPECIAL` kinds
            cls = dataclasses.dataclass(init=False, repr=False, eq=False, **self._options)(cls)
            cls.__annotations__ = annotations
            for name, annotation in annotations.items():
                vars(cls)["__dataclass_fields__"][name].type = annotation
            for name, value in vars(self.slotted).copy().items():
                if isinstance(value, _FromStandard):
                    setattr(self.slotted, name, vars(cls)[name])
            self._completed = cls
        return cls


class _FromStandard:
    """An attribute that the standard decorator gives a class, computed on first access."""

    def __init__(self, name: str, standard: _Standard) -> None:
        self._name, self._standard = name, standard

    def __get__(self, _instance: object, _cls: Any) -> Any:
        return vars(self._standard.complete())[self._name]


FEW = 100
"""Number of instances up to which setting their fields one by one is faster than compiling `__init__`."""


def _with_name(name: str, cls: Any, method: Any) -> Any:
    method.__name__, method.__qualname__, method.__module__ = name, f"{cls.__qualname__}.{name}", cls.__module__
    return method


def _lazy_init(standard: _Standard, declared: dict[str, Any]) -> Callable[..., None]:
    """An `__init__` that sets the fields by name, and replaces itself by a compiled one after `FEW` instances.

    The compiled one also handles all other calls: positional arguments and mistakes, so that the errors are those of a
    function with these arguments.
    """
    instances = 0
    defaults: dict[str, Any] = {}
    factories: dict[str, Callable[[], Any]] = {}
    computed: set[str] = set()
    is_followed_up = False

    def init(self: Any, /, *args: Any, **kwargs: Any) -> None:
        nonlocal instances, is_followed_up
        if not instances:
            _sort(declared, defaults, factories, computed)
            is_followed_up = hasattr(standard.slotted, "__post_init__")
        instances += 1
        if instances <= FEW and not args and not (computed and computed & kwargs.keys()):
            values = kwargs if len(kwargs) == len(declared) else defaults | kwargs
            for name, make in factories.items():
                if name not in kwargs:
                    values[name] = make()
            if values.keys() == declared.keys():
                for name, value in values.items():
                    _fill(self, name, value)
                if is_followed_up:
                    self.__post_init__()
                return
        compiled = _with_name("__init__", standard.slotted, _init(standard.slotted))
        standard.slotted.__init__ = compiled
        compiled(self, *args, **kwargs)

    return init


def _sort(
    declared: dict[str, Any], defaults: dict[str, Any], factories: dict[str, Callable[[], Any]], computed: set[str]
) -> None:
    """Sort declared fields by how they get a value that is not given: a default or a new one; or if none may be."""
    for name, value in declared.items():
        if not isinstance(value, Field):
            defaults |= {} if value is MISSING else {name: value}
            continue
        if value.default is not MISSING:
            defaults[name] = value.default
        elif value.default_factory is not MISSING:
            factories[name] = value.default_factory
        if not value.init:
            computed.add(name)


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


def _eq(declared: dict[str, Any]) -> Callable[[Any, Any], Any]:
    values = _values([name for name, value in declared.items() if not isinstance(value, Field) or value.compare])

    def is_equal(self: Any, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return is_equal


def _hash(declared: dict[str, Any]) -> Callable[[Any], int]:
    values = _values([name for name, value in declared.items() if not isinstance(value, Field) or _is_hashed(value)])

    def hashed(self: Any) -> int:
        return hash(values(self))

    return hashed


def _is_hashed(field: Field[Any]) -> bool:
    return field.compare if field.hash is None else field.hash


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
