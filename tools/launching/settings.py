"""What the frameworks of `mpplan export --launch` take, as data for the tests (`make frameworks`).

For each framework that can be imported, the settings are read from its own parser and written to
`tests/reports/launch/schemas/NAME.json`: every name with its types and, if it has them, its choices. Megatron-LM is not
a package: `--megatron` gives the folder of a checkout. Only names are kept, and none of the framework's code.

    python -m tools.launching.settings --megatron ~/Megatron-LM accelerate megatron
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import json
import sys
import types
import typing
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "reports" / "launch" / "schemas"

Setting = dict[str, Any]
"""`{"types": […], "choices": […]}` of one setting."""
NAMED = {"str": "str", "int": "int", "float": "float", "bool": "bool", "NoneType": "null", "list": "list",
         "dict": "dict", "tuple": "list", "set": "list"}  # fmt: skip


def setting_of(annotation: Any) -> Setting:
    """Return types and choices of a Python annotation; `any` if it restricts nothing that a file could violate."""
    kinds: set[str] = set()
    choices: list[Any] = []
    open_ended = _collect(annotation, kinds, choices)
    setting: Setting = {"types": sorted(kinds)}
    if choices and not open_ended:
        setting["choices"] = choices
    return setting


def _collect(annotation: Any, kinds: set[str], choices: list[Any]) -> bool:
    """Add what an annotation accepts; return True if it accepts more than its choices."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _collect(typing.get_args(annotation)[0], kinds, choices)
    if origin in (typing.Union, types.UnionType):
        parts = [_collect(part, kinds, choices) for part in typing.get_args(annotation)]  # all, not only up to one
        return any(parts)
    if origin is typing.Literal:
        values = typing.get_args(annotation)
        kinds.update(NAMED[type(value).__name__] for value in values)
        choices.extend(values)
        return False
    plain = origin or annotation
    if isinstance(plain, type) and issubclass(plain, enum.Enum):
        values = tuple(member.value for member in plain)
        kinds.update(NAMED.get(type(value).__name__, "any") for value in values)
        choices.extend(value for value in values if isinstance(value, str | int))
        return False
    name = getattr(plain, "__name__", "any")
    kinds.add("dict" if _is_section(plain) else NAMED.get(name, "any"))
    return plain not in (types.NoneType, bool)  # a boolean beside choices does not open them


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and (dataclasses.is_dataclass(kind) or hasattr(kind, "model_fields"))


def sections(kind: Any, prefix: str = "") -> Iterator[tuple[str, Setting]]:
    """Yield the settings of a dataclass or pydantic model and of nested ones, with names joined by dots."""
    for name, annotation in _fields(kind):
        setting = setting_of(annotation)
        yield f"{prefix}{name}", setting
        for inner in _sections_in(annotation):
            yield from sections(inner, f"{prefix}{name}.")


def _fields(kind: Any) -> Iterator[tuple[str, Any]]:
    if hasattr(kind, "model_fields"):
        for name, field in kind.model_fields.items():
            yield field.alias or name, field.annotation
        return
    hints = typing.get_type_hints(kind)
    yield from ((field.name, hints[field.name]) for field in dataclasses.fields(kind))


def _sections_in(annotation: Any) -> list[Any]:
    if _is_section(annotation):
        return [annotation]
    if typing.get_origin(annotation) in (typing.Union, types.UnionType, typing.Annotated):
        return [inner for part in typing.get_args(annotation) for inner in _sections_in(part)]
    return []


def argument(action: argparse.Action) -> Setting:
    """Return what a command-line argument takes: its type, choices, and whether it takes none or several values."""
    kind = getattr(action.type, "__name__", None)
    number = action.nargs if action.nargs in (0, "+", "*", "?") else 1
    setting: Setting = {"types": [NAMED.get(kind or "str", "any")], "values": number}
    if action.choices and all(isinstance(choice, str | int) for choice in action.choices):
        setting["choices"] = list(action.choices)
    return setting


