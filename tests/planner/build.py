"""Builders of the planner's nouns for its tests: real types and catalogue rows; a test says only what it varies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date

from hypothesis import strategies as st

from planner.costs.prices import GpuPrice, SiteFacts
from planner.errors import Message
from planner.evidence import Estimate, Evidence, EvidenceKind
from planner.hardware.catalogue import find_gpu
from planner.hardware.cluster import Cluster, make_cluster
from planner.kernels.surface import Surface
from planner.models.catalogue import find_model
from planner.models.linear_attention import LinearAttention
from planner.models.shape import ModelShape
from planner.parallelism.layout import Layout, Layouts
from planner.planning.case import Case, RatesAndPrices
from planner.question.asked import Ask
from planner.question.question import Question
from planner.question.resolve import resolve
from planner.rates.ladder import resolve_rates
from planner.rates.parameters import shipped_parameters
from planner.rates.terms import Rates
from planner.training.adapters import LORA_TARGETS
from planner.training.optimizers import find_optimizer
from planner.training.policies import find_policy, load_policies
from planner.training.recipe import ACT_CKPT, STACKS, Recipe

TODAY = date(2026, 11, 20)

ROUNDING = 1 + 1e-12  # what the order of a sum may change

SAID = Evidence(id="test", kind=EvidenceKind.GIVEN, what="said by the test", source="this test", date="2026-11-20")

_NOTHING = (
    "matmul_overlap_ratio", "kernels_per_layer", "kernels_per_moe_layer", "kernel_s", "launch_s", "step_overhead_s",
    "image_step_overhead_s",
    "nvlink_latency_s", "hop_latency_s", "nic_latency_s", "node_doubling_s", "node_hop_s", "node_latency_bytes",
    "bucket_rank_elements", "collective_launch_s",
    "pipelined_rank_s",
    "send_stall_s", "allocator_retry_s", "overlap_dp_ratio", "overlap_tp_ratio", "overlap_cp_ratio",
    "overlap_pp_ratio", "overlap_ep_ratio", "interference_ratio", "jitter_ratio", "context_bytes", "nccl_bytes",
    "fragmentation_ratio", "host_power_w", "host_least_w", "network_power_w", "failures_per_gpu_h", "restart_s",
    "evaluation_ratio", "gathered_input_ratio", "unpacked_bytes", "expert_load_sd_ratio", "adapter_passes",
    "kernels_per_adapter", "magnitude_passes",
)  # fmt: skip


def plain_rates(surfaces: Mapping[str, Surface] | None = None, **changes: float) -> Rates:
    """Every rate and factor 1, everything that is added on top 0, one bucket: what is left is the equation itself."""
    terms = (term for family in shipped_parameters().families.values() for term in family.terms)
    plain = {term: 0.0 if term in _NOTHING else 1.0 for term in terms} | {"bucket_elements": 1e30}
    return Rates(surfaces, **(plain | changes))


def mid_rates(recipe: Recipe, cluster: Cluster) -> Rates:
    """The planner's own mid values."""
    return resolve_rates(cluster, recipe).sample()


def shape(**changes: object) -> ModelShape:
    """A small dense decoder with a gated MLP and grouped queries."""
    values: dict[str, object] = {
        "name": "small", "kind": "decoder", "layers": 8, "hidden": 1024, "heads": 16, "kv_heads": 4, "head_dim": 64,
        "ffn_hidden": 2816, "gated_mlp": True, "vocab": 32000, "context": 2048,
    }  # fmt: skip
    return ModelShape(**(values | changes))  # type: ignore[arg-type]


def gpt(layers: int, hidden: int, heads: int, vocab: int = 51200) -> ModelShape:
    """A GPT-2 style block: 4 h wide GELU MLP, as many key/value heads as query heads, tied output layer."""
    return shape(
        layers=layers, hidden=hidden, heads=heads, kv_heads=heads, head_dim=hidden // heads, ffn_hidden=4 * hidden,
        gated_mlp=False, vocab=vocab, tied_embeddings=True,
    )  # fmt: skip


