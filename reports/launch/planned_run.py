"""Read one plan of an answer as the data that a launcher needs: `PlannedRun`.

The answer is the document `mpplan.estimate/2`, already checked. Inputs are taken from its copy of the question, with
the planner's own default for each, so that older answers can be read as well as newer ones with more inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from math import ceil
from typing import Any, TypeVar

from planner.answer.leading import leading_gpu, leading_plan
from planner.errors import InputFileError, UsageError
from planner.hardware.architectures import find_architecture
from planner.hardware.catalogue import find_gpu
from planner.hardware.gpu import Gpu
from planner.lazy import dataclass
from planner.parallelism.layout import Layout
from planner.parallelism.routing import settled_dispatcher
from planner.question.cost_inputs import COMMITMENT
from planner.question.inputs import METHOD, OFFLOAD
from planner.question.resolve import DEFAULT_OPTIMIZER, DEFAULT_STACK
from planner.question.usual_names import named_among
from planner.records.home import CPU_LOCAL
from planner.text import shortened
from planner.training.frameworks import named_stacks
from planner.training.method import Method, find_method
from planner.training.optimizers import find_optimizer
from planner.training.policies import find_policy
from planner.training.precision import EXTRA_PRECISIONS, PRECISIONS, PrecisionPolicy
from planner.training.recipe import ATTENTIONS, LORA_RANK, LOSSES, STACKS
from reports.text.language import words_for

FUSED, SEPARATE = ATTENTIONS
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """A plan that fits, with the question behind it."""

    model: str
    shape: dict[str, Any]
    """The model's dimensions as in the document (`model`)."""
    policy: PrecisionPolicy
    gpu: str
    """Id of the GPU in the catalogue."""
    gpus: int
    nodes: int
    power_limit_w: float | None
    """Power limit per GPU; None if the plan uses the board's default."""
    layout: Layout
    how: Method
    """Catalogue row of the training method."""
    optimizer: str
    """Id of the optimizer in the catalogue."""
    offload: str
    """One of none, optimizer, activations."""
    attention: str
    """One of flash, naive."""
    stack: str
    """Software stack whose kernels the plan assumes; for a named framework, the stack behind it."""
    seq_len: int
    """Tokens in the longest sequence; 1 if samples are images."""
    mean_len: float
    """Mean number of tokens per sequence, without padding."""
    image_size: int | None
    """Image side in pixels for a vision model; None if samples are sequences of tokens."""
    samples: float
    """Sequences or images in the whole run."""
    epochs: float | None
    """Passes over the data, if the question states them."""
    lora_rank: int
    lora_targets: str | None
    """Modules that get an adapter, in the question's words; None: every linear layer."""
    quant_double: bool
    """Whether the scales of 4-bit weights are quantised as well."""
    chunked_loss: bool
    """Whether the loss never holds a full FP32 copy of the logits."""
    fused_head: bool
    """Whether the loss is fused with the output layer, so that the full logits are never stored."""
    in_backward: bool
    """Whether weights are updated inside the backward pass."""
    moe_dispatcher: str
    """How tokens are dispatched to experts: one of `routing.DISPATCHERS`."""
    mtp_layers: int
    """Number of modules for multi-token prediction."""
    rack_domain: bool
    """Whether NVLink connects GPUs of several servers."""
    commitment: str
    """As requested: on-demand, spot, 1y or 3y."""
    duration: str
    """The predicted duration with its range, in words."""
    view: str
    created_at: str
    """Creation time of the answer in ISO 8601, UTC."""
    version: str
    """Version of mpplan, as in the document."""
    schema: str

    @property
    def gpus_per_node(self) -> int:
        """GPUs per server of the plan."""
        return ceil(self.gpus / self.nodes)

    @property
    def steps(self) -> int:
        """Optimizer steps for all samples, rounded up."""
        return ceil(round(self.samples / self.layout.global_batch, STEP_DIGITS))

    @property
    def batch_examples(self) -> int:
        """Examples per step as a data loader counts them; a pair of answers is one example but two sequences."""
        return self.layout.global_batch // self.how.sequences_per_example

    @property
    def micro_examples(self) -> int:
        """Examples per micro-batch."""
        return self.layout.micro_batch // self.how.sequences_per_example

    @property
    def padded(self) -> bool:
        """Whether examples are padded to the longest of their micro-batch; else every sequence is full of tokens."""
        return self.image_size is None and self.mean_len < self.seq_len

    @property
    def packed(self) -> bool:
        """Whether every sequence is full of tokens."""
        return self.image_size is None and not self.padded

    @property
    def method(self) -> str:
        """Id of the method: pretrain, sft, lora, qlora and so on."""
        return self.how.id

    @property
    def adapts(self) -> bool:
        """Whether only adapters are trained."""
        return self.how.adapts

    @property
    def needs_script(self) -> bool:
        """Whether the training script must compute the method's loss or freeze layers."""
        return self.how.pairs or self.how.trains == "last-layers"

    @property
    def precision(self) -> str:
        """The policy's precision, for example `bf16`."""
        return self.policy.precision

    @property
    def is_moe(self) -> bool:
        """Whether the model has experts."""
        return bool(self.shape.get("experts"))

    @property
    def recomputes(self) -> bool:
        """Whether any activations are recomputed."""
        return self.layout.act_ckpt != "none"

    def count(self, name: str) -> int:
        """Return a dimension of the model; 0 if it has none."""
        return int(self.shape.get(name) or 0)


