"""The shape of a model from its `config.json`, in the format of Hugging Face, or of timm for a vision model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath

from planner.errors import InputFileError
from planner.evidence import Evidence, EvidenceKind
from planner.models.huggingface_families import DEFAULTS, FAMILIES, OTHER_NAMES
from planner.models.huggingface_json import ConfigJson, parse_config
from planner.models.images.catalogue import shape_of_images
from planner.models.images.configs import FAMILIES as IMAGE_FAMILIES
from planner.models.images.configs import image_network_of_config
from planner.models.shape import ModelShape
from planner.rows import near_names


def shape_from_config(text: str, name: str) -> ModelShape:
    """The shape that a `config.json` describes.

    `context` is the length before any extension of the positions if the file states it, otherwise at most 4096, since
    the longest sequence that a model accepts is not the length with which it was trained.

    Args:
        text: content of the file.
        name: path of the file, for errors and for the model's name.

    Raises:
        InputFileError: the file is not JSON or is cut off, a key is missing or has the wrong type, or the architecture
            is unknown.
    """
    config = parse_config(text, name)
    images = image_network_of_config(config)
    if images is not None:
        network, family = images
        label = _label(config, name, family)
        what = f"operations of {label} ({family})"
        evidence = Evidence(id=f"model:{label}", kind=EvidenceKind.GIVEN, what=what, source=name)
        return replace(shape_of_images(network, evidence), name=label)
    part = ", its language model alone" if config.inner("text_config").values else ""
    config, family = _family(config)
    shape = FAMILIES[family](config.over(DEFAULTS.get(family, {})))
    label = _label(config, name, family)
    what = f"shape of {label} ({family}{part})"
    evidence = Evidence(id=f"model:{label}", kind=EvidenceKind.GIVEN, what=what, source=name)
    return replace(shape, name=label, evidence=evidence)


TIED = "tie_word_embeddings"
"""Key for tied embeddings. For a multimodal model the outer key counts, not that of the text part, since transformers
reads the configuration of the whole model."""
NAME = "_name_or_path"
"""Key for the name of the model, which is that of the whole."""
WITHOUT_LANGUAGE_MODEL = (
    "bert",
    "roberta",
    "camembert",
    "xlm-roberta",
    "distilbert",
    "modernbert",
    "t5",
    "mt5",
    "umt5",
)
"""Families that read text for another part of a multimodal model, for example of a detector, and do not write it."""
MISSPELT = 0.85
"""Similarity (difflib) from which a name counts as misspelt; `mamba` is not a misspelt `bamba`."""


def _family(config: ConfigJson) -> tuple[ConfigJson, str]:
    """The object that holds the shape, and the family to which it belongs.

    The language model of a multimodal model has the family that its own part of the file states, whatever it is a part
    of. If the whole is known, its keys count where the part lacks them.
    """
    given = config.text("model_type")
    if given is None:
        raise config.fail("model_type", "the name of an architecture, for example `llama`")
    part = config.inner("text_config")
    named = part.text("model_type")
    family, own = (OTHER_NAMES.get(name or "", name or "") for name in (given, named))
    tied = {key: config.values[key] for key in (TIED, NAME) if config.values.get(key) is not None}
    if family in FAMILIES and (named in (None, given, f"{given}_text") or own in FAMILIES):
        return ConfigJson(config.file, {**config.values, **part.values, **tied}), own if own in FAMILIES else family
    if family not in FAMILIES and own in FAMILIES and own not in WITHOUT_LANGUAGE_MODEL:
        return ConfigJson(config.file, {**part.values, **tied}), own
    raise (
        _unknown(config.file, "model_type", given)
        if family not in FAMILIES
        else _unknown(config.file, "text_config.model_type", named or "")
    )


def _unknown(file: str, key: str, given: str) -> InputFileError:
    """The error for an architecture that is not known, with the known ones."""
    known = ", ".join((*FAMILIES, *IMAGE_FAMILIES))
    near = near_names(given, (*FAMILIES, *IMAGE_FAMILIES), limit=1, cutoff=MISSPELT)
    offer = f"closest is `{near[0]}`; " if near else ""
    return InputFileError(
        f"{file}: {key}: expected a known architecture, found `{given}`",
        hint=f"{offer}known architectures are {known}; or give its size with --params",
    )


def _label(config: ConfigJson, name: str, family: str) -> str:
    """The name of the model: the one in the file, else the name of the file or its folder, else the family."""
    named = config.text(NAME)
    path = PurePath(name)
    stem = path.parent.name if path.stem == "config" else path.stem
    return PurePath(named).name if named and PurePath(named).name else stem or family
