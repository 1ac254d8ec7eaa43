"""Bytes and exposed time of each parallel axis, against Korthikanti et al., the ZeRO paper and hand counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from planner.models.linear_attention import LinearAttention
from planner.parallelism.layout import Layout, Layouts
from planner.performance.communication import data_parallel, layer_comm
from planner.performance.compute import layer_time
from planner.performance.operations import count_work
from planner.performance.shards import shard_params
from planner.performance.transfers import tensor_transfers, zero_passes
from tests.planner.build import (
    ROUNDING,
    cluster,
    gpt,
    layout,
    layouts,
    mid_rates,
    plain_rates,
    recipe,
    settings_of_recipes,
    shape,
)

LINK = 100e9


def links(**changes: float):
    """Only bytes on the links take time: the same rate inside and between nodes, nothing hidden."""
    free = {"linear_flop_per_s": 1e30, "memory_bytes_per_s": 1e30}
    return plain_rates(**({"nvlink_bytes_per_s": LINK, "nic_bytes_per_s": LINK} | free | changes))


def axes(training, where: Layout, rates=None, gpu: str = "h100-sxm5-80gb"):
    at = Layouts.of(where)
    rates = rates or links()
    work = count_work(training, at)
    return layer_comm(training, cluster(gpu), work, at, layer_time(training, work, rates), rates)


def seconds(value) -> float:
    return float(np.ravel(value)[0])


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_tensor_parallel_reduces_twice_forward_and_twice_backward(tp):
    # Megatron-LM (arXiv 1909.08053), section 3: four all-reduces of s b h per layer, 2(t-1)/t of the bytes on the bus
    training = recipe(gpt(8, 4096, 32), sequence_parallel=False, seq_len=2048)
    comm = axes(training, layout(tp=tp, micro_batch=4))

    bus = 4 * 2 * (tp - 1) / tp * 2048 * 4 * 4096 * 2
    assert seconds(comm.tp) == pytest.approx(bus / LINK)


def test_split_products_hide_their_messages_behind_nvlink_and_not_behind_the_network():
    training = recipe(gpt(8, 4096, 32), seq_len=2048)
    shown = [seconds(axes(training, layout(tp=tp), links(overlap_tp_ratio=0.75)).tp) for tp in (8, 16)]
    whole = [seconds(axes(training, layout(tp=tp), links(overlap_tp_ratio=0.0)).tp) for tp in (8, 16)]

    assert shown == pytest.approx([0.25 * whole[0], whole[1]])


def test_recomputation_sends_the_messages_of_the_forward_pass_again():
    dense, routed = recipe(gpt(8, 4096, 32), sequence_parallel=False, seq_len=2048), recipe(shape(experts=8, top_k=2))

    def relative_to_none(training, axis, **split):
        none, half, full = (axes(training, layout(act_ckpt=name, **split)) for name in ("none", "every-2", "full"))
        return [seconds(getattr(comm, axis)) / seconds(getattr(none, axis)) for comm in (half, full)]

    assert relative_to_none(dense, "tp", tp=4) == pytest.approx([1.25, 1.5])  # two of four, all-reduces
    assert relative_to_none(routed, "ep", ep=4) == pytest.approx([1.25, 1.5])  # dispatch and combine
    assert relative_to_none(dense, "cp", cp=4) == pytest.approx([7 / 6, 4 / 3])  # the gather of keys and values


def test_sequence_parallel_moves_the_same_bytes_and_gathers_the_inputs_again():
    # Korthikanti et al. 2022, section 4.2.2: all-gather and reduce-scatter add up to the all-reduce
    plain, split = (recipe(gpt(8, 4096, 32), sequence_parallel=kind) for kind in (False, True))

    assert seconds(axes(split, layout(tp=8)).tp) == pytest.approx(1.25 * seconds(axes(plain, layout(tp=8)).tp))
    # frozen weights have no gradient that would need the input again
    lora = replace(split, method="lora")
    assert seconds(axes(lora, layout(tp=8)).tp) == pytest.approx(seconds(axes(plain, layout(tp=8)).tp))


def test_messages_of_the_backward_pass_hide_behind_the_products_beside_them():
    # Megatron-LM: the sum of the input's gradients beside the weight gradient, the input beside its own gradient
    plain, split = (recipe(gpt(8, 4096, 32), sequence_parallel=kind) for kind in (False, True))
    bare_s = seconds(axes(plain, layout(tp=8)).tp)

    def exposed(training, **changes):
        return (
            seconds(axes(training, layout(tp=8), links(overlap_dp_ratio=1.0, operand_bytes_per_s=1e30, **changes)).tp)
            / bare_s
        )

    assert exposed(plain, linear_flop_per_s=1e6) == pytest.approx(1 / 2)  # two all-reduces of four
    # the gather of the gradients is waited for
    assert exposed(split, linear_flop_per_s=1e6) == pytest.approx(3 / 4)
    assert exposed(plain) == pytest.approx(1)  # products that take no time hide nothing
    assert exposed(replace(plain, method="lora"), linear_flop_per_s=1e6) == pytest.approx(1)  # no weight gradient
    # three h x h matrices of the four of attention, one h x 4h of the two of the MLP: 3.5 h x h each, in the mean
    flop, message_s = 2 * plain.seq_len * 3.5 * 4096**2 / 8, bare_s / 4
    # each hides half of a message
    assert exposed(plain, linear_flop_per_s=2 * flop / message_s) == pytest.approx(3 / 4)


def test_routed_layers_hide_messages_behind_the_product_of_attention_alone():
    training = recipe(shape(experts=8, top_k=2, expert_ffn=2816), sequence_parallel=False)
    slow = {"linear_flop_per_s": 1e6, "grouped_flop_per_s": 1e6}
    bare, hidden = (
        axes(training, layout(tp=4, ep=4), links(overlap_dp_ratio=share, **slow)).tp for share in (0.0, 1.0)
    )

    assert seconds(hidden) == pytest.approx(seconds(bare) / 2)


@pytest.mark.parametrize(("moe_every", "blocks"), [(1, 1.0), (2, 1.5)])
def test_the_dense_layers_of_a_mixture_reduce_behind_their_feed_forward_too(moe_every, blocks):
    # expert parallelism takes the four tensor parallel ranks: no expert is split, dense feed-forwards are
    training = recipe(shape(experts=8, top_k=2, expert_ffn=2816, moe_every=moe_every), sequence_parallel=False)
    at = Layouts.of(layout(tp=4, ep=4))
    reduce, _ = tensor_transfers(training, cluster(), np.array([4096.0]), at, 0.0, links())

    assert float(np.ravel(reduce.times)[0]) == blocks


def test_explicit_overlap_hides_its_share():
    training = recipe(gpt(8, 4096, 32))
    bare, hidden = (seconds(axes(training, layout(tp=8), links(overlap_tp_ratio=share)).tp) for share in (0.0, 0.7))

    assert hidden == pytest.approx(0.3 * bare)


def test_an_axis_of_one_rank_says_nothing():
    comm = axes(recipe("mixtral-8x7b"), layout(dp=64))

    assert [seconds(value) for value in (comm.tp, comm.cp, comm.ep, comm.send)] == [0, 0, 0, 0]


def test_context_parallel_passes_keys_and_values_three_times_behind_attention():
    training = recipe(shape(), seq_len=32768)  # 4 key/value heads of 64
    bare = seconds(axes(training, layout(cp=4)).cp)

    bus = 3 * 3 / 4 * 32768 * 4 * (64 + 64) * 2
    assert bare == pytest.approx(bus / LINK)
    attention_s = 1e-3
    flop = 3.5 * 4 * (32768 / 4) * (32768 / 2) * 16 * 64
    rates = links(overlap_cp_ratio=0.5, attention_flop_per_s=flop / attention_s)
    assert seconds(axes(training, layout(cp=4), rates).cp) == pytest.approx(max(0.0, bare - 0.5 * attention_s))
    assert seconds(axes(training, layout(cp=4), rates.replaced(overlap_cp_ratio=10.0)).cp) == 0


@pytest.mark.parametrize(
    ("key_heads", "cp", "keys"),
    [
        (8, 4, 8 * 64),
        (2, 4, 4 * 64),  # two key heads on four ranks: both are sent twice
    ],
)
def test_the_exchange_before_and_after_a_scan_hides_behind_no_attention(key_heads, cp, keys):
    linear = LinearAttention(layers=1, key_heads=key_heads, key_dim=64, value_heads=16, value_dim=64)
    training = recipe(shape(layers=2, attention_layers=1, linear=linear), seq_len=32768)

    # gate, values, keys and queries there, what was scanned back, and their gradients; in one of two layers
    bus = 0.5 * 2 * (cp - 1) / cp * (32768 / cp) * (3 * 16 * 64 + 2 * keys) * 2
    assert seconds(axes(training, layout(cp=cp), links(overlap_cp_ratio=1e9)).cp) == pytest.approx(bus / LINK)


def test_a_convolution_sends_no_part_of_the_sequence():
    convolution = LinearAttention(
        layers=2, key_heads=1, key_dim=0, value_heads=16, value_dim=64, head_inputs=0, gates=2
    )
    training = recipe(shape(layers=2, attention_layers=0, linear=convolution), seq_len=32768)

    assert seconds(axes(training, layout(cp=4)).cp) == 0


def test_expert_parallel_sends_every_chosen_token_four_times_inside_a_node():
    training = recipe("mixtral-8x7b")  # every layer routes each token to 2 of 8 experts
    comm = axes(training, layout(dp=8, ep=8))

    copies = 8 * (1 - (7 / 8) ** 2)  # DeepEP sends a GPU one copy, also for two experts
    bus = 4 * 7 / 8 * 4096 * copies * 4096 * 2
    assert seconds(comm.ep) == pytest.approx(bus / LINK)


def test_a_token_for_several_experts_of_one_node_crosses_the_network_once():
    training = recipe("deepseek-v3")  # top 8 of 256
    rates = links(nvlink_bytes_per_s=1e30)
    comm = axes(training, layout(dp=64, ep=64), rates)

    # 8 domains: the four groups that a token may go to lie on 4 of them, of which it meets 4 (1 - (3/4)^8) = 3.6
    limited = 4 * (1 - (3 / 4) ** 8)
    assert seconds(comm.ep) == pytest.approx(4 * 4096 * 7168 * 2 * limited * 56 / 64 / LINK * 58 / 61)

    # a plain all-to-all sends all eight copies
    plain = axes(replace(training, moe_dispatcher="alltoall"), layout(dp=64, ep=64), rates)
    assert seconds(plain.ep) == pytest.approx(4 * 4096 * 7168 * 2 * 8 * 56 / 64 / LINK * 58 / 61)

    # without groups it would meet 8 (1 - (7/8)^8) = 5.25 distinct ones on average, not 8
    anywhere = replace(training, model=replace(training.model, expert_groups=0, token_groups=0))
    distinct = 8 * (1 - (7 / 8) ** 8)
    assert distinct == pytest.approx(5.25, abs=0.005)
    spread = axes(anywhere, layout(dp=64, ep=64), rates)
    assert seconds(spread.ep) == pytest.approx(4 * 4096 * 7168 * 2 * distinct * 56 / 64 / LINK * 58 / 61)


def test_experts_on_two_nodes_are_reached_no_faster_than_the_links_of_one_node_allow():
    # H800: NVLink at 200 GB/s. A token enters the other node over the network once, then each GPU of its experts gets a
    # copy: 5.25 of 16 for eight experts in four groups, each of which lies on two GPUs.
    training, where = recipe("deepseek-v3"), layout(dp=64, ep=16)
    comm = axes(training, where, links(nvlink_bytes_per_s=200e9, nic_bytes_per_s=50e9), "h800-sxm5-80gb")
    copies = 8 * (1 - (7 / 8) ** 8)
    assert seconds(comm.ep) == pytest.approx(4 * 4096 * 7168 * 2 * copies * 7 / 8 / 200e9 * 58 / 61)


def test_a_pipeline_passes_activations_and_gradients_of_its_sequence_shard():
    training = recipe(gpt(8, 4096, 32))
    comm = axes(training, layout(tp=4, pp=2, dp=4, grad_accum=8))

    assert seconds(comm.send) == pytest.approx(2 * 4096 * 4096 / 4 * 2 / LINK)


def step(training, where: Layout, rates=None, micro_batch_s: float = 0.0) -> float:
    at = Layouts.of(where)
    return seconds(
        data_parallel(training, cluster(), shard_params(training, at), at, micro_batch_s, rates or links()).total_s
    )


def volume(where: Layout, **changes: object) -> float:
    """Bytes on the bus per parameter and (n-1)/n, with FP16 gradients and parameters as in the ZeRO paper."""
    training = recipe(gpt(8, 2048, 16), "fp16-zero", **changes)
    return step(training, where) * LINK / training.model.params_total / (1 - 1 / where.dp)


def test_zero_moves_what_its_paper_says():
    # Rajbhandari et al. 2020, section 7: 2 Psi for data parallel and stages 1 and 2, 3 Psi for stage 3; 2 bytes each
    assert [volume(layout(dp=64, zero=stage)) for stage in range(4)] == pytest.approx([4, 4, 4, 6])


def test_without_resharding_fsdp_gathers_once():
    assert volume(layout(dp=64, zero=3), reshard_after_forward=False) == pytest.approx(4)


def test_sharded_gradients_are_reduced_for_every_micro_batch():
    per_stage = [volume(layout(dp=64, zero=stage, grad_accum=4)) for stage in range(4)]

    # stage 2: four reduce-scatters and one gather; stage 3: four times three halves
    assert per_stage == pytest.approx([4, 4, 4 * 2 + 2, 4 * 6])


def test_under_a_pipeline_fsdp_gathers_and_reduces_once_per_step():
    training = recipe(gpt(8, 2048, 16, vocab=64), "fp16-zero")

    once = step(training, layout(pp=2, dp=64, zero=3, grad_accum=8))
    assert once == pytest.approx(step(training, layout(pp=2, dp=64, zero=1, grad_accum=8)))


def test_lora_reduces_the_adapters_only():
    lora_training, sft_training = (recipe("llama-3.1-8b", method=method) for method in ("lora", "sft"))
    adapters = lora_training.adapter_params_per_layer * 32 / lora_training.model.params_total

    lora, sft = (step(r, layout(dp=8, zero=1)) for r in (lora_training, sft_training))
    assert lora / sft == pytest.approx(adapters)


def test_communication_hides_behind_compute_but_for_a_last_bucket():
    training = recipe(gpt(9, 2048, 16))
    bare = step(training, layout(dp=8, zero=1))
    half = step(training, layout(dp=8, zero=1), links(overlap_dp_ratio=0.5), micro_batch_s=bare)
    all_of_it = step(training, layout(dp=8, zero=1), links(overlap_dp_ratio=0.9), micro_batch_s=100 * bare)

    assert half == pytest.approx(bare / 2)
    assert all_of_it == pytest.approx(bare / 10)  # nine layers and the ends


def test_communication_slows_the_compute_beside_it():
    training = recipe(gpt(9, 2048, 16))
    bare = step(training, layout(dp=8, zero=1))
    slowed = step(training, layout(dp=8, zero=1), links(interference_ratio=0.05), micro_batch_s=bare)

    assert slowed == pytest.approx(1.05 * bare)


def test_fsdp_copies_in_and_out_of_its_buffers():
    training = recipe(gpt(9, 2048, 16), "bf16-fsdp")
    bare = step(training, layout(dp=8, zero=3))
    copied = step(training, layout(dp=8, zero=3), links(memory_bytes_per_s=1e12))

    # two gathers of 2 bytes and one scatter of 4, each read and written
    assert copied - bare == pytest.approx(training.model.params_total * 2 * (2 * 2 + 4) / 1e12)


def test_experts_are_reduced_among_the_ranks_that_hold_the_same_ones():
    training = recipe("mixtral-8x7b")
    at = Layouts.of(layout(dp=8, ep=8, zero=1))
    shards = shard_params(training, at)

    # with ep = dp nobody else holds this rank's experts: only the dense parameters travel
    dense = seconds(shards.dense(last=False))
    assert step(training, layout(dp=8, ep=8, zero=1)) == pytest.approx(dense * (4 + 2) * 7 / 8 / LINK)


def test_experts_that_take_tensor_parallel_ranks_are_reduced_where_nothing_else_is():
    training = recipe("mixtral-8x7b")
    experts = 32 * 2 * 3 * 4096 * 14336

    # four expert parallel ranks of eight tensor parallel ones: two GPUs hold the same two of eight experts
    assert step(training, layout(tp=8, ep=4)) == pytest.approx(2 * experts * 4 / 2 / LINK)
    assert step(training, layout(tp=8, ep=8)) == 0.0


def test_layers_that_are_not_run_backward_are_gathered_once():
    frozen, all_trained = (recipe("llama-3.1-8b", method="freeze", trained_layers=n) for n in (2, 32))
    gathers = [
        float(zero_passes(training, layouts(dp=8, zero=3, grad_accum=4)).gathers[0])
        for training in (frozen, all_trained)
    ]

    assert gathers == [4 * (1 + 2 / 32), 4 * 2]


@given(settings_of_recipes())
def test_faster_links_never_cost_time(setting):
    training, where, machine = setting
    at = Layouts.of(where)
    rates = mid_rates(training, machine)
    work, shards = count_work(training, at), shard_params(training, at)
    layer = layer_time(training, work, rates)
    for name in ("nvlink_bytes_per_s", "nic_bytes_per_s"):
        faster = rates.replaced(**{name: 2 * getattr(rates, name)})
        slow, fast = (layer_comm(training, machine, work, at, layer, r) for r in (rates, faster))
        slow_s, fast_s = (data_parallel(training, machine, shards, at, layer.total, r).total_s for r in (rates, faster))

        assert seconds(fast.total) <= seconds(slow.total) * ROUNDING
        assert seconds(fast.send) <= seconds(slow.send) * ROUNDING
        assert seconds(fast_s) <= seconds(slow_s) * ROUNDING


@pytest.mark.parametrize(
    ("pp", "dp", "stalls"),
    [
        (2, 4, 0),  # inside one node
        (2, 64, 0),  # 128 GPUs: fewer than those from which sends stall
        (2, 128, 1),  # one boundary
        (8, 32, 2),  # an inner stage waits at both of its own
    ],
)
def test_sends_stall_at_each_boundary_of_a_stage_in_jobs_that_are_large_enough(pp, dp, stalls):
    where = layout(pp=pp, dp=dp)
    slow = links(nvlink_bytes_per_s=1e30, nic_bytes_per_s=1e30, send_stall_s=0.4, stall_gpus=200.0)
    comm = axes(recipe(gpt(8, 1024, 16)), where, slow)

    assert seconds(comm.send) == pytest.approx(stalls * 0.4)


@pytest.mark.parametrize(
    ("where", "slow"),
    [
        ({"tp": 4, "pp": 16}, 0.0),  # 64 GPUs: one domain of 72
        ({"tp": 4, "pp": 16, "dp": 4}, 0.5),  # 16 apart, four stages in a domain: one neighbour of its edge is outside
        ({"tp": 4, "pp": 8, "dp": 16}, 1.0),  # 64 apart: each stage has a domain of its own
    ],
)
def test_a_stage_at_the_edge_of_a_domain_has_one_neighbour_inside_it(where, slow):
    rates = links(nvlink_bytes_per_s=1e30, nic_bytes_per_s=LINK)
    training = recipe(gpt(32, 4096, 32), seq_len=2048)
    at = layout(**where, micro_batch=1)

    inside, outside = 0.0, 2 * 2048 * 4096 * 2 / 4 / LINK  # an activation and its gradient, split by tensor parallel
    expected = slow * outside + (1 - slow) * inside
    assert seconds(axes(training, at, rates, gpu="gb200-186gb").send) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("zero", "bucket", "messages"),
    [(0, 20e6, 8), (0, 1e9, 1), (1, 20e6, 2 * 8), (3, 20e6, 3 * (8 + 1))],  # 153M parameters; ZeRO 3: a layer each
)
def test_gradients_are_reduced_in_buckets_and_zero_3_in_a_message_for_each_layer(zero, bucket, messages):
    training, at = recipe(gpt(8, 1024, 16), "bf16"), Layouts.of(layout(dp=16, zero=zero))
    fast = {"nvlink_bytes_per_s": 1e30, "nic_bytes_per_s": 1e30, "node_doubling_s": 1e-3, "interference_ratio": 0.0}
    rates = links(bucket_elements=bucket, **fast)
    exposed = data_parallel(training, cluster(), shard_params(training, at), at, 0.0, rates).total_s

    assert seconds(exposed) == pytest.approx(messages * 1e-3)


def test_buckets_grow_with_the_ranks_where_the_stack_lets_them():
    training, at = recipe(gpt(8, 1024, 16)), Layouts.of(layout(dp=16, zero=0))
    rates = links(bucket_elements=20e6, bucket_rank_elements=4e6)  # 64 million of 153 in each
    (reduced,) = data_parallel(training, cluster(), shard_params(training, at), at, 0.0, rates).transfers

    assert seconds(reduced.messages) == 3


def test_zero_1_hides_nothing_where_the_stack_reduces_and_gathers_after_the_backward_pass():
    training = recipe(gpt(9, 2048, 16))
    waits = links(overlap_dp_ratio=1.0, zero1_overlap_ratio=0.0)

    for zero, left in ((0, 1 / 10), (1, 1.0), (2, 1 / 10)):
        bare = step(training, layout(dp=8, zero=zero))
        assert step(training, layout(dp=8, zero=zero), waits, micro_batch_s=100 * bare) == pytest.approx(left * bare)


def test_only_the_layouts_with_several_copies_reduce_between_them():
    # ZeRO-3 over 16 GPUs: sharded over all of them, and over each server of 8 with the two copies reduced in addition
    at = Layouts.of(layout(dp=16, zero=3), layout(dp=16, zero=3, replicas=2))
    training = recipe()
    transfers = data_parallel(
        training, cluster(), shard_params(training, at), at, np.full(2, 1e-9), plain_rates()
    ).transfers

    (between,) = (transfer for transfer in transfers if transfer.carries == "gradient_shards")
    assert np.asarray(between.times, dtype=float).tolist() == [0.0, 1.0]
