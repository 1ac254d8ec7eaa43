"""Ways to train one model that people try when memory is short, and the question for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.errors import Message
from planner.lazy import dataclass
from planner.question.asked import FROM_THE_USER
from planner.question.batch import tuning_band
from planner.question.question import Question
from planner.training.adapters import ALL_LINEAR
from planner.training.method import find_method
from planner.training.optimizers import find_optimizer
from planner.training.policies import find_policy
from planner.training.precision import PrecisionPolicy
from planner.training.recipe import LORA_RANK, TRAINED_LAYERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way to train; a field that is None leaves the question's value."""

    method: str
    policy: str | None = None
    optimizer: str | None = None
    in_backward: bool = False
    offload: str | None = None
    loss: str | None = None
    lora_targets: str | None = None


VARIANTS = (
    Variant(method="sft"),
    Variant(method="sft", policy="bf16-pure"),
    Variant(method="sft", policy="bf16-pure", optimizer="adamw-8bit", in_backward=True, loss="chunked"),
    Variant(method="sft", policy="bf16-pure", optimizer="adamw-8bit-paged", in_backward=True, loss="chunked"),
    Variant(method="sft", policy="bf16-pure", offload="optimizer"),
    Variant(method="freeze", policy="bf16-pure"),
    Variant(method="dora"),
    Variant(method="lora"),
    Variant(method="lora", offload="optimizer"),
    Variant(method="qlora"),
    Variant(method="qlora", offload="optimizer"),
    Variant(method="lora", lora_targets="attention"),
    Variant(method="qlora", lora_targets="attention"),
)
"""From ways that change every weight to ways that change the fewest."""

PAIRED = {"lora": "dpo-lora", "dora": "dpo-lora", "qlora": "dpo-qlora", "sft": "dpo"}
"""Methods that train on pairs of answers (DPO), by the method that does the same without pairs."""


def variants_of(question: Question) -> tuple[Variant, ...]:
    """Return the ways to reach the goal of a question in its precision; for DPO, those that train on pairs of answers.

    Adapters beside experts are large. For a model without experts they are small, so leaving some out or moving their
    states to the host saves almost nothing; frozen weights move there with their shards, but one GPU has no shards.
    """
    precision = question.policy.precision
    variants = [
        variant for variant in VARIANTS if variant.policy is None or find_policy(variant.policy).precision == precision
    ]
    if not question.model.experts:
        variants = [variant for variant in variants if variant.lora_targets is None]
        if (question.gpus or 1) == 1:
            variants = [
                variant for variant in variants if variant.offload is None or not find_method(variant.method).adapts
            ]
    if find_method(question.method).pairs:
        variants = [replace(variant, method=PAIRED[variant.method]) for variant in variants if variant.method in PAIRED]
    if question.method not in {variant.method for variant in variants}:
        variants.append(Variant(method=question.method))
    return tuple(dict.fromkeys(variants))


def asked_as(question: Question, variant: Variant) -> Question:
    """Return the question with a way to train put in its place."""
    policy = question.policy if variant.policy is None else find_policy(variant.policy)
    method = find_method(variant.method)
    tuning = replace(
        question.tuning,
        in_backward=variant.in_backward or question.tuning.in_backward,
        loss=variant.loss or question.tuning.loss,
        lora_targets=variant.lora_targets or question.tuning.lora_targets if method.adapts else ALL_LINEAR,
        lora_rank=(question.tuning.lora_rank or LORA_RANK) if method.adapts else 0,
        trained_layers=_trained_layers(question) if method.trains == "last-layers" else 0,
    )
    fixed = question.fixed
    if method.low_bits and (fixed.tp or 1) > 1:
        fixed = replace(fixed, tp=None)
    band = question.batch_band
    if band is not None:
        band = tuning_band(question.global_batch, in_backward=tuning.in_backward)
    return replace(
        question,
        batch_band=band,
        keeps_batch=question.keeps_batch and not tuning.in_backward,
        method=variant.method,
        policy=policy,
        policies=_with(question.policies, policy),
        optimizer=question.optimizer if variant.optimizer is None else find_optimizer(variant.optimizer),
        offload=question.offload if variant.offload is None else variant.offload,
        tuning=tuning,
        fixed=fixed,
    )


def _trained_layers(question: Question) -> int:
    return question.tuning.trained_layers or min(TRAINED_LAYERS, question.model.layers)


def _with(policies: tuple[PrecisionPolicy, ...], policy: PrecisionPolicy) -> tuple[PrecisionPolicy, ...]:
    return tuple(policy if other.precision == policy.precision else other for other in policies)


def given_loss(question: Question) -> str | None:
    """Return the loss that the user chose; None where the user chose none."""
    entry = question.inputs.get("loss")
    return question.tuning.loss if entry is None or entry.source in FROM_THE_USER else None


def changes(question: Question, variant: Variant) -> tuple[Message, ...]:
    """Return the flags that turn a question into one of its variants."""
    other = asked_as(question, variant)
    values = [
        ("method", question.method, other.method),
        ("policy", question.policy.id, other.policy.id),
        ("optimizer", question.optimizer.id, other.optimizer.id),
        ("offload", question.offload, other.offload),
        ("loss", given_loss(question), variant.loss or given_loss(question)),
    ]
    if variant.lora_targets is not None:
        values.append(("lora_targets", question.tuning.lora_targets, variant.lora_targets))
    flags = [Message.of("flag.with_value", input=name, value=str(new)) for name, old, new in values if old != new]
    if other.tuning.in_backward != question.tuning.in_backward:
        flags.append(Message.of("flag.alone", input="in_backward"))
    return (*flags, *_without(question, variant))


def _without(question: Question, variant: Variant) -> Iterator[Message]:
    """Yield inputs that were given and that the method of a variant does not use, or does not go with."""
    method = find_method(variant.method)
    of_adapters, of_layers = ("lora_rank", "lora_targets"), ("trained_layers",)
    split = ("tp",) if method.low_bits and (question.fixed.tp or 1) > 1 else ()
    for name in (
        *(() if method.adapts else of_adapters), *(() if method.trains == "last-layers" else of_layers), *split,
    ):  # fmt: skip
        given = question.inputs.get(name)
        if given is not None and given.source in FROM_THE_USER and given.value is not None:
            yield Message.of("hint.without", input=name, value=str(given.value))
