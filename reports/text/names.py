"""Names of models and GPUs in their usual spelling, from their ids."""

from __future__ import annotations

import re

NO_BREAK = "\u00a0"

_AS_WRITTEN = (
    "BART", "BERT", "BLOOM", "BloombergGPT", "CodeLlama", "DBRX", "DeepSeek", "DenseNet", "DistilBERT", "ELECTRA",
    "ERNIE", "EXAONE", "GH", "GLM", "GPT", "InternLM", "InternLM2", "InternLM3", "LFM2", "LLM", "MiMo", "MiniMax",
    "ModernBERT", "MoE", "MPT", "MT", "NeoX", "NLG", "NVL", "OLMo", "OLMoE", "OPT", "OSS", "PaLM", "PCIe", "ResNet",
    "ResNeXt", "RoBERTa", "RTX", "SmolLM2", "SmolLM3", "StarCoder", "StarCoder2", "SXM", "TinyLlama", "VGG", "XL",
    "XLM",
)  # fmt: skip
_KNOWN = {name.lower(): name for name in _AS_WRITTEN}


def _pretty_word(word: str) -> str:
    if word in _KNOWN:
        return _KNOWN[word]
    if re.fullmatch(r"\d+gb", word):
        return f"{word[:-2]}{NO_BREAK}GB"
    depth = re.fullmatch(r"(resnet|resnext|densenet|vgg)(\d+\w*)", word)
    if depth:
        return f"{_KNOWN[depth[1]]}-{depth[2]}"
    if re.fullmatch(r"v\d+\.\d+", word):
        return word
    if re.fullmatch(r"\d+x\d+b|[a-z]?\d[\d.]*[a-z]*", word):
        return word.upper().replace("X", "x") if re.match(r"\d+x", word) else word.upper()
    return word[:1].upper() + word[1:]


def pretty_slug(name: str) -> str:
    """Convert `llama-3.1-70b` to `Llama-3.1-70B`; text that is not a slug is unchanged."""
    if not re.fullmatch(r"[a-z0-9.]+(-[a-z0-9.]+)*", name):
        return name
    return "-".join(_pretty_word(word) for word in name.split("-"))


_OF_GPUS = {
    **{name: name.upper() for name in ("gcd", "gtx", "pro", "rtx", "rx", "xt", "xtx")},
    "dgx2h": "DGX-2H", "hbm2e": "HBM2e", "ti": "Ti",
}  # fmt: skip
"""Words whose spelling differs between names of GPUs and names of models."""
_SERIES = re.compile(r"(gtx|rtx|rx)(\d+)|(\d{4})(ti|xtx?|gre)|(\d+)(w)")
"""Parts that are joined in an id and separate in the usual spelling: `rtx6000`, `7900xtx`, `500w`."""


def _gpu_word(word: str) -> str:
    if word in _OF_GPUS:
        return _OF_GPUS[word]
    apart = _SERIES.fullmatch(word)
    if apart:
        first, second = (part for part in apart.groups() if part)
        return f"{first.upper()}{NO_BREAK if second == 'w' else ' '}{_OF_GPUS.get(second, second.upper())}"
    return word.upper() if re.fullmatch(r"[a-z]+\d+[a-z]*", word) else _pretty_word(word)


def pretty_gpu(name: str) -> str:
    """Convert `h100-sxm5-80gb` to `H100 SXM5 80 GB`, `rx-7900xtx-24gb` to `RX 7900 XTX 24 GB`, `cpu-local` to words."""
    if name == "cpu-local":
        return "local CPU"
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        return name
    return " ".join(map(_gpu_word, name.split("-")))
