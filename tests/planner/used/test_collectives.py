"""The listed collectives are those of the step: bytes, numbers and times by hand, and their sum is the item."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given

from planner.models.images.catalogue import load_image_models
from planner.parallelism.layout import Layouts
from planner.performance.step import step_times
from planner.rates.ladder import resolve_rates
from planner.used.collectives import CollectiveUse, collectives_used
from tests.planner.build import cluster, layout, layouts, recipe, settings_of_recipes


def used(training, where, gpu: str = "h100-sxm5-80gb") -> dict[tuple[str, str], CollectiveUse]:
    machine = cluster(gpu)
    rows = collectives_used(training, machine, Layouts.of(where), resolve_rates(machine, training))
    return {(row.item, row.carries if row.operation == "all_to_all" else row.operation): row for row in rows}


def test_tensor_parallel_reductions_of_a_layer_are_counted_for_a_step():
    training = recipe("llama-3.1-8b", sequence_parallel=False)
    at = layouts(tp=8, grad_accum=4, micro_batch=2)
    forward, reduce = collectives_used(training, cluster(), at, resolve_rates(cluster(), training))

    assert (forward.carries, reduce.carries) == ("activations", "input_gradients")
    assert forward.per_step + reduce.per_step == 4 * 32 * 4  # micro-batches, layers, two forward and two backward
    assert forward.exposed_ratio == 1 > reduce.exposed_ratio  # behind the product of the weight's gradient
    assert reduce.message_bytes == pytest.approx(2 * 4096 * 4096 * 2, rel=1e-5)  # s b h in BF16
    assert (reduce.gpus, reduce.domains) == (8, 1)
    assert reduce.evidence == "kernels:collectives:h100-sxm5-80gb"
    # nccl-tests' doc/PERFORMANCE.md: 2 (n-1)/n of the bytes are on the bus
    assert reduce.bus_gb_per_s == pytest.approx(2 * 7 / 8 * reduce.message_bytes / reduce.message_s / 1e9, rel=1e-4)
    assert forward.share_ratio + reduce.share_ratio == pytest.approx(1.0)


def test_gradients_and_parameters_are_sent_in_buckets_between_nodes():
    training = recipe("llama-3.1-8b")
    rows = used(training, layout(dp=64, zero=1))
    reduce, gather = rows["dp_comm", "reduce_scatter"], rows["dp_comm", "all_gather"]

    assert (reduce.gpus, reduce.domains, reduce.per_step) == (64, 8, 126)  # a million parameters a rank each
    assert reduce.message_bytes == pytest.approx(training.model.params_total * 4 / 126, rel=1e-4)
    assert gather.message_bytes == pytest.approx(training.model.params_total * 2 / 126, rel=1e-4)
    assert reduce.evidence.startswith("parameter:nic_efficiency")
    assert reduce.share_ratio + gather.share_ratio < 1  # the rest is compute that they slow


def test_a_pipeline_sends_to_the_next_stage_for_every_micro_batch():
    training = recipe("llama-3.1-8b", sequence_parallel=False)
    send = used(training, layout(pp=4, grad_accum=8))["pp_comm", "send"]

    assert (send.gpus, send.domains) == (2, 1)
    assert send.per_step == 2 * (8 + 4 - 1)  # forward and backward, filling the pipeline included
    assert send.message_bytes == pytest.approx(4096 * 4096 * 2, rel=1e-5)
    interleaved = used(training, layout(pp=4, vp=2, grad_accum=8))["pp_comm", "send"]
    assert interleaved.per_step == 2 * (8 * 2 + 4 - 1)  # each of two chunks, and while the stages fill


def test_keys_and_values_hide_behind_attention_and_are_listed_all_the_same():
    training = recipe("llama-3.1-8b", seq_len=131072)
    rows = used(training, layout(cp=8))

    gather = rows["cp_comm", "all_gather"]
    assert gather.per_step == 2 * 32
    assert gather.message_bytes == pytest.approx(131072 * 8 * (128 + 128) * 2, rel=1e-5)
    assert gather.exposed_ratio == 0
    assert gather.share_ratio == 0


def test_routed_tokens_are_exchanged_four_times_a_layer_and_experts_reduced_apart():
    training = recipe("mixtral-8x7b")
    rows = collectives_used(training, cluster(), layouts(dp=16, ep=8, zero=1), resolve_rates(cluster(), training))

    exchange = next(row for row in rows if row.item == "ep_comm")
    assert (exchange.operation, exchange.gpus, exchange.per_step) == ("all_to_all", 8, 4 * 32)
    contents = {row.carries: row.gpus for row in rows if row.item == "dp_comm"}
    assert contents == {"gradients": 16, "parameters": 16, "expert_gradients": 2, "expert_parameters": 2}


def test_experts_held_twice_by_tensor_parallel_ranks_are_listed_where_nothing_else_is_reduced():
    training = recipe("mixtral-8x7b")
    rows = collectives_used(training, cluster(), layouts(tp=8, ep=4), resolve_rates(cluster(), training))

    (reduce,) = [row for row in rows if row.item == "dp_comm"]
    assert (reduce.operation, reduce.carries, reduce.gpus) == ("all_reduce", "expert_gradients", 2)


def test_copies_of_the_sharded_states_reduce_their_shards():
    rows = collectives_used(
        recipe(), cluster(), layouts(dp=32, zero=3, replicas=4), resolve_rates(cluster(), recipe())
    )  # fmt: skip

    shards = next(row for row in rows if row.carries == "gradient_shards")
    assert (shards.operation, shards.gpus, shards.domains, shards.per_step) == ("all_reduce", 4, 4, 1)


def test_a_convolutional_network_reduces_its_gradients():
    training = recipe(load_image_models()["resnet50"], seq_len=1)
    (reduce,) = used(training, layout(dp=16)).values()

    assert (reduce.item, reduce.operation, reduce.gpus, reduce.domains) == ("dp_comm", "all_reduce", 16, 2)
    assert reduce.message_bytes == pytest.approx(25.557e6 * 4, rel=1e-3)  # He et al. 2015: 25.6 M parameters
    assert reduce.share_ratio == 1.0


def test_one_gpu_sends_nothing():
    assert used(recipe(), layout()) == {}


@given(settings_of_recipes())
def test_what_is_listed_adds_up_to_the_items_of_the_step(setting):
    training, where, machine = setting
    at, rates = Layouts.of(where), resolve_rates(machine, training)
    rows = collectives_used(training, machine, at, rates)
    step = step_times(training, machine, at, rates.sample())

    shares: dict[str, float] = defaultdict(float)
    for row in rows:
        shares[row.item] += row.share_ratio
        assert 0 <= row.exposed_ratio <= 1 + 1e-6
    for item in ("tp_comm", "cp_comm", "ep_comm", "pp_comm", "dp_comm"):
        listed = item in shares
        assert listed or float(getattr(step, item).ravel()[0]) == 0
        beside = item in ("dp_comm", "pp_comm")  # slowed compute, copies, stalls
        whole = float(getattr(step, item).ravel()[0]) > 0
        assert not (listed and whole) or (shares[item] <= 1 + 1e-9 and (beside or shares[item] > 1 - 1e-9))
