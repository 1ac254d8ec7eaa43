"""The step: its items, the pipeline bubble, checkpointing, launch-bound work and straggling."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from planner.answer.plan import STEP_ITEMS
from planner.parallelism.layout import Layouts
from planner.performance.step import StepTimes, allocator_s, step_times, waiting_s
from planner.rates.ladder import resolve_rates
from planner.rates.terms import Draws
from tests.planner.build import (
    ROUNDING,
    cluster,
    gpt,
    layout,
    mid_rates,
    plain_rates,
    recipe,
    settings_of_recipes,
    shape,
)

H100 = cluster()


def seconds(value) -> float:
    return float(np.ravel(value)[0])


def step(training, where, rates=None, machine=H100) -> StepTimes:
    return step_times(training, machine, Layouts.of(where), rates or mid_rates(training, machine))


COMPUTE = {"linear_flop_per_s": 1e12, "other_flop_per_s": 1e12, "attention_flop_per_s": 1e12}
FREE = {"memory_bytes_per_s": 1e30, "operand_bytes_per_s": 1e30, "optimizer_bytes_per_s": 1e30}
LINKS = {"nvlink_bytes_per_s": 1e30, "nic_bytes_per_s": 1e30}


@pytest.mark.parametrize("micro_batches", [4, 16, 64])
@pytest.mark.parametrize(("pp", "vp"), [(2, 1), (4, 1), (8, 1), (4, 2), (4, 4), (8, 2)])
def test_the_pipeline_bubble_is_p_minus_1_over_v_m(pp, vp, micro_batches):
    # Narayanan et al. 2021, section 2.2: (p - 1) / m, interleaved (p - 1) / (v m); no output layer to speak of
    training = recipe(gpt(32, 1024, 16, vocab=1), sequence_parallel=False)
    times = step(training, layout(pp=pp, vp=vp, grad_accum=micro_batches), plain_rates(**COMPUTE, **FREE, **LINKS))

    ideal = seconds(times.compute)
    assert seconds(times.bubble) / ideal == pytest.approx((pp - 1) / (vp * micro_batches), rel=1e-3)


def test_a_pipeline_runs_at_the_pace_of_the_stage_with_the_output_layer():
    # 4 layers on 4 stages; the output layer takes as long as a layer, so the last stage takes twice as long
    training = recipe(gpt(4, 1024, 16, vocab=12 * 1024), seq_len=64)
    rates = plain_rates(**COMPUTE | {"attention_flop_per_s": 1e30}, **FREE, **LINKS)
    times = step(training, layout(pp=4, grad_accum=8), rates)

    layer_s = 6 * 64 * 12 * 1024**2 / 1e12
    assert seconds(times.matmul) == pytest.approx(8 * 2 * layer_s, rel=1e-9)
    assert seconds(times.bubble) == pytest.approx(3 * layer_s, rel=1e-9)


def test_one_gpu_takes_six_flop_per_parameter_and_token_at_its_rate():
    training = recipe(gpt(24, 2048, 16), seq_len=2048, global_batch=8, attention="flash")
    times = step(training, layout(micro_batch=2, grad_accum=4), plain_rates(**COMPUTE, **FREE))

    tokens = 8 * 2048
    assert seconds(times.matmul) == pytest.approx(6 * tokens * training.model.matrix_params_active / 1e12)
    # attention: 3.5 x 4 x S/2 x hidden per token and layer
    assert seconds(times.attention) == pytest.approx(3.5 * tokens * 24 * 4 * 1024 * 2048 / 1e12)


def test_full_checkpointing_runs_the_layers_forward_once_more():
    training = recipe(gpt(24, 2048, 16, vocab=1), seq_len=2048)
    rates = plain_rates(**COMPUTE | {"attention_flop_per_s": 1e30}, **FREE)
    none, full = (step(training, layout(act_ckpt=kind), rates) for kind in ("none", "full"))

    # a third of 6N: 8N instead
    assert seconds(full.recompute) == pytest.approx(seconds(none.total) / 3, rel=1e-5)
    assert seconds(none.recompute) == 0


@pytest.mark.parametrize("model", ["llama-3.1-8b", "llama-3.1-70b", "gpt-3-175b"])
@pytest.mark.parametrize("gpu", ["a100-sxm4-80gb", "h100-sxm5-80gb"])
def test_full_checkpointing_costs_15_to_40_percent(model, gpu):
    # claim c19
    training = recipe(model, seq_len=2048)
    machine = cluster(gpu)
    none, full = (step(training, layout(tp=8, act_ckpt=kind), machine=machine) for kind in ("none", "full"))

    assert 1.15 <= seconds(full.total) / seconds(none.total) <= 1.40


def test_selective_checkpointing_is_cheap_where_attention_is_naive():
    # Korthikanti et al. 2022, figure 7 and table 4: 22B to 1T cost about 4 % with sequence parallelism, full 36 to 39 %
    training = recipe("gpt-3-175b", "fp16-megatron", attention="naive", seq_len=2048, stack="classic")
    machine = cluster("a100-sxm4-80gb")
    none, selective = (step(training, layout(tp=8, act_ckpt=kind), machine=machine) for kind in ("none", "selective"))

    assert 0.01 < seconds(selective.total) / seconds(none.total) - 1 < 0.12


def test_selective_checkpointing_of_layers_with_experts_leaves_attention_alone():
    # 65 536 tokens: attention takes most of the time, norms and activations hardly any
    steps = [
        step(recipe(model, seq_len=65536), layout(act_ckpt="selective"), plain_rates(**COMPUTE, **FREE))
        for model in ("llama-3.1-8b", "mixtral-8x7b")
    ]

    assert seconds(steps[0].recompute) == pytest.approx(seconds(steps[0].attention) / 3.5)
    assert seconds(steps[1].recompute) < 0.01 * seconds(steps[1].attention)


def test_small_work_waits_for_the_host_to_launch_its_kernels():
    training = recipe(gpt(24, 128, 2, vocab=64), seq_len=16)
    rates = plain_rates(**COMPUTE, **FREE, launch_s=6e-6, kernels_per_layer=45.0)
    times = step(training, layout(grad_accum=3), rates)

    # 24 layers of 45 kernels and 60 at the ends, less what the GPU works meanwhile: 14 times less, so that the longer
    # one decides but for (1/14)^6 / 6 of it
    wanted = 3 * (24 * 45 + 60) * 6e-6
    assert seconds(times.launch) == pytest.approx(wanted - seconds(times.compute), rel=1e-7)
    assert seconds(step(recipe(gpt(24, 2048, 16)), layout(), rates).launch) == 0


@pytest.mark.parametrize(
    ("host_s", "gpu_s", "waits"),
    [
        (1.0, 1.0, 0.122462),  # 2^(1/6) - 1: 12 % above both where they are equal
        (3.0, 3.0, 0.367386),
        (2.0, 1.0, 1.005175),  # 65^(1/6) - 1: by 0.5 % more than the host takes longer
        (10.0, 1.0, 9.0000017),  # (10^6 + 1)^(1/6) - 1
        (1.0, 2.0, 0.005175),
        (1.0, 10.0, 1.667e-6),
        (0.0, 1.0, 0.0),
    ],
)
def test_the_longer_of_host_and_gpu_decides_the_more_the_further_they_are_apart(host_s, gpu_s, waits):
    assert seconds(waiting_s(host_s, gpu_s)) == pytest.approx(waits, rel=1e-3 if waits < 1 else 1e-6)


@given(host_s=st.floats(1e-6, 1e3), gpu_s=st.floats(1e-6, 1e3), slower=st.floats(1, 10))
def test_a_micro_batch_ends_at_most_an_eighth_after_host_and_gpu_and_no_sooner_where_the_gpu_is_slower(
    host_s, gpu_s, slower
):
    whole_s, later_s = (gpu + seconds(waiting_s(host_s, gpu)) for gpu in (gpu_s, slower * gpu_s))

    assert max(host_s, gpu_s) <= whole_s * ROUNDING
    assert whole_s <= 1.1225 * max(host_s, gpu_s)
    assert whole_s <= later_s * ROUNDING


def test_a_step_waits_12_percent_where_the_host_takes_as_long_as_the_gpu():
    training = recipe(gpt(24, 2048, 16), seq_len=2048)
    work = seconds(step(training, layout(), plain_rates(**COMPUTE, **FREE)).compute)
    even = plain_rates(**COMPUTE, **FREE, launch_s=work / (24 * 45 + 60), kernels_per_layer=45.0)

    assert seconds(step(training, layout(grad_accum=5), even).launch) == pytest.approx(5 * 0.122462 * work, rel=1e-5)


def test_every_stage_of_a_pipeline_waits_for_its_own_host():
    # 8 layers of 45 kernels and 60 at the ends on each of 4 stages: all that counts is the host, (8 + 4 - 1) times
    training = recipe(gpt(32, 128, 2, vocab=1), seq_len=16, sequence_parallel=False)
    rates = plain_rates(**COMPUTE, **FREE, **LINKS, launch_s=6e-6, kernels_per_layer=45.0)
    times = step(training, layout(pp=4, grad_accum=8), rates)

    assert seconds(times.compute) < 0.1 * seconds(times.launch)
    assert seconds(times.compute + times.launch + times.bubble) == pytest.approx(11 * 420 * 6e-6, rel=1e-4)
    assert seconds(times.bubble) == pytest.approx(3 * 420 * 6e-6, rel=1e-4)

    # An output layer that takes the last stage half of the host's time shortens no other stage's wait.
    wide = replace(training, model=replace(training.model, vocab=72_000))
    times, alone = (step(wide, layout(pp=4, grad_accum=8), free) for free in (rates, rates.replaced(launch_s=0.0)))
    assert 0.4 < seconds(alone.compute) / 8 / (420 * 6e-6) < 0.6
    assert seconds(times.compute + times.launch + times.bubble) == pytest.approx(11 * 420 * 6e-6, rel=0.02)


FEWER_LAYERS_THAN_CHUNKS = (
    recipe(shape(layers=2, mtp_layers=2).unrolled(), global_batch=2), layout(pp=2, vp=3, grad_accum=2), H100,
)  # fmt: skip
"""Two layers, two modules and both ends are six chunks, two of them empty: the last stage had all layers."""


@example(FEWER_LAYERS_THAN_CHUNKS)
@given(settings_of_recipes())
def test_the_items_are_those_of_the_document_and_sum_to_the_step(setting):
    training, where, machine = setting
    times = step(training, where, machine=machine)
    values = {f.name: seconds(getattr(times, f.name)) for f in fields(StepTimes)}

    assert tuple(values) == STEP_ITEMS
    assert sum(values.values()) == pytest.approx(seconds(times.total), rel=1e-12)
    assert all(value >= 0 and np.isfinite(value) for value in values.values())
    assert seconds(times.compute) < seconds(times.total)


@given(settings_of_recipes())
def test_one_layout_under_draws_starts_from_the_same_equations(setting):
    training, where, machine = setting
    terms = resolve_rates(machine, training)
    drawn = terms.sample(Draws(count=7, seed=1))
    at = Layouts.of(where)
    together = np.ravel(step_times(training, machine, at, drawn).total)
    for i in range(7):
        single = drawn.replaced(**{name: np.ravel(v)[i] for name, v in vars(drawn).items() if np.ndim(v)})
        assert seconds(step_times(training, machine, at, single).total) == pytest.approx(together[i], rel=1e-12)


@given(settings_of_recipes())
def test_more_sequences_per_step_never_take_less_time(setting):
    training, where, machine = setting
    longer = replace(where, grad_accum=2 * where.grad_accum)

    assert seconds(step(training, where, machine=machine).total) < seconds(
        step(training, longer, machine=machine).total
    )


FRICTIONS = ("jitter_ratio", "model_error_ratio", "kernel_s", "launch_s")


@given(setting=settings_of_recipes(), name=st.sampled_from(FRICTIONS))
def test_more_friction_never_takes_less_time(setting, name):
    training, where, machine = setting
    rates = mid_rates(training, machine)
    if name == "kernel_s":  # while the host decides, a slower kernel only takes the place of waiting
        rates = rates.replaced(launch_s=0.0, collective_launch_s=0.0, pipelined_rank_s=0.0)
    rougher = rates.replaced(**{name: 1.5 * getattr(rates, name)})

    rough_s = seconds(step(training, where, rougher, machine).total)
    assert seconds(step(training, where, rates, machine).total) <= rough_s * ROUNDING


def test_fp8_speeds_a_large_model_up_more_than_a_small_one_and_less_than_twice():
    # claim c11 and the published pairs: 1.28 to 1.32 for 8B, 1.44 to 1.49 for 70B, never the 1.9 of a FLOP count
    speedups = {}
    for model, tp in (("llama-3.1-8b", 1), ("llama-3.1-70b", 4)):
        at = layout(tp=tp, dp=8, zero=1, grad_accum=16)
        times = [  # with the overlap of tensor parallel communication that those runs had on Hopper
            seconds(step(recipe(model, policy, seq_len=8192, tp_overlap=True), at).total) for policy in ("bf16", "fp8")
        ]
        speedups[model] = times[0] / times[1]

    assert 1.15 < speedups["llama-3.1-8b"] < speedups["llama-3.1-70b"] < 1.75


EVERYTHING = plain_rates(
    **COMPUTE, memory_bytes_per_s=1e12, operand_bytes_per_s=1e12, optimizer_bytes_per_s=1e11, pcie_bytes_per_s=1e8,
    nvlink_bytes_per_s=1e9, nic_bytes_per_s=1e9, launch_s=1.0, kernels_per_layer=1e3, jitter_ratio=0.02,
    step_overhead_s=0.01,
)  # fmt: skip
ON_EVERY_AXIS = layout(tp=2, pp=2, cp=2, ep=2, dp=2, zero=1, grad_accum=4, act_ckpt="full")


@pytest.mark.parametrize(
    ("name", "untouched"),
    [
        ("model_error_ratio", set()),
        ("precision_error_ratio", set()),
        ("stack_error_ratio", set()),
        ("gpu_error_ratio", set()),
        ("shape_error_ratio", set()),
        # what a framework adds to the GPU's work: neither transfers nor the host
        ("framework_ratio", {"launch", "tp_comm", "cp_comm", "ep_comm", "pp_comm", "dp_comm", "optimizer", "offload",
                       "jitter"}),
    ],
)  # fmt: skip
def test_an_error_stretches_every_item_that_it_is_about_and_no_other(name, untouched):
    training = recipe(shape(experts=8, top_k=2, expert_ffn=512), offload="optimizer", seq_len=2048)
    plain, off = (step(training, ON_EVERY_AXIS, rates) for rates in (EVERYTHING, EVERYTHING.replaced(**{name: 1.25})))
    items = [f.name for f in fields(StepTimes) if f.name != "allocator"]  # it waits for the memory to be known
    ratios = {item: seconds(getattr(off, item)) / seconds(getattr(plain, item)) for item in items}

    if name == "framework_ratio":  # of the bubble it stretches the work, not the wait for the host
        assert 1.0 < ratios.pop("bubble") < 1.25
    assert ratios == pytest.approx({item: 1.0 if item in untouched else 1.25 for item in ratios})


def test_each_message_between_stages_is_sent_once_per_micro_batch_chunk_and_pipeline_fill():
    # 2 x 16 384 x 1024 x 2 bytes at 1 GB/s, activation and gradient: 33.6 + 33.6 ms; 8 x 2 + 4 - 1 chunks
    training = recipe(gpt(32, 1024, 16, vocab=1), seq_len=16_384, sequence_parallel=False)
    times = step(training, layout(pp=4, vp=2, grad_accum=8), plain_rates(**COMPUTE, **FREE, nvlink_bytes_per_s=1e9))

    assert seconds(times.pp_comm) == pytest.approx(2 * 16_384 * 1024 * 2 / 1e9 * (8 * 2 + 4 - 1))


HOST_BOUND = recipe(gpt(16, 1024, 16, vocab=1), seq_len=64)
NO_GPU_TIME = {
    **dict.fromkeys(COMPUTE, 1e30), **FREE, **LINKS, "kernels_per_layer": 0.0, "nvlink_latency_s": 0.0
}  # fmt: skip


@pytest.mark.parametrize(
    ("tp", "pp", "dp", "ms_per_layer"),
    [
        (1, 1, 8, 0.0),
        (8, 1, 1, 8 * 0.3),  # eight gathers and scatters of 0.3 ms
        (8, 1, 2, 8 * 0.3),  # data parallel ranks on another node change nothing
        (4, 2, 1, 8 * 0.3),  # nor does a pipeline inside the node
        (8, 2, 1, 8 * (0.3 + 8 * 0.28)),  # between nodes each collective waits 0.28 ms for each of 8 ranks
    ],
)
def test_the_host_issues_the_collectives_of_every_layer_and_waits_for_ranks_in_a_pipeline_between_nodes(
    tp, pp, dp, ms_per_layer
):
    rates = plain_rates(**NO_GPU_TIME, collective_launch_s=0.3e-3, pipelined_rank_s=0.28e-3)
    times = step(HOST_BOUND, layout(tp=tp, pp=pp, dp=dp, grad_accum=4), rates)

    assert seconds(times.launch) == pytest.approx(4 * 16 / pp * ms_per_layer * 1e-3, rel=1e-3)


@pytest.mark.parametrize(
    ("pp", "filling", "flushes"),
    [(2, 0.90, 0.0), (2, 0.975, 0.5 * (4 + 1)), (2, 1.2, 4 + 1), (8, 1.2, 4 + 7), (1, 1.2, 0)],
)
def test_a_pipeline_whose_memory_is_full_flushes_the_allocator_in_every_micro_batch(pp, filling, flushes):
    at = Layouts.of(layout(pp=pp, grad_accum=4))
    lost = allocator_s(H100, at, filling * H100.gpu.memory_bytes, plain_rates(allocator_retry_s=0.8))

    assert seconds(lost) == pytest.approx(flushes * 0.8)
