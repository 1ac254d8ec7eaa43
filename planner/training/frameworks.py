"""Defaults of training frameworks for details that a published run omits: rows of `catalog/frameworks.csv`.

The first row whose pattern is found in the framework's name applies. The last row matches everything, so an unknown
framework still gets a stack, an attention kernel and a ZeRO stage, which are then listed as filled in.
"""

from __future__ import annotations

import re
from functools import cache

from planner.lazy import dataclass
from planner.rows import CATALOG, Row, read_rows
from planner.training.adapters import LORA_TARGETS
from planner.training.optimizer import Optimizer
from planner.training.optimizers import find_optimizer
from planner.training.policies import default_policy, find_policy
from planner.training.precision import PrecisionPolicy
from planner.training.recipe import ACT_CKPT, ATTENTIONS, LOSSES, STACKS

MEM_KINDS = ("allocated", "reserved", "device")
"""Scope of a peak memory figure: tensors, the allocator's pool, or the whole process as reported by the driver."""

PADDINGS = ("packed", "padded", "binned", "unpadded")
"""Sequences are packed full of tokens, padded to the longest, padded to the longest of their bin, or not padded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """Defaults of one framework."""

    id: str
    pattern: str
    """Regular expression that is searched in a framework's name, ignoring case."""
    stack: str
    attention: str
    sequence_parallel: bool
    tp_overlap: bool
    zero: int
    """Default ZeRO stage with data parallelism."""
    act_ckpt: str | None
    """Default checkpointing; None for the least that fits into memory."""
    act_ckpts: tuple[str, ...]
    """Checkpointing modes that all of its recipes support and from which plans choose."""
    optimizer: Optimizer
    dropout: bool
    policies: dict[str, PrecisionPolicy]
    """Policy by precision, where it differs from the precision's default policy."""
    padding: str
    """How encoders handle sequences shorter than the longest: one of `PADDINGS`."""
    pipeline_splits_batch: bool
    """Whether the printed micro-batch is the local batch, which the pipeline splits into one part per stage."""
    channels_last: bool
    """Whether convolutional networks keep their activations in channels-last order."""
    balances_stages: bool
    """Whether pipeline stages are cut by the FLOP of their layers, including the output layer."""
    loss: str
    """Default loss, one of `recipe.LOSSES`."""
    lora_targets: str
    """Weights that get adapters by default, one of `adapters.LORA_TARGETS`."""
    mem_kind: str
    """Scope of the memory figure that it reports, one of `MEM_KINDS`."""
    stack_name: str | None
    """Name under which a question can request it; None for a framework that only published runs name."""
    planned: bool
    """Whether it represents a stack that a question requests, so that settings that depend on the GPU follow the
    question."""
    why: str
    source: str

    def policy(self, precision: str) -> PrecisionPolicy:
        """The policy that this framework uses for a precision.

        Raises:
            UsageError: no such precision.
        """
        return self.policies.get(precision) or default_policy(precision)


def _policies(row: Row) -> dict[str, PrecisionPolicy]:
    pairs = (word.split("=", 1) for word in row.words("policies"))
    return {precision: find_policy(policy) for precision, policy in pairs}


def _act_ckpts(row: Row) -> tuple[str, ...]:
    """Checkpointing modes in the order of `ACT_CKPT`; all of them if the cell is empty."""
    named = row.words("act_ckpts")
    if not set(named) <= set(ACT_CKPT):
        raise row.fail("act_ckpts", "some of " + ", ".join(f"`{way}`" for way in ACT_CKPT))
    return tuple(way for way in ACT_CKPT if way in named) or ACT_CKPT


def _framework(row: Row) -> Framework:
    return Framework(
        id=row.text("id"),
        pattern=row.text("pattern"),
        stack=row.choice("stack", STACKS),
        attention=row.choice("attention", ATTENTIONS),
        sequence_parallel=row.flag("sequence_parallel"),
        tp_overlap=row.flag("tp_overlap"),
        zero=row.integer("zero", high=3),
        act_ckpt=row.choice("act_ckpt", ACT_CKPT) if row.cell("act_ckpt") else None,
        act_ckpts=_act_ckpts(row),
        optimizer=find_optimizer(row.text("optimizer")),
        dropout=row.flag("dropout"),
        policies=_policies(row),
        padding=row.choice("padding", PADDINGS),
        pipeline_splits_batch=row.flag("pipeline_splits_batch"),
        channels_last=row.flag("channels_last"),
        balances_stages=row.flag("balances_stages"),
        loss=row.choice("loss", LOSSES),
        lora_targets=row.choice("lora_targets", LORA_TARGETS),
        mem_kind=row.choice("mem_kind", MEM_KINDS),
        stack_name=row.opt_text("stack_name"),
        planned=row.flag("planned"),
        why=row.text("why"),
        source=f"{row.text('source')} ({row.text('date')})",
    )


@cache
def load_frameworks() -> tuple[Framework, ...]:
    """All rows, in the order in which they are tried.

    Raises:
        InputFileError: a row of the catalogue is wrong.
    """
    return tuple(_framework(row) for row in read_rows(CATALOG / "frameworks.csv"))


@cache
def find_framework(name: str) -> Framework:
    """The first row whose pattern is found in the name; the last row matches any name."""
    return next(framework for framework in load_frameworks() if re.search(framework.pattern, name, re.IGNORECASE))


def named_stacks() -> dict[str, Framework]:
    """The frameworks that a question can request, by name."""
    return {framework.stack_name: framework for framework in load_frameworks() if framework.stack_name}