def accelerate() -> dict[str, Setting]:
    """Return the keys of the YAML file, whose sections hold arguments of `accelerate launch` and its variables."""
    config = import_module("accelerate.commands.config.config_args").ClusterConfig
    parser = import_module("accelerate.commands.launch").launch_command_parser()
    keys = dict(sections(config))
    kinds = import_module("accelerate.utils").DistributedType
    keys["distributed_type"]["choices"] = [kind.value for kind in kinds]
    groups = {"fsdp_config": "fsdp_", "fp8_config": "fp8_", "parallelism_config": "parallelism_config_"}
    deepspeed = ("zero_stage", "gradient_", "offload_", "zero3_", "deepspeed_")
    for action in parser._actions:
        if action.dest == "mixed_precision":
            keys["mixed_precision"] = _loose(argument(action))
        for group, start in groups.items():
            if action.dest.startswith(start):
                keys[f"{group}.{action.dest}"] = _loose(argument(action))
        if action.dest.startswith(deepspeed):
            keys[f"deepspeed_config.{action.dest}"] = _loose(argument(action))
    # Choices on the command line are in lower case, but the file's values are passed to the processes unchanged.
    backends = import_module("accelerate.utils.dataclasses").FP8BackendType
    keys["fp8_config.fp8_backend"] = {"types": ["str"], "choices": [backend.value for backend in backends]}
    recipe = import_module("accelerate.utils").TERecipeKwargs
    for name, setting in sections(recipe):  # every `fp8_…` key becomes a variable, even without a flag
        keys.setdefault(f"fp8_config.fp8_{name.removeprefix('fp8_')}", setting)
    return keys


def _loose(setting: Setting) -> Setting:
    """Return an argument as a YAML setting: text parsed by the command line may also be a boolean or a number there."""
    choices = setting.get("choices")
    if choices and all(str(choice).isdigit() for choice in choices):
        return {"types": ["int"], "choices": [int(choice) for choice in choices]}
    kinds = {*setting["types"], "bool"} if setting["types"] == ["str"] else set(setting["types"])
    return {"types": sorted(kinds), **({"choices": choices} if choices else {})}


def torchtitan() -> dict[str, Setting]:
    """Return the tables and keys of the job configuration."""
    return dict(sections(import_module("torchtitan.config.job_config").JobConfig))


def axolotl() -> dict[str, Setting]:
    """Return the keys of the YAML file."""
    return dict(sections(import_module("axolotl.utils.schemas.config").AxolotlInputConfig))


class _Asked(dict[str, Any]):
    """A configuration that records the keys that its reader looks up."""

    def __init__(self, given: dict[str, Any], names: set[str]) -> None:
        super().__init__(given)
        self.names = names

    def __copy__(self) -> _Asked:
        return _Asked(dict(self), self.names)

    def get(self, key: str, default: Any = None) -> Any:
        self.names.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.names.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.names.add(str(key))
        return super().__contains__(key)

    def keys(self) -> Any:
        return self  # `name in config.keys()` is a look-up as well


def deepspeed() -> dict[str, Setting]:
    """Return the keys of the JSON file: those that its reader looks up, and the fields of model sections."""
    config = import_module("deepspeed.runtime.config")
    names: set[str] = set()
    config.DeepSpeedConfig(_Asked({"train_batch_size": 1}, names))
    keys: dict[str, Setting] = {name: {"types": ["any"]} for name in sorted(names) if isinstance(name, str)}
    for name in ("sequence_parallel_size", "data_parallel_size"):  # looked up by `deepspeed.initialize`
        keys[name] = {"types": ["int"]}
    precision = import_module("deepspeed.runtime.precision_config")
    models = {
        "zero_optimization": import_module("deepspeed.runtime.zero.config").DeepSpeedZeroConfig,
        "bf16": precision.DeepSpeedBF16Config,
        "fp16": precision.DeepSpeedFP16Config,
        "tensor_parallel": import_module("deepspeed.runtime.tensor_parallel.config").TPTrainingConfig,
        "expert_parallel": import_module("deepspeed.module_inject.auto_ep_config").AutoEPConfig,
    }
    for name, model in models.items():
        keys.update(sections(model, f"{name}."))
    constants = import_module("deepspeed.runtime.constants")
    checkpointing = import_module("deepspeed.runtime.activation_checkpointing.config")
    for name, inner in {
        "torch_autocast": (constants.TORCH_AUTOCAST_ENABLED, constants.TORCH_AUTOCAST_DTYPE),
        "data_types": (constants.GRAD_ACCUM_DTYPE,),
        "optimizer": (constants.TYPE, constants.OPTIMIZER_PARAMS),
        "activation_checkpointing": tuple(checkpointing.ACT_CHKPT_DEFAULT),
        "pipeline": tuple(config.get_pipeline_config({})),
    }.items():
        keys.update({f"{name}.{key}": {"types": ["any"]} for key in inner})
    return keys