STEP_DIGITS = 6
"""Decimals to which samples per step are exact; beyond them, a fraction is a rounding error and not another step."""


def planned_run(
    document: dict[str, Any], *, precision: str | None, gpu: str | None, view: str, file: str = "the answer"
) -> PlannedRun:
    """Return the plan of a precision, GPU and view; by default the plan in the answer's sentence.

    Args:
        document: the checked answer.
        precision: precision of the plan; None: the requested one.
        gpu: GPU of the plan, named as in a question: an id in any case, or a usual name like `h100`; None: the GPU of
            the answer's sentence.
        view: `plans` or `same_deadline`.
        file: name of the answer in errors.

    Raises:
        UsageError: there is no such plan, or it does not fit.
        InputFileError: the answer names something that is in no catalogue, or has no samples to train on.
    """
    asked = _Echo(document.get("question") or {}, file)
    plan = _chosen(document, precision, asked, gpu, view)
    place = f"{view}[{document[view].index(plan)}]"
    board = asked.known(f"{place}.gpu", plan["gpu"], find_gpu)
    layout, shape = plan["layout"], document["model"]
    seq_len = int(asked.number("seq_len") or shape["context"])
    mean_len = float(document.get("tokens_per_sequence") or seq_len)
    image_size, policy = _image_size(asked, shape), _policy(asked, plan, place)
    stack, loss = _stack_and_loss(asked)
    return PlannedRun(
        model=str(shape["name"]),
        shape=shape,
        policy=policy,
        **{name: plan[name] for name in ("gpu", "gpus", "nodes")},
        power_limit_w=_power_limit_w(document, asked, plan["gpu"]),
        layout=Layout(**{field.name: layout[field.name] for field in fields(Layout) if field.name in layout}),
        how=asked.known("question.method", asked.text("method") or str(METHOD.default), find_method),
        optimizer=asked.known("question.optimizer", asked.text("optimizer") or DEFAULT_OPTIMIZER, find_optimizer).id,
        offload=asked.text("offload") or str(OFFLOAD.default),
        attention=asked.text("attention") or _usual_attention(board),
        stack=stack,
        seq_len=seq_len,
        mean_len=mean_len,
        image_size=image_size,
        samples=_samples(asked, mean_len, images=image_size is not None),
        epochs=asked.number("epochs"),
        lora_rank=int(asked.number("lora_rank") or LORA_RANK),
        lora_targets=asked.text("lora_targets"),
        quant_double=not asked.flag("single_quant"),
        chunked_loss=loss != LOSSES[0],
        fused_head=loss == "fused",
        in_backward=asked.flag("in_backward"),
        moe_dispatcher=settled_dispatcher(asked.text("moe_dispatcher"), stack, board, policy),
        mtp_layers=int(shape.get("mtp_layers") or 0),
        rack_domain=board.nvlink_domain_gpus > board.gpus_per_node,
        commitment=asked.text("commitment") or str(COMMITMENT.default),
        duration=_duration(plan),
        view="same GPUs" if view == "plans" else "same deadline",
        created_at=str(document.get("created_at", "")),
        version=str(document.get("mpplan", "")),
        schema=str(document["schema"]),
    )


def _usual_attention(board: Gpu) -> str:
    return FUSED if find_architecture(board.arch).fused_attention else SEPARATE


