"""Claims about memory: the savings of mixed precision, checkpointing, sharding and optimizers."""

from __future__ import annotations

from dataclasses import replace

from planner.claims.case import Case
from planner.claims.decided.decision import HALF, WIDE, Decider, Decision, unsaved
from planner.claims.evidence import measured, planned, published
from planner.claims.evidence.arithmetic import POLICIES, state_bytes, state_saved, zero3_saved
from planner.claims.evidence.known import Known
from planner.claims.evidence.published import Asked
from planner.errors import Message
from planner.models.catalogue import find_model
from planner.training.optimizers import load_optimizers
from planner.units import GB, GIGA, TERA

HALVED = Asked(metrics=(published.MEMORY,), frm=WIDE, to=HALF)
"""Pairs of FP32 or TF32 with FP16 or BF16."""
SAME = {"act_ckpt": "none", "zero": 0}
"""Settings with which nothing but the precision differs."""


def mixed_precision(known: Known) -> Decision:
    """c01: the share of the peak that mixed precision saves."""
    cases = [
        *published.cases(HALVED, unsaved),
        planned.memory_saved(known, "fp32", "fp16", planned.RESNET, gpu=planned.V100, micro_batch=64),
        planned.memory_saved(known, "tf32", "fp16", planned.RESNET, gpu=planned.A100, micro_batch=256),
        planned.memory_saved(known, "tf32", "bf16", planned.BERT, gpu=planned.A100, micro_batch=32, **SAME),
        *measured.steps(known, measured.memory_saved, frm=WIDE),
    ]
    return Decision(cases=cases, notes=[_activations_only(), Message.of("claim.note.batch")])


def _activations_only() -> Message:
    before, after = state_bytes("fp32", "adamw"), state_bytes("fp16", "adamw")
    return Message.of("claim.note.activations_only", before=before, after=after)


def half_storage(known: Known) -> Decision:
    """c02: the share of the whole training state that FP16 saves, policy by policy, and of the peak."""
    cases = [
        state_saved("fp16"),
        state_saved("fp16-zero"),
        state_saved("bf16-pure"),
        planned.memory_saved(known, "tf32", "fp16", planned.BERT, gpu=planned.A100, micro_batch=32, **SAME),
        planned.memory_saved(known, "tf32", "fp16", planned.BERT, gpu=planned.A100, micro_batch=4, **SAME),
    ]
    return Decision(cases=cases, notes=[_activations_only()])


def largest_fp32(known: Known) -> Decision:
    """c03: the largest decoder that an A100 of 80 GB trains in FP32."""
    cases = [
        planned.largest(known, "fp32", planned.A100, act_ckpt="none", micro_batch=1),
        planned.largest(known, "fp32", planned.A100, act_ckpt="full", micro_batch=1),
    ]
    return Decision(cases=cases, notes=[Message.of("claim.note.understates")])


def gpt3_state(known: Known) -> Decision:
    """c04: the share of GPT-3's training state that a policy and an optimizer save."""
    params = find_model("gpt-3-175b").params_total
    cases = [
        state_saved("fp16-megatron"), state_saved("fp16-zero"), state_saved("bf16-pure"),
        state_saved("fp16-zero", "adamw-8bit"), state_saved("fp32", "adamw-8bit"),
    ]  # fmt: skip
    terabytes = tuple(round(state_bytes(*kept) * params / TERA, 2) for kept in (
        ("fp32", "adamw"), ("fp16-zero", "adamw"), ("fp16-zero", "adamw-8bit"),
    ))  # fmt: skip
    names = ("fp32_tb", "mixed_tb", "eight_bit_tb")
    notes = [Message.of("claim.note.gpt3_state", **dict(zip(names, terabytes, strict=True)))]
    return Decision(cases=cases, notes=[*notes, Message.of("claim.note.eight_bit")])


def bert_large(known: Known) -> Decision:
    """c05: the share of BERT-Large's peak that mixed precision saves."""
    cases = [
        *published.cases(replace(HALVED, model="BERT-Large"), unsaved),
        *(
            planned.memory_saved(known, frm, "fp16", planned.BERT, gpu=gpu, micro_batch=batch, **SAME)
            for gpu, frm, batch in ((planned.V100, "fp32", 8), (planned.A100, "tf32", 16), (planned.A100, "tf32", 64))
        ),
        *measured.steps(known, measured.memory_saved, frm=WIDE, model="bert"),
    ]
    return Decision(cases=cases, notes=[_activations_only(), Message.of("claim.note.batch")])