def recipe(model: ModelShape | str = "llama-3.1-8b", policy: str = "bf16", **changes: object) -> Recipe:
    """A recipe of a catalogue model or a shape."""
    values: dict[str, object] = {
        "model": find_model(model) if isinstance(model, str) else model,
        "policy": find_policy(policy),
        "optimizer": find_optimizer("adamw"),
        "method": "pretrain",
        "seq_len": 4096,
        "global_batch": 256,
    }
    return Recipe(**(values | changes))  # type: ignore[arg-type]


def cluster(gpu: str = "h100-sxm5-80gb", **changes: object) -> Cluster:
    """Nodes of a GPU of the catalogue."""
    return make_cluster(find_gpu(gpu), **changes)  # type: ignore[arg-type]


def layout(**changes: object) -> Layout:
    """One GPU, one sequence at a time."""
    values: dict[str, object] = {
        "tp": 1, "pp": 1, "vp": 1, "cp": 1, "ep": 1, "dp": 1, "zero": 0, "micro_batch": 1, "grad_accum": 1,
        "act_ckpt": "none",
    }  # fmt: skip
    return Layout(**(values | changes))  # type: ignore[arg-type]


def layouts(**changes: object) -> Layouts:
    """The same as columns of length 1."""
    return Layouts.of(layout(**changes))


def price(gpu: str = "h100-sxm5-80gb", low: float = 2.0, mid: float = 2.5, high: float = 4.0) -> GpuPrice:
    """A price per GPU-hour with a range."""
    return GpuPrice(
        gpu=gpu, usd_per_gpu_h=Estimate(low=low, mid=mid, high=high), basis=Message.of("test.basis"), evidence=(SAID,)
    )


def unknown_price(gpu: str = "h100-sxm5-80gb") -> GpuPrice:
    """No price at all."""
    return GpuPrice(gpu=gpu, usd_per_gpu_h=None, basis=Message.of("price.basis.none"), evidence=())


def site(**changes: object) -> SiteFacts:
    """PUE 1.25, 8 cents per kWh, 0.37 kg CO2e per kWh."""
    values: dict[str, object] = {
        "pue": Estimate(low=1.1, mid=1.25, high=1.5),
        "pue_evidence": SAID,
        "electricity_usd_per_kwh": Estimate(low=0.06, mid=0.08, high=0.11),
        "electricity_evidence": SAID,
        "grid_kg_co2e_per_kwh": Estimate(low=0.34, mid=0.37, high=0.40),
        "grid_evidence": SAID,
        "market_kg_co2e_per_kwh": None,
    }
    return SiteFacts(**(values | changes))  # type: ignore[arg-type]


def parts(message: str | Message | None) -> dict[str, object]:
    """A message as a mapping: its values by name, and its key as `key`."""
    assert isinstance(message, Message)
    return {"key": message.key, **dict(message.values)}


def make_question(**asked: str) -> Question:
    """A question as typed, resolved; `as_of` is fixed, and without a model it is an 8B."""
    model = {} if "model" in asked else {"params": "8B"}
    return resolve(Ask(texts=model | {"as_of": TODAY.isoformat()} | asked))


def prices(asked: Question) -> dict[str, GpuPrice]:
    """The same price for every GPU of a question."""
    return {machine.gpu.id: price(machine.gpu.id) for machine in asked.clusters}


def rates_and_prices(asked: Question, **changes: object) -> RatesAndPrices:
    """Those prices at that site, and no rates of the user's own."""
    values: dict[str, object] = {"prices": prices(asked), "site": site()}
    return RatesAndPrices(**(values | changes))  # type: ignore[arg-type]


def case_for(asked: Question) -> Case:
    """The requested precision of a question on its first GPU, at those prices."""
    return rates_and_prices(asked).case(asked, asked.clusters[0])


def case_of(**asked: str) -> Case:
    """The same for a question as typed."""
    return case_for(make_question(**asked))


GPUS = ("v100-sxm2-32gb", "a100-sxm4-80gb", "h100-sxm5-80gb", "b200-sxm-180gb", "l40s", "mi300x-192gb")
"""One part of each generation that behaves differently."""


