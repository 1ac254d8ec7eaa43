"""Names of models and GPUs as people write them, from their ids."""

from __future__ import annotations

import re

_KNOWN = {
    **{name: name.upper() for name in ("gpt", "opt", "mpt", "bert", "bloom", "rtx", "sxm", "nvl", "gh", "pcie")},
    "deepseek": "DeepSeek",
    "olmo": "OLMo",
    "neox": "NeoX",
    "pcie": "PCIe",
    **{name.lower(): name for name in ("ResNet", "ResNeXt", "DenseNet", "VGG")},
}


def _pretty_word(word: str) -> str:
    if word in _KNOWN:
        return _KNOWN[word]
    if re.fullmatch(r"\d+gb", word):
        return f"{word[:-2]}\u00a0GB"
    depth = re.fullmatch(r"(resnet|resnext|densenet|vgg)(\d+\w*)", word)
    if depth:
        return f"{_KNOWN[depth[1]]}-{depth[2]}"
    if re.fullmatch(r"\d+x\d+b|[a-z]?\d[\d.]*[a-z]*", word):
        return word.upper().replace("X", "x") if re.match(r"\d+x", word) else word.upper()
    return word[:1].upper() + word[1:]


def pretty_slug(name: str) -> str:
    """`llama-3.1-70b` as `Llama-3.1-70B`; a text that is not a slug is unchanged."""
    if not re.fullmatch(r"[a-z0-9.]+(-[a-z0-9.]+)*", name):
        return name
    return "-".join(_pretty_word(word) for word in name.split("-"))


def pretty_gpu(name: str) -> str:
    """`h100-sxm5-80gb` as `H100 SXM5 80 GB`; a CPU, which stands in no catalogue, as `local CPU`."""
    if name == "cpu-local":
        return "local CPU"
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        return name
    return " ".join(
        word.upper() if re.fullmatch(r"[a-z]+\d+[a-z]*", word) else _pretty_word(word) for word in name.split("-")
    )