@dataclass(frozen=True, slots=True)
class _Echo:
    """The question as repeated in the document, `{input: {"value", …}}`."""

    question: dict[str, Any]
    file: str

    def value(self, name: str) -> object:
        entry = self.question.get(name)
        return entry.get("value") if isinstance(entry, dict) else None

    def text(self, name: str) -> str | None:
        value = self.value(name)
        return value if isinstance(value, str) and value else None

    def number(self, name: str) -> float | None:
        value = self.value(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None

    def flag(self, name: str) -> bool:
        return self.value(name) is True

    def fail(self, place: str, expected: str, value: object) -> InputFileError:
        """Return the error for an invalid value in the answer."""
        return InputFileError(
            f"{self.file}: {place}: expected {expected}, found `{shortened(str(value))}`",
            hint="write the answer again: `mpplan estimate … --json > plan.json`",
        )

    def known(self, place: str, name: str, find: Callable[[str], T]) -> T:
        """Return the catalogue row that the answer names."""
        try:
            return find(name)
        except UsageError as error:
            raise self.fail(place, "a name of the catalogue", name) from error


def _image_size(asked: _Echo, shape: dict[str, Any]) -> int | None:
    """Return the image side in pixels of a vision model, else None."""
    if shape["kind"] != "image":
        return None
    size = asked.number("image_size")
    if size is None:
        raise asked.fail("question.image_size", "pixels of a side", asked.value("image_size"))
    return int(size)


def _stack_and_loss(asked: _Echo) -> tuple[str, str]:
    """Return the stack whose kernels the plan assumes, and the loss: as requested, or those of the named framework."""
    name, loss = asked.text("stack") or DEFAULT_STACK, asked.text("loss")
    named = named_stacks().get(name)
    if named is not None:
        return named.stack, loss or named.loss
    if name not in STACKS:
        raise asked.fail("question.stack", "a software stack", name)
    return name, loss or LOSSES[0]


def _policy(asked: _Echo, plan: dict[str, Any], place: str) -> PrecisionPolicy:
    policy = asked.known(f"{place}.policy", plan["policy"], find_policy)
    if policy.precision != plan["precision"]:
        raise asked.fail(f"{place}.policy", f"a policy of {shortened(plan['precision'])}", plan["policy"])
    return policy


def _samples(asked: _Echo, mean_len: float, *, images: bool) -> float:
    """Return the number of sequences or images in the run, above 0."""
    name = "samples" if images else "tokens"
    count = asked.number(name)
    if count is None:
        raise asked.fail(f"question.{name}", "a number above 0", asked.value(name))
    return count if images else count / mean_len


def _power_limit_w(document: dict[str, Any], asked: _Echo, gpu: str) -> float | None:
    """Return the given power limit, or the one chosen by the search if it differs from the board's default."""
    for search in document.get("power_limit_search") or ():
        if search["gpu"] == gpu:
            limit_w = (search["cheapest"] or search["greenest"])["limit_w"]
            return None if limit_w == search["sold"]["limit_w"] else float(limit_w)
    return asked.number("power_limit")


def _duration(plan: dict[str, Any]) -> str:
    figure = words_for("en").figure("days", plan["duration_days"])
    return "" if figure is None else figure.full


def _chosen(
    document: dict[str, Any], precision: str | None, asked: _Echo, gpu: str | None, view: str
) -> dict[str, Any]:
    """Return the plan of a precision and a GPU; unnamed ones default to those of the answer's sentence."""
    plans: list[dict[str, Any]] = document.get(view) or []
    known = (*PRECISIONS, *EXTRA_PRECISIONS)
    for index, plan in enumerate(plans):
        if plan["precision"] not in known:
            raise asked.fail(f"{view}[{index}].precision", "a precision", plan["precision"])
    named = asked.text("precision")
    if precision is None and (precision := named) is not None:
        if precision not in known:
            raise asked.fail("question.precision", "a precision", precision)
        at_once = "the asked precision"
    else:
        at_once = "--precision"
    gpus = list(dict.fromkeys(str(plan["gpu"]) for plan in plans))
    chosen = None if gpu is None else _one_of("--gpu", gpu, gpus, named_among("gpu", gpu, gpus))
    if precision is not None:
        precisions = list(dict.fromkeys(str(plan["precision"]) for plan in plans if chosen in (None, plan["gpu"])))
        lower = precision.strip().lower()
        precision = _one_of(at_once, precision, precisions, lower if lower in precisions else None)
    held = [plan for plan in plans if precision in (None, plan["precision"]) and chosen in (None, plan["gpu"])]
    if not held:
        raise UsageError("the answer has no plan in this view", hint="leave `--view` out")
    leading = leading_gpu(document["plans"], named or str(held[0]["precision"]))
    plan = leading_plan(held, leading)
    if plan["gpu"] == CPU_LOCAL:
        raise UsageError(
            "the plan is of this machine's CPU: there is no GPU to launch on", hint="plan with `--gpu h100`"
        )
    if not plan["fits"] or not plan.get("layout") or not plan.get("duration_days"):
        fitting = [f"{row['precision']} on {row['gpu']}" for row in plans if row["fits"]]
        raise UsageError(
            f"the plan in {plan['precision']} on {plan['gpu']} does not fit: there is nothing to launch",
            hint=f"the answer has {', '.join(fitting)}" if fitting else "plan again with more GPUs",
        )
    return plan


def _one_of(flag: str, name: str, known: list[str], match: str | None) -> str:
    """Return the match of a name in the answer.

    Raises:
        UsageError: there is no match.
    """
    if match is None:
        raise UsageError(
            f"{flag}: the answer has no plan of `{shortened(name)}`",
            hint=f"use one of {', '.join(known) or 'none'}",
        )
    return match
