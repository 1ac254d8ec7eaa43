"""The model of a question: derived from a number of parameters, from the catalogue, or from a config.json."""

from __future__ import annotations

import os
from pathlib import Path

from planner.errors import Message, UsageError
from planner.files import read_text
from planner.models.shape import ModelShape
from planner.question.asked import Reader
from planner.question.inputs import MODEL, PARAMS
from planner.question.usual_names import taken_for, usual_names
from planner.records.home import user_path
from planner.rows import compact, near_names, unknown_name
from planner.units import GIGA


def resolve_model(read: Reader) -> ModelShape:
    """Return the model of `--params` or `--model`, recorded with its shape.

    Raises:
        UsageError: neither or both were given, the name is unknown, or the file cannot be read.
        InputFileError: the config.json is invalid.
    """
    params, name = read.value(PARAMS), read.text(MODEL)
    if params is not None and name is not None:
        raise UsageError(f"both {PARAMS.flag} and {MODEL.flag} were given", hint=_one_model())
    if params is not None:
        from planner.models.from_params import shape_from_params  # only the kind of model requested is loaded

        shape = shape_from_params(params)
        read.note(PARAMS, params, note=Message.of("note.derived_shape", shape=describe(shape)))
        return shape
    if name is None:
        raise UsageError("no model was given", hint=_one_model())
    path = _config_of(name)
    if path is None:
        return _model_of_catalogue(read, name)
    shape = _model_of_file(path)
    read.note(MODEL, shape.name, note=describe(shape))
    return shape


def _config_of(name: str) -> Path | None:
    """Return the path of the config.json that a name means, as a file or a folder; None for a catalogue name.

    A name of the catalogue stays one even where the working folder contains a folder of the same name; a name that is
    only found without a word at its end (`Qwen2.5-7B-Instruct`) is that of the folder.
    """
    path = user_path(name)
    if path.suffix == ".json" or os.path.isfile(path):
        return path
    if not os.path.isdir(path):
        return None
    from planner.models.catalogue import MODELS

    is_path = path.name != name
    if not is_path and (MODELS.get(name) or usual_names("model").get(compact(name))):
        return None
    return path / "config.json"


def _model_of_catalogue(read: Reader, name: str) -> ModelShape:
    """Return the model of a name, or the usual one of a short name, which the answer then says."""
    from planner.models.catalogue import find_model, load_models, model_named
    from planner.models.images.catalogue import image_model_named, load_image_models

    images = None if model_named(name) is not None else image_model_named(name)
    if images is not None:
        read.note(MODEL, images.name, note=describe(images))
        return images
    usual = taken_for("model", name, load_models())
    if usual is None and model_named(name) is None:
        known = (*load_models(), *load_image_models())
        images_near = any(near in load_image_models() for near in near_names(name, known))
        raise unknown_name("model", name, known, "mpplan models --images" if images_near else "mpplan models")
    if usual is None:
        shape = find_model(name)
        read.note(MODEL, shape.name, note=describe(shape))
        return shape
    shape, taken = find_model(usual[0]), usual[1]
    note = Message.of("note.usual_model", usual=taken, shape=describe(shape))
    read.note(MODEL, shape.name, "derived", note)
    return shape


def _one_model() -> str:
    return f"give one: `{PARAMS.flag} 70B`, `{MODEL.flag} llama-3.1-70b` or `{MODEL.flag} path/to/config.json`"


def _model_of_file(path: Path) -> ModelShape:
    """Return the shape that a config.json describes."""
    name = str(path)
    if not os.path.isfile(path):
        raise UsageError(
            f"no such file: `{name}`", hint="pass a config.json from Hugging Face or timm, or a catalogue name"
        )
    text = read_text(path, name)
    from planner.models.huggingface import shape_from_config

    return shape_from_config(text, name)


def describe(shape: ModelShape) -> Message:
    """Describe a shape in one line."""
    if shape.network is not None:
        network = shape.network
        return Message.of(
            "note.image_model", params=network.params, gflop=network.flop_per_image / GIGA, pixels=network.image_size
        )
    ffn = Message.of("note.ffn", hidden=shape.ffn_hidden)
    if shape.experts:
        ffn = Message.of("note.experts", experts=shape.experts, hidden=shape.expert_ffn, top_k=shape.top_k)
    return Message.of(
        "note.shape",
        params=shape.params_total,
        layers=shape.layers,
        hidden=shape.hidden,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        ffn=ffn,
        vocab=shape.vocab,
    )
