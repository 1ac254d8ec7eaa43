"""The plan with which a log is compared: one plan of an answer, with its recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from math import ceil
from typing import Any

from planner.answer.document import Document
from planner.answer.leading import leading_gpu, leading_plan
from planner.errors import UsageError
from planner.hardware.catalogue import find_gpu
from planner.lazy import dataclass
from planner.models.linear_attention import LinearAttention
from planner.models.shape import ModelShape
from planner.parallelism.routing import settled_dispatcher
from planner.question.question import default_attention, overlaps_tensor_parallel
from planner.training.adapters import ALL_LINEAR
from planner.training.frameworks import Framework, named_stacks
from planner.training.grad_compression import NONE, find_grad_compression
from planner.training.lengths import Lengths
from planner.training.method import PRETRAIN, find_method
from planner.training.optimizers import find_optimizer
from planner.training.policies import find_policy
from planner.training.recipe import ACT_CKPT, LORA_RANK, LOSSES, TRAINED_LAYERS, Recipe

STEP_DIGITS = 6
"""Decimals of a number of steps; digits beyond them are floating-point error, not another step."""
USUAL_STACK = "typical"
"""Stack of a plan whose answer names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One plan of an answer."""

    plan: Mapping[str, Any]
    """The plan as in the document, with its figures."""
    model: ModelShape
    """The model as in the answer; the recipe's model counts modules of multi-token prediction among its layers."""
    recipe: Recipe
    """What the plan trains: method, model, lengths and the plan's own batch, which may differ from the requested
    batch."""
    tokens: float
    """Tokens of the whole run, without padding."""
    stack: str
    """The requested stack; empty where the answer does not name one."""
    stated: Mapping[str, object]
    """Machine and attention as columns of a file of runs, where the answer states other values than the catalogue's."""

    @property
    def steps(self) -> int:
        """Steps of the whole run."""
        return self.steps_of(self.recipe.tokens_per_step)

    def steps_of(self, tokens_per_step: float) -> int:
        """Return the steps of the whole run with another batch.

        The last step is whole, as in the plan's launch files and in `explain`.
        """
        return max(ceil(round(self.tokens / tokens_per_step, STEP_DIGITS)), 1)


def planned_of(document: Document, precision: str | None, gpu: str | None) -> Planned:
    """Return the plan of an answer that matches a run: its precision and GPU, where the log or the user names them.

    Args:
        document: answer, checked against its schema.
        precision: precision of the run; None: the requested one.
        gpu: catalogue id; None: the GPU of the answer's main sentence, where the precision fits on it.

    Raises:
        UsageError: the answer has no such plan that fits, or its model is a vision model.
    """
    question = document["question"]
    wanted = precision or _asked(document, "precision")
    check_counts_tokens(document["model"]["name"], document["model"]["kind"], "--plan")
    usable = [plan for plan in document["plans"] if plan["fits"] and plan.get("step_s")]
    of_gpu = [plan for plan in usable if gpu is None or plan["gpu"] == gpu]
    held = [plan for plan in of_gpu if plan["precision"] == wanted]
    if not held:
        known = ", ".join(f"{plan['precision']} on {plan['gpu']}" for plan in usable) or "none that fits"
        raise UsageError(
            f"--plan: the answer has no plan in {wanted}{f' on {gpu}' if gpu else ''}",
            hint=f"its plans are {known}; `--precision` and `--gpu` choose one",
        )
    chosen = leading_plan(held, leading_gpu(document["plans"], _asked(document, "precision") or wanted))
    whole = {name: question.get(name, {}).get("value") for name in ("seq_len", "global_batch", "tokens")}
    if not all(isinstance(value, int | float) and value > 0 for value in whole.values()):
        raise UsageError(
            "--plan: the answer gives no tokens, batch and sequence length", hint="pass the answer for a transformer"
        )
    shape = _shape(document)
    return Planned(
        plan=chosen,
        model=shape,
        recipe=_recipe(document, shape, chosen, int(whole["seq_len"]), int(whole["global_batch"])),
        tokens=float(whole["tokens"]),
        stack=str(_asked(document, "stack") or ""),
        stated=_stated(document),
    )


STATED = {
    "gpus_per_node": "gpus_per_node", "network": "network", "power_limit": "power_limit_w", "attention": "attention",
}  # fmt: skip
"""Columns of a file of runs by the input of a question."""