@st.composite
def shapes(draw: st.DrawFn) -> ModelShape:
    """Small models of every kind that the planner knows: gated or not, windows, grouped queries, MLA, experts."""
    heads = draw(st.sampled_from((4, 8, 16, 24)))
    head_dim = draw(st.sampled_from((32, 64, 100, 128)))
    hidden = heads * head_dim * draw(st.sampled_from((1, 2)))
    kv_heads = draw(st.sampled_from([k for k in (1, 2, 4, 8, 16, 24) if heads % k == 0]))
    model = shape(
        kind=draw(st.sampled_from(("decoder", "decoder", "encoder"))),
        layers=draw(st.integers(2, 24)),
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        ffn_hidden=draw(st.sampled_from((2, 3, 4))) * hidden,
        gated_mlp=draw(st.booleans()),
        vocab=draw(st.sampled_from((1000, 32000, 128_256))),
        tied_embeddings=draw(st.booleans()),
        biases=draw(st.booleans()),
        learned_positions=draw(st.sampled_from((0, 2048))),
        sliding_window=draw(st.sampled_from((None, None, 512))),
        global_attention_every=draw(st.sampled_from((1, 2))),
        global_attention_layers=draw(st.sampled_from((None, None, 0, 1))),
        dropout=draw(st.sampled_from((None, False))),
    )
    if draw(st.booleans()):
        model = replace(
            model, kv_lora_rank=128, rope_head_dim=16, v_head_dim=head_dim // 2, kv_heads=heads,
            q_lora_rank=draw(st.sampled_from((None, 192))),
        )  # fmt: skip
    if draw(st.booleans()):
        experts = draw(st.sampled_from((4, 8, 16)))
        model = replace(
            model, experts=experts, top_k=draw(st.integers(1, 4)), expert_ffn=draw(st.sampled_from((256, 1024))),
            shared_experts=draw(st.integers(0, 2)), dense_layers=draw(st.integers(0, 1)),
            moe_every=draw(st.sampled_from((1, 2))),
        )  # fmt: skip
        groups = draw(st.sampled_from((0, 0, 2, 4)))
        if groups:
            model = replace(model, expert_groups=groups, token_groups=draw(st.integers(1, groups - 1)))
        model = replace(model, expert_hidden=draw(st.sampled_from((None, None, 192))))
    if draw(st.integers(0, 2)) == 0:
        model = draw(hybrids_of(model))
    further = draw(st.sampled_from((0, 0, 1, 2)))
    return replace(model, mtp_layers=further, mtp_shares_weights=draw(st.booleans())).unrolled()


MAMBA_1: dict[str, int] = {
    "key_heads": 1, "key_dim": 16, "value_heads": 1024, "value_dim": 1, "head_inputs": 0, "step_rank": 32,
}  # fmt: skip
KIMI_DELTA: dict[str, int] = {
    "key_heads": 8, "key_dim": 64, "value_heads": 8, "head_inputs": 1, "gates": 0, "gate_rank": 64,
}  # fmt: skip
SHORT_CONVOLUTION: dict[str, int] = {
    "key_heads": 1, "key_dim": 0, "value_heads": 512, "value_dim": 1, "head_inputs": 0, "gates": 2, "convolution": 3,
}  # fmt: skip
KINDS_OF_LINEAR: tuple[dict[str, int], ...] = ({}, {}, MAMBA_1, KIMI_DELTA, SHORT_CONVOLUTION)
"""What replaces the sizes of Mamba-2 or the gated delta rule for the other kinds of linear attention."""