def skypilot() -> dict[str, Setting]:
    """Return the keys of a task from SkyPilot's JSON Schemas, as names with types."""
    schemas = import_module("sky.utils.schemas")
    keys = dict(_json_schema(schemas.get_task_schema()))
    keys.update(_json_schema(schemas.get_resources_schema(), "resources."))
    return keys


JSON_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "null",
              "array": "list", "object": "dict"}  # fmt: skip


def _json_schema(schema: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Setting]]:
    for name, inner in schema.get("properties", {}).items():
        forms = [inner, *inner.get("anyOf", ()), *inner.get("oneOf", ())]
        kinds: set[str] = set()
        for form in forms:
            types = form.get("type", [])
            kinds.update(JSON_TYPES[kind] for kind in ([types] if isinstance(types, str) else types))
            if name != "config":  # settings of clouds, which no plan has
                yield from _json_schema(form, f"{prefix}{name}.")
        yield f"{prefix}{name}", {"types": sorted(kinds) or ["any"]}


def megatron() -> dict[str, Setting]:
    """Return the arguments of `pretrain_gpt.py`, by flag."""
    if not hasattr(typing, "override"):  # Python 3.11
        setattr(typing, "override", import_module("typing_extensions").override)  # noqa: B010
    parser = import_module("megatron.training.arguments").add_megatron_arguments(argparse.ArgumentParser())
    return {flag: argument(action) for action in parser._actions for flag in action.option_strings}


READERS: dict[str, Callable[[], dict[str, Setting]]] = {
    "megatron": megatron, "torchtitan": torchtitan, "deepspeed": deepspeed, "accelerate": accelerate,
    "axolotl": axolotl, "skypilot": skypilot,
}  # fmt: skip


def write(name: str, release: str, source: str) -> Path:
    """Read a framework's settings from its parser and write them to a file."""
    keys = READERS[name]()
    about = {"framework": name, "release": release, "source": source, "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    path = FOLDER / f"{name}.json"
    rows = ",\n".join(f'    "{key}": {json.dumps(keys[key])}' for key in sorted(keys))
    head = json.dumps(about, indent=2).removesuffix("\n}")
    path.write_text(f'{head},\n  "settings": {{\n{rows}\n  }}\n}}\n', encoding="utf-8")
    return path


def main() -> int:
    """Write the settings of the named frameworks, or of all that can be imported."""
    from reports.launch import FRAMEWORKS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", choices=[[], *READERS], help="default: all that are importable")
    parser.add_argument("--megatron", metavar="FOLDER", help="a checkout of Megatron-LM")
    parser.add_argument("--commit", default="", help="of that checkout")
    given = parser.parse_args()
    if given.megatron:
        sys.path.insert(0, given.megatron)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for framework in FRAMEWORKS:
        if given.names and framework.name not in given.names:
            continue
        try:
            release = given.commit if framework.name == "megatron" else version(framework.name)
            path = write(framework.name, release, framework.source)
        except ImportError as error:
            sys.stderr.write(f"{framework.name}: not importable here ({error})\n")
            continue
        sys.stdout.write(f"{path.name}: {release}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