def _stated(document: Document) -> dict[str, object]:
    """Return the requested machine and attention, without values from the catalogue, which a blank cell implies."""
    entries = {column: document["question"].get(name, {}) for name, column in STATED.items()}
    known = {column: entry.get("value") for column, entry in entries.items() if entry.get("source") != "catalogue"}
    return {column: value for column, value in known.items() if isinstance(value, int | float | str)}


def check_counts_tokens(name: str, kind: str, flag: str) -> None:
    """Check that a model has tokens, by which a log is read; vision models have none.

    Raises:
        UsageError: the model is a vision model.
    """
    if kind in ("image", "cnn"):
        raise UsageError(
            f"{flag}: `{name}` is a vision model, and `mpplan compare` counts tokens",
            hint=f"leave {flag} out for step times, lost time and the end; "
            "`samples_per_s_per_gpu` of `mpplan estimate --json` is the plan's rate",
        )


def _asked(document: Document, name: str) -> Any:
    """Return the value of an input of the question; None where it has none."""
    return document["question"].get(name, {}).get("value")


def batch_of_plan(plan: Mapping[str, Any], asked: int) -> int:
    """Return the sequences per step of a plan's layout.

    A search may replace the requested batch by one that divides among the GPUs.
    """
    layout = plan.get("layout") or {}
    own = int(layout.get("dp") or 0) * int(layout.get("micro_batch") or 0) * int(layout.get("grad_accum") or 0)
    return own or asked


NOT_IN_A_DOCUMENT = ("evidence", "network", "mtp_unrolled")
"""Fields of a shape that an answer leaves out."""


def _shape(document: Document) -> ModelShape:
    model = document["model"]
    names = {field.name for field in fields(ModelShape)}.difference(NOT_IN_A_DOCUMENT, ("linear",))
    linear = model.get("linear")
    return ModelShape(
        **{name: value for name, value in model.items() if name in names},
        linear=None if linear is None else LinearAttention(**linear),
    )


def _recipe(document: Document, shape: ModelShape, plan: Mapping[str, Any], seq_len: int, asked_batch: int) -> Recipe:
    """Return what the plan trains and with which software, as its question resolved it."""
    mean = document.get("tokens_per_sequence") or seq_len
    method = _asked(document, "method") or PRETRAIN
    stack, framework = _software(document)
    gpu, policy = find_gpu(plan["gpu"]), find_policy(plan.get("policy") or plan["precision"])
    loss = _asked(document, "loss") or (LOSSES[0] if framework is None else framework.loss)
    usual_attention = default_attention(stack, gpu, fine_tunes=find_method(method).fine_tunes)
    return Recipe(
        model=shape.unrolled(),
        policy=policy,
        optimizer=find_optimizer(_asked(document, "optimizer") or "adamw"),
        method=method,
        seq_len=seq_len,
        global_batch=batch_of_plan(plan, asked_batch),
        stack=stack,
        attention=_asked(document, "attention") or usual_attention,
        sequence_parallel=framework is None or framework.sequence_parallel,
        act_ckpts=ACT_CKPT if framework is None else framework.act_ckpts,
        dropout=shape.has_dropout,
        tp_overlap=overlaps_tensor_parallel(stack, gpu),
        moe_dispatcher=settled_dispatcher(_asked(document, "moe_dispatcher"), stack, gpu, policy),
        grad_compression=find_grad_compression(_asked(document, "grad_compression") or NONE),
        lora_rank=int(_asked(document, "lora_rank") or LORA_RANK),
        trained_layers=int(_asked(document, "trained_layers") or TRAINED_LAYERS),
        double_quant=not _asked(document, "single_quant"),
        lengths=Lengths.around(float(mean), seq_len) if 1.0 <= mean < seq_len else None,
        offload=_asked(document, "offload") or "none",
        chunked_loss=loss != LOSSES[0],
        fused_head=loss == "fused",
        update_in_backward=bool(_asked(document, "in_backward")),
        lora_targets=str(_asked(document, "lora_targets") or ALL_LINEAR),
    )


def _software(document: Document) -> tuple[str, Framework | None]:
    """Return the kernel stack of the answer, and the framework behind it where the stack is a named framework."""
    name = str(_asked(document, "stack") or USUAL_STACK)
    framework = named_stacks().get(name)
    return (name, None) if framework is None else (framework.stack, framework)