@st.composite
def hybrids_of(draw: st.DrawFn, model: ModelShape) -> ModelShape:
    """The same with linear attention in some layers, beside attention or instead, and a feed-forward in some."""
    layers = model.layers
    key_heads = draw(st.sampled_from((1, 2, 8, 16)))
    linear = LinearAttention(
        layers=draw(st.integers(1, layers)), key_heads=key_heads, key_dim=draw(st.sampled_from((64, 128))),
        value_heads=key_heads * draw(st.sampled_from((2, 4))), value_dim=64,
        head_inputs=draw(st.sampled_from((1, 2))), gated_norm=draw(st.booleans()),
    )  # fmt: skip
    linear = replace(linear, **draw(st.sampled_from(KINDS_OF_LINEAR)))
    return replace(
        model, linear=linear, gated_attention=model.kv_lora_rank is None and draw(st.booleans()),
        attention_layers=draw(st.one_of(st.none(), st.integers(0, layers))),
        ffn_layers=draw(st.one_of(st.none(), st.integers(model.dense_layers + 1, layers))),
    )  # fmt: skip


@st.composite
def layouts_of(draw: st.DrawFn, model: ModelShape, *, gated_pipeline: bool = True) -> Layout:
    """Any consistent layout of a model."""
    tp = draw(st.sampled_from([t for t in (1, 2, 4, 8, 16) if model.heads_to_split % t == 0]))
    pp = draw(st.integers(1, min(4, model.layers))) if gated_pipeline else 1
    even = [v for v in (2, 3, 4) if 0 in (model.layers % (v * pp), (model.layers + 2) % (v * pp))]
    vp = draw(st.sampled_from([1, *even])) if pp > 1 else 1
    cp, dp = draw(st.sampled_from((1, 2, 4))), draw(st.sampled_from((1, 2, 3, 8, 64)))
    ranks = tp * cp * dp
    ep = draw(st.sampled_from([e for e in (1, 2, 4, 8, 16) if model.experts % e == 0 and ranks % e == 0] or [1]))
    ep = ep if model.experts else 1
    holders = ranks // (ep * (tp if model.experts and (cp * dp) % ep == 0 else 1))
    return Layout(
        tp=tp, pp=pp, vp=vp, cp=cp, ep=ep, dp=dp,
        zero=draw(st.integers(0, 3)), micro_batch=draw(st.sampled_from((1, 2, 4))),
        grad_accum=draw(st.sampled_from((1, 2, 3))) * (pp if vp > 1 else 1),
        act_ckpt=draw(st.sampled_from(ACT_CKPT)),
        replicas=draw(st.sampled_from([n for n in (1, 1, 2, 4) if holders % n == 0 and (cp * dp) % n == 0])),
    )  # fmt: skip


@st.composite
def settings_of_recipes(draw: st.DrawFn) -> tuple[Recipe, Layout, Cluster]:
    """A random model, method, policy, stack and layout that belong together, on a GPU that supports the policy."""
    machine = cluster(draw(st.sampled_from(GPUS)), power_limit_w=draw(st.sampled_from((None, None, 250.0))))
    peaks = set(machine.gpu.peak_flop_per_s)
    known = [p for p in load_policies().values() if {p.linear_compute, p.other_compute} <= peaks]
    model = draw(shapes())
    where = draw(layouts_of(model))
    training = recipe(
        model, draw(st.sampled_from(sorted(p.id for p in known))),
        optimizer=find_optimizer(draw(st.sampled_from(("adamw", "adamw-8bit", "adafactor", "muon", "sgd-momentum")))),
        method=draw(st.sampled_from(("pretrain", "sft", "lora", "qlora", "dora", "qdora"))),
        lora_targets=draw(st.sampled_from(LORA_TARGETS if model.linear is None else LORA_TARGETS[:1])),
        seq_len=draw(st.sampled_from((512, 2048, 16384))),
        global_batch=where.dp * where.micro_batch * where.grad_accum,
        stack=draw(st.sampled_from(STACKS)),
        attention=draw(st.sampled_from(("flash", "naive"))),
        sequence_parallel=draw(st.booleans()),
        offload=draw(st.sampled_from(("none", "none", "optimizer", "activations"))),
        balances_stages=draw(st.booleans()),
        chunked_loss=draw(st.booleans()),
        fused_head=draw(st.booleans()),
        update_in_backward=draw(st.booleans()),
        dropout=draw(st.booleans()),
        reshard_after_forward=draw(st.booleans()),
        tp_overlap=draw(st.booleans()),
    )  # fmt: skip
    return training, where, machine