_CHECKPOINTED = (
    ({**planned.BERT, "gpu": planned.A100, "micro_batch": 16, "zero": 0}, ("full",)),
    ({**planned.LLAMA, "gpu": planned.A100, "micro_batch": 1, "tp": 8, "pp": 4}, ("selective", "full")),
    (
        {**planned.GPT3, "gpu": planned.A100, "micro_batch": 1, "tp": 8, "pp": 8, "attention": "naive"},
        ("selective", "full"),
    ),
)
"""Questions with room for all activations, and the recomputation modes to compare."""


def checkpointing_memory(known: Known) -> Decision:
    """c18: the share of the activations that recomputing them saves."""
    cases = [planned.checkpointing(known, question, mode)[0] for question, modes in _CHECKPOINTED for mode in modes]
    return Decision(cases=[*cases, *measured.checkpointing(known, measured.activations_saved)])


def checkpointing_time(known: Known) -> Decision:
    """c19: the share of the step time that recomputing activations adds."""
    cases = [planned.checkpointing(known, question, mode)[1] for question, modes in _CHECKPOINTED for mode in modes]
    return Decision(cases=[*cases, *measured.checkpointing(known, measured.time_added)])


def zero3(known: Known) -> Decision:
    """c20: the share of the states that ZeRO-3 removes from a device, by the number of devices."""
    notes = []
    sizes: list[Case] = []
    for params, claimed_gb in ((10 * GIGA, 80.0), (100 * GIGA, 800.0)):
        gb, gpus = params * state_bytes("fp16-zero", "adamw") / GB, 4
        notes.append(Message.of("claim.note.zero3", params=params, gb=gb, gpus=gpus, gb_each=gb / gpus))
        what = f"{params / GIGA:g}B, fp16-zero, adamw, 1 GPU"
        sizes.append(
            Case.exactly(
                gb, what=what, basis="arithmetic", source=POLICIES, unit="gb", claimed=(claimed_gb, claimed_gb)
            )
        )
    states = [zero3_saved(gpus) for gpus in (2, 4, 8, 64, 1024)]
    peaks = [planned.sharded(known, {"params": "3B", "gpu": planned.A100, "tokens": "1e9"}, gpus) for gpus in (4, 8)]
    return Decision(cases=[*states, *sizes, *peaks], notes=notes)


def optimizers(known: Known) -> Decision:
    """c32: bytes of state per parameter of three optimizers beside AdamW's."""
    adamw = _bytes("adamw")
    claimed = {"adafactor": (0.0, adamw / 2), "lamb": (adamw, adamw), "sophia": (adamw / 2, adamw - 0.5)}
    counted = [
        Case.exactly(_bytes(name), what=name, basis="arithmetic", source=POLICIES, claimed=bounds)
        for name, bounds in claimed.items()
    ]
    read = [
        replace(case, claimed=_rounded(bounds))
        for name, bounds in claimed.items()
        for case in measured.optimizer_states(known, name)
    ]
    others = ("adamw", "adamw-8bit")
    beside = [
        Case.exactly(_bytes(name), what=name, basis="arithmetic", source=POLICIES, beside=True) for name in others
    ]
    beside += [replace(case, beside=True) for name in others for case in measured.optimizer_states(known, name)]
    time_cases = [case for name in (*claimed, "adamw-8bit") for case in measured.update_times(known, name)]
    notes = [Message.of("claim.note.updates")] if time_cases else []
    return Decision(cases=[*counted, *read, *beside, *time_cases], notes=notes)


def _rounded(bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the bounds of a measured state: step counters and row sums add a little."""
    return bounds[0] - 0.05, bounds[1] + 0.05


def _bytes(optimizer: str) -> float:
    row = load_optimizers()[optimizer]
    return row.full_moments * 4.0 + row.fixed_state_bytes


DECIDERS: dict[str, Decider] = {
    "c01": mixed_precision,
    "c02": half_storage,
    "c03": largest_fp32,
    "c04": gpt3_state,
    "c05": bert_large,
    "c18": checkpointing_memory,
    "c19": checkpointing_time,
    "c20": zero3,
    "c32": optimizers,
}
