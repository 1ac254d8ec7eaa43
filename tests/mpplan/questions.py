"""Questions as typed, drawn at random from what people ask: models, methods, GPUs, targets and fixed parts."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.planner.build import TODAY

Question = dict[str, str]
"""Values by the name of the input."""

PRETRAINED = st.fixed_dictionaries(
    {
        "model": st.sampled_from(("llama-3.1-8b", "qwen2.5-7b", "mixtral-8x7b", "llama-3.1-70b", "gpt2")),
        "tokens": st.sampled_from(("1B", "20B", "300B")),
    }
)
DERIVED = st.fixed_dictionaries(
    {"params": st.sampled_from(("125M", "1B", "7B", "13B", "70B"))},
    optional={"tokens": st.sampled_from(("1B", "20B", "300B"))},
)
TUNED = st.fixed_dictionaries(
    {
        "model": st.sampled_from(("llama-3.1-8b", "qwen2.5-7b", "llama-3.1-70b", "mistral-7b-v0.1")),
        "method": st.sampled_from(("sft", "lora", "qlora", "dpo")),
        "examples": st.sampled_from(("1000", "20000", "300000")),
    }
)
IMAGES = st.fixed_dictionaries({"model": st.sampled_from(("resnet50", "vit_base_patch16_224"))})

MACHINES = st.fixed_dictionaries(
    {
        "gpu": st.sampled_from(
            ("h100-sxm5-80gb", "a100-sxm4-80gb", "a100-pcie-40gb", "b200-sxm-180gb", "gb200-nvl72-186gb", "l40s",
             "rtx-4090", "mi300x-192gb", "v100-sxm2-32gb")
        ),
    },
    optional={
        "precision": st.sampled_from(("bf16", "fp16", "fp8", "tf32", "fp32")),
        "seq_len": st.sampled_from(("512", "8192", "32768", "5000")),
        "global_batch": st.sampled_from(("32", "100", "512")),
        "stack": st.sampled_from(("typical", "tuned", "eager")),
        "optimizer": st.sampled_from(("muon", "adamw-8bit")),
        "act_ckpt": st.sampled_from(("none", "selective", "full")),
        "offload": st.just("optimizer"),
        "memory_risk": st.sampled_from(("1%", "30%")),
        "confidence": st.sampled_from(("50%", "95%")),
    },
)  # fmt: skip

HARD: tuple[st.SearchStrategy[Question], ...] = (
    st.fixed_dictionaries(
        {"deadline": st.sampled_from(("1h", "6h", "1d"))},
        optional={
            "budget": st.sampled_from(("300", "5000", "40000")),
            "gpus": st.sampled_from(("2", "8", "64")),
            "max_gpus": st.sampled_from(("8", "60", "512")),
        },
    ),
    st.fixed_dictionaries({"budget": st.sampled_from(("10", "300", "5000"))}),
    st.fixed_dictionaries({"gpus": st.sampled_from(("1", "2", "4"))}),
)
"""Targets that few plans meet."""
TARGETS: tuple[st.SearchStrategy[Question], ...] = (
    st.just({}),
    st.fixed_dictionaries({"gpus": st.sampled_from(("1", "7", "8", "24", "40", "64", "264"))}),
    st.fixed_dictionaries({"deadline": st.sampled_from(("1h", "12h", "5d", "60d"))}),
    st.fixed_dictionaries({"budget": st.sampled_from(("300", "5000", "40000", "300000"))}),
    st.fixed_dictionaries(
        {"deadline": st.sampled_from(("5d", "30d"))},
        optional={"budget": st.sampled_from(("3000", "50000")), "max_gpus": st.sampled_from(("60", "512"))},
    ),
)


@st.composite
def questions(draw: st.DrawFn, *, hard: bool = False) -> Question:
    """A question that may have an answer, a plan at a risk or none; a few are refused as wrong usage.

    Args:
        draw: hypothesis's.
        hard: whether most have no plan, because the targets are hardly to be met.
    """
    what = draw(st.one_of(PRETRAINED, DERIVED, TUNED) if hard else st.one_of(PRETRAINED, DERIVED, TUNED, TUNED, IMAGES))
    targets = draw(st.one_of(*(HARD if hard else TARGETS)))
    return what | draw(MACHINES) | targets | {"as_of": TODAY.isoformat(), "price": "2.5"}
