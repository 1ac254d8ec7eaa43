"""Columns of a run that hold words: the words that are understood, their spellings, and the words that say nothing.

A word that says nothing counts as blank, so that the documented default is taken and reported; `unknown_words` names
it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache

from planner.errors import Message
from planner.hardware.network import says_nothing
from planner.hardware.typed_network import read_typed_network
from planner.lazy import dataclass
from planner.text import shortened
from planner.training.method import METHOD_ROWS
from planner.training.recipe import ACT_CKPT

_STAGE_WORDS = (
    (r"full.?shard|zero.?3|fsdp(?!.*shard_grad)|hsdp|hybrid", 3),
    (r"shard_grad_op|zero.?2", 2),
    (r"distributed.?optim|zero.?1", 1),
    (r"\b(?:none|no)\b|ddp|zero.?0|horovod", 0),
)
_STAGE = re.compile(r"[0-3](?:\.0*)?")
"""A bare stage number; pandas writes the whole numbers of a column with a blank as `3.0`."""
_GROUP = (r"within (\d+)", r"fsdp2?-(\d+)", r"hsdp-(\d+)", r"(\d+)-way")

ATTENTION = {
    "naive": "naive", "eager": "naive", "flash": "flash", "sdpa": "flash", "flash_attention_2": "flash",
    "flash_attention_3": "flash",
}  # fmt: skip
"""Way to compute attention by word, including the words of transformers' `attn_implementation`."""

YES_NO = ("y", "yes", "n", "no")
"""Words of a yes-or-no column; blank: not stated."""
YES = YES_NO[:2]
"""The words that mean yes."""
YES_NO_COLUMNS = ("compile", "fused_loss", "in_backward")
_AS_YES_NO = {"true": "y", "1": "y", "1.0": "y", "false": "n", "0": "n", "0.0": "n"}
"""How programs write yes and no: pandas' `True`, or `1.0` where the column has a blank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """Meaning of a text such as `fsdp2-8` or `zero-1 within 8 GPUs`."""

    stage: int
    group: int | None
    """Data-parallel ranks that share one copy of the states; None: all of them."""
    in_gpus: bool = False
    """Whether the group is counted in GPUs, tensor-parallel ranks included (`zero-1 within 8 GPUs`)."""


def parse_sharding(text: str) -> Sharding | None:
    """Return stage and group of a ZeRO or FSDP description; None where it is blank or states no stage."""
    words = text.lower()
    if not words:
        return None
    if _STAGE.fullmatch(words):
        return Sharding(stage=int(words[0]), group=None, in_gpus=False)
    stage = next((stage for pattern, stage in _STAGE_WORDS if re.search(pattern, words)), None)
    if stage is None:
        return None
    group = next((int(match[1]) for p in _GROUP if (match := re.search(p, words))), None)
    return Sharding(stage=stage, group=group, in_gpus="within" in words)


def parse_ckpt(text: str) -> str | None:
    """Return the way of `ACT_CKPT` with which a text starts; None where it is blank or no plan knows the way."""
    return next((name for name in ACT_CKPT if text.lower().startswith(name)), None)


def as_yes_no(text: str) -> str:
    """Convert `true`, `false`, `1` and `0` to the words for yes and no."""
    return _AS_YES_NO.get(text.lower(), text)


@lru_cache(maxsize=4096)
def understood(column: str, text: str) -> str:
    """Return a cell as it is read: a method by its id, yes and no by their words; blank where the text says nothing."""
    if column in YES_NO_COLUMNS:
        text = as_yes_no(text)
    if column == "method":
        method = METHOD_ROWS.get(text)
        return text if method is None else method.id
    if column == "policy":
        return text.lower()
    known = {
        "zero_or_fsdp_stage": lambda: parse_sharding(text) is not None,
        "act_ckpt": lambda: parse_ckpt(text) is not None,
        "attention": lambda: text.lower() in ATTENTION,
        "compile": lambda: text.lower() in YES_NO,
    }.get(column)
    return text if known is None or known() else ""


READ_COLUMNS = (
    "zero_or_fsdp_stage", "act_ckpt", "attention", "compile", "fused_loss", "in_backward", "method", "policy",
)  # fmt: skip
"""Columns that `understood` converts."""
_NAMED = ("zero_or_fsdp_stage", "act_ckpt", "attention", "compile", "network")
"""Columns whose unknown words count as blank; in the other columns unknown words are refused."""


def _says_no_network(text: str) -> bool:
    return read_typed_network(text, 1) is None and says_nothing(text)


def unknown_words(rows: Iterable[Mapping[str, str]]) -> dict[Message, list[str]]:
    """Return ids of rows (`line N` without an id) by their words that say nothing and so count as blank.

    Args:
        rows: text by column name; the first row is line 2 of the file.
    """
    ids: dict[Message, list[str]] = defaultdict(list)
    for line, cells in enumerate(rows, start=2):
        for column in _NAMED:
            text = str(cells.get(column) or "").strip()
            if text and (_says_no_network(text) if column == "network" else not understood(column, text)):
                reason = Message.of("skipped.unknown_word", column=column, text=shortened(text))
                ids[reason].append(str(cells.get("id") or "").strip() or f"line {line}")
    return ids
