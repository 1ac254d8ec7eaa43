"""The layouts that are looked at: all that the rules allow, none twice, each consistent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import Message, UsageError
from planner.models.catalogue import find_model
from planner.parallelism.layout import Layouts
from planner.parallelism.search import (
    MANY_GPUS,
    FixedLayout,
    context_sizes,
    divisors,
    enumerate_layouts,
    pipeline_depths,
)
from planner.training.grad_compression import load_grad_compressions
from planner.training.recipe import ACT_CKPT
from tests.examples import examples
from tests.planner.brute_force_search import all_layouts
from tests.planner.build import cluster, parts, recipe, shape

H100 = cluster()
FREE = FixedLayout()


def as_set(layouts: Layouts) -> set:
    return {layouts.at(i) for i in range(len(layouts))}


@st.composite
def small_questions(draw):
    experts = draw(st.sampled_from((0, 0, 4, 8)))
    model = shape(
        layers=draw(st.integers(1, 12)), heads=draw(st.sampled_from((4, 6, 16))), kv_heads=2,
        experts=experts, top_k=min(experts, 2), expert_ffn=512 if experts else 0,
    )  # fmt: skip
    batch = draw(st.sampled_from((1, 6, 8, 24, 64)))
    seq = draw(st.sampled_from((2048, 8192, 16384, 16386)))
    machine = cluster(draw(st.sampled_from(("h100-sxm5-80gb", "l40s", "a100-pcie-80gb"))))
    stack = draw(st.sampled_from(("tuned", "eager")))
    offload = draw(st.sampled_from(("none", "optimizer")))
    training = recipe(model, seq_len=seq, global_batch=batch, stack=stack, offload=offload)
    return training, machine, draw(st.sampled_from((1, 2, 3, 8, 12, 16)))


@examples(60)
@given(small_questions())
def test_on_a_number_of_gpus_all_layouts_are_found_and_none_twice(question):
    training, machine, gpus = question
    layouts = enumerate_layouts(training, machine, FREE, gpus=gpus)
    kinds = tuple(ACT_CKPT[code] for code in np.unique(layouts.act_ckpt)) or ("none", "selective", "full")

    assert as_set(layouts) == set(all_layouts(training, machine, gpus, kinds))
    assert len(as_set(layouts)) == len(layouts)
    assert len(layouts) == 0 or set(kinds) >= {"none", "selective", "full"}


@examples(40)
@given(small_questions())
def test_without_a_number_every_whole_number_of_nodes_has_the_layouts_that_it_has_alone(question):
    training, machine, _ = question
    layouts = as_set(enumerate_layouts(training, machine, FREE, gpus_between=(1, 40)))

    expected = set()
    for gpus in range(1, 41):
        if gpus % machine.gpus_per_node == 0:
            expected |= as_set(enumerate_layouts(training, machine, FREE, gpus=gpus))
    assert layouts == expected


def test_gradients_are_sharded_with_the_states_alone_where_the_stack_can_and_no_pipeline_is_in_the_way():
    fsdp, megatron = (enumerate_layouts(recipe(stack=stack), cluster(), FREE, gpus=64) for stack in ("eager", "tuned"))

    assert set(fsdp.zero[fsdp.pp == 1]) >= {1, 2, 3}
    assert set(fsdp.zero[fsdp.pp > 1]) <= {0, 1}
    assert 2 not in megatron.zero


def test_deepseek_v3_is_interleaved_with_embedding_head_and_second_token_as_layers():
    # 61 layers, the module and two make 64: 16 chunks of four, as Megatron-Core's `Et*2|(tt|)*29,t|mL` makes 32 of two
    ahead = recipe(replace(find_model("deepseek-v3"), mtp_layers=1).unrolled())
    layouts = enumerate_layouts(ahead, cluster(), FixedLayout(pp=4, vp=4, tp=1), gpus=256)

    assert len(layouts) > 0


@pytest.mark.parametrize("model", ["llama-3.1-8b", "gpt-3-175b", "mixtral-8x7b", "deepseek-v3", "llama-3.1-405b"])
def test_every_layout_uses_all_gpus_and_trains_the_whole_batch(model):
    training = recipe(model, global_batch=960)
    layouts = enumerate_layouts(training, H100, FREE, gpus=1920)

    assert len(layouts) > 100
    assert np.all(layouts.tp * layouts.cp * layouts.dp * layouts.pp == 1920)
    assert np.all(layouts.dp * layouts.micro_batch * layouts.grad_accum == 960)
    assert np.all(layouts.dp <= 960)
    assert np.all(training.model.heads % layouts.tp == 0)
    assert np.all((layouts.tp * layouts.cp * layouts.dp) % layouts.ep == 0)
    assert np.all(layouts.pp <= training.model.layers)
    assert np.all((layouts.vp == 1) | ((layouts.pp > 1) & (layouts.grad_accum % layouts.pp == 0)))
    assert np.all((layouts.zero < 3) | (layouts.pp == 1))


def test_pipeline_depths_waste_at_most_eighteen_percent_of_the_fullest_stage():
    depths = pipeline_depths(recipe("llama-3.1-405b"))  # 126 layers

    assert {1, 2, 3, 6, 7, 9, 14, 16, 18, 21, 42, 63, 126} <= set(depths)
    assert 50 not in depths  # 3 layers on 42 stages: 150 for 126
    assert all(-(-126 // depth) * depth <= 1.18 * 126 for depth in depths)


def test_nearly_even_stages_have_none_to_spare_and_are_whatever_divides_the_gpus_given():
    layers = {"llama-3.1-405b": 126, "llama-3.1-70b": 80, "llama-3.1-8b": 32}
    free, given = (
        {model: set(pipeline_depths(recipe(model), on_given_gpus=exact)) for model in layers} for exact in (False, True)
    )

    assert {8, 11, 13, 16, 26, 32} <= free["llama-3.1-405b"]  # 16, 12, 10, 8, 5 and 4 layers on the fullest
    assert not {15, 24, 30} & free["llama-3.1-405b"]  # 9, 6 and 5, as on 14, 21 and 26 stages
    assert {11, 15, 22} <= given["llama-3.1-405b"]  # 12 x 11, 9 x 15 and 6 x 22: up to 7 % more than 126
    assert {3, 6, 7, 9, 12, 14, 27} <= free["llama-3.1-70b"]  # 27, 14, 12, 9, 7, 6 and 3 layers on the fullest
    assert {11, 13} <= given["llama-3.1-70b"] - free["llama-3.1-70b"]
    assert {19, 64} & given["llama-3.1-70b"] == {19}  # 5 x 19 is 19 % more than 80, 2 x 64 is 60 %
    assert {6, 10, 24} & given["llama-3.1-8b"] == {6, 10, 24}  # 6 x 6, 10 x 4 and 24 x 2: up to half as much again
    for model, depths in given.items():
        assert max(depths) <= layers[model]
        assert free[model] <= depths


def test_one_stage_may_hold_multi_token_prediction_alone():
    shape = replace(find_model("deepseek-v3"), mtp_layers=1).unrolled()  # 61 layers and the module

    depths = set(pipeline_depths(replace(recipe("deepseek-v3"), model=shape)))

    assert shape.layers == 62
    assert {9, 11, 13, 16, 21} <= depths  # 7, 6, 5, 4 and 3 layers on the fullest
    assert {14, 22} <= depths  # 13 x 5 and 21 x 3 hold the 61
    assert not {20, 23, 24} & depths  # as many layers on the fullest as on 16 and 22 stages


def test_context_parallel_is_for_long_sequences():
    assert context_sizes(recipe(seq_len=4096)) == [1]
    assert context_sizes(recipe(seq_len=8192)) == [1, 2]
    assert context_sizes(recipe(seq_len=131072)) == [1, 2, 4, 8, 16, 32]


def test_on_very_many_gpus_a_rank_may_have_half_the_tokens():
    training = recipe("llama-3.1-405b", seq_len=8192, global_batch=2048)
    layouts = enumerate_layouts(training, H100, FixedLayout(), gpus=np.array([4096, 32768]))

    assert context_sizes(training, MANY_GPUS) == [1, 2, 4]
    assert set(layouts.cp[layouts.gpus == 4096]) == {1, 2}
    assert set(layouts.cp[layouts.gpus == 32768]) == {1, 2, 4}


@pytest.mark.parametrize(("number", "expected"), [(1, [1]), (12, [1, 2, 3, 4, 6, 12]), (49, [1, 7, 49]), (97, [1, 97])])
def test_divisors_are_all_and_ascending(number, expected):
    assert divisors(number) == expected


def test_what_the_user_fixed_is_kept():
    fixed = FixedLayout(tp=4, pp=2, vp=1, cp=1, zero=1, micro_batch=2, act_ckpt="full")
    layouts = enumerate_layouts(recipe("llama-3.1-70b"), H100, fixed, gpus=64)

    assert as_set(layouts) == {layouts.at(0)}
    where = layouts.at(0)
    assert (where.tp, where.pp, where.dp, where.zero, where.micro_batch, where.act_ckpt) == (4, 2, 8, 1, 2, "full")


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_a_fixed_zero_stage_is_taken_as_it_is_even_under_a_pipeline(stage):
    layouts = enumerate_layouts(recipe("llama-3.1-8b"), H100, FixedLayout(zero=stage), gpus=16)

    assert set(layouts.zero) == {stage}
    assert max(layouts.pp) > 1


@pytest.mark.parametrize(
    ("fixed", "gpus", "message", "hint"),
    [
        (FixedLayout(tp=2), 3, ("error.gpus_multiple", {"gpus": 3, "multiple": 2}), {"fewer": 2, "more": 4}),
        (FixedLayout(tp=2, pp=3), 8, ("error.gpus_multiple", {"gpus": 8, "multiple": 6}), {"fewer": 6, "more": 12}),
        (FixedLayout(tp=8, pp=2), 5, ("error.gpus_multiple", {"gpus": 5, "multiple": 16}), {"gpus": 16}),
        (FixedLayout(tp=3), 3, ("error.tp_heads", {"tp": 3, "heads": 32}), {"values": (1, 2, 4, 8, 16, 32)}),
        (FixedLayout(pp=33), 33, ("error.pp_layers", {"pp": 33, "layers": 32}), {"key": "hint.fewer_stages"}),
        (FixedLayout(ep=2), 8, ("error.ep_dense", {"ep": 2}), {"key": "hint.leave_ep"}),
        (FixedLayout(pp=1, vp=2), 8, ("error.vp_needs_pp", {}), {"key": "hint.set_pp"}),
        (
            FixedLayout(cp=3),
            3,
            ("error.cp_sequence", {"cp": 3, "seq_len": 4096}),
            {"key": "hint.cp_sequence", "values": (1, 2, 4, 8, 16, 32, 64), "seq_len": 4095},
        ),
        (FixedLayout(micro_batch=3), 8, ("error.micro_batch", {"global_batch": 256}), {"key": "hint.one_of"}),
        (FixedLayout(tp=1, pp=1, cp=1), 24, ("error.dp_batch", {"dp": 24}), {"global_batch": 264}),
    ],
)
def test_a_layout_that_contradicts_itself_is_a_mistake_of_the_user(fixed, gpus, message, hint):
    key, values = message
    with pytest.raises(UsageError) as caught:
        enumerate_layouts(recipe("llama-3.1-8b"), H100, fixed, gpus=gpus)

    assert parts(caught.value.message).items() >= {"key": key, **values}.items()
    assert parts(caught.value.hint).items() >= hint.items()
    assert caught.value.exit_code == 2


def test_expert_sizes_divide_the_experts():
    with pytest.raises(UsageError) as caught:
        enumerate_layouts(recipe("mixtral-8x7b"), H100, FixedLayout(ep=3), gpus=24)
    assert caught.value.message == Message.of("error.ep_experts", ep=3, experts=8, model="mixtral-8x7b")
    assert caught.value.hint == Message.of("hint.one_of", values=(1, 2, 4, 8))
    layouts = enumerate_layouts(recipe("mixtral-8x7b"), H100, FREE, gpus=64)

    assert set(layouts.ep) == {1, 2, 4, 8}


@pytest.mark.parametrize(("gpus", "hint"), [(4, {"gpus": 16}), (24, {"fewer": 16, "more": 32})])
def test_the_ranks_of_a_stage_are_groups_of_experts(gpus, hint):
    with pytest.raises(UsageError) as caught:
        enumerate_layouts(recipe("mixtral-8x7b"), H100, FixedLayout(ep=8, pp=2), gpus=gpus)

    assert parts(caught.value.message).items() >= {"key": "error.gpus_multiple", "gpus": gpus, "multiple": 16}.items()
    assert parts(caught.value.hint).items() >= hint.items()


def test_fewer_gpus_than_the_layout_takes_are_told_the_one_number_that_is_near():
    with pytest.raises(UsageError) as caught:
        enumerate_layouts(recipe("llama-3.1-8b"), H100, FixedLayout(tp=8, pp=2), gpus=5)

    assert caught.value.hint == Message.of("hint.gpus_only", gpus=16)


def test_a_whole_copy_of_the_states_is_kept_on_each_gpu_only_where_it_fits():
    # 18 bytes per parameter (Megatron-LM docs: BF16 with FP32 gradients): 22 GB of the 1.24 B, 1.27 TB of the 70.6 B
    small, large = (enumerate_layouts(recipe(f"llama-3.{name}"), H100, FREE, gpus=64) for name in ("2-1b", "1-70b"))

    assert 0 in small.zero[small.dp > 1]
    assert 0 not in large.zero[large.dp > 1]


def test_long_sequences_are_not_taken_in_micro_batches_of_more_than_262_144_tokens():
    layouts = enumerate_layouts(recipe(seq_len=131_072, global_batch=64), H100, FREE, gpus=64)
    asked = enumerate_layouts(recipe(seq_len=131_072, global_batch=64), H100, FixedLayout(micro_batch=8), gpus=8)

    assert np.max(layouts.micro_batch * 131_072 / layouts.cp) == 262_144
    assert set(asked.micro_batch) == {8}  # unless the user wants it


def test_virtual_stages_are_even_chunks_of_the_layers_or_of_the_layers_with_both_ends():
    # 32 layers, 34 with embedding and output layer, 35 with a layer that predicts a second token
    layouts = enumerate_layouts(recipe("llama-3.1-8b"), H100, FixedLayout(tp=1, cp=1), gpus=16)
    pairs = {(int(pp), int(vp)) for pp, vp in zip(layouts.pp, layouts.vp, strict=True) if vp > 1}

    assert (2, 8) in pairs
    assert all(any((32 + more) % (pp * vp) == 0 for more in (0, 2, 3)) and pp * vp <= 34 for pp, vp in pairs)


def test_compressed_gradients_leave_the_stages_that_the_method_goes_with():
    plain, ways = recipe(shape(), global_batch=64), load_grad_compressions()
    stages = [
        set(enumerate_layouts(replace(plain, grad_compression=how), cluster(), FREE, gpus=8).zero.tolist())
        for how in (None, ways["powersgd"], ways["1bit"])
    ]

    assert 3 in stages[0]
    assert stages[1:] == [{0, 1}, {0}]


def test_a_model_whose_states_fit_no_gpu_is_split_otherwise_where_they_cannot_be_sharded():
    big = replace(recipe("llama-3.1-8b"), grad_compression=load_grad_compressions()["1bit"])
    layouts = enumerate_layouts(big, H100, FREE, gpus=64)

    assert set(layouts.zero.tolist()) == {0}
    assert 8 in layouts.tp.tolist()


@pytest.mark.parametrize("method", ["qlora", "qdora", "dpo-qlora"])
def test_packed_weights_of_four_bits_are_not_split_by_tensor_parallelism(method):
    sizes = {"seq_len": 4096, "global_batch": 32}
    packed = enumerate_layouts(recipe("llama-3.1-70b", method=method, **sizes), H100, FixedLayout(), gpus=8)
    plain = enumerate_layouts(recipe("llama-3.1-70b", method="lora", **sizes), H100, FixedLayout(), gpus=8)

    assert set(packed.tp.tolist()) == {1}
    assert set(plain.tp.tolist()) == {1, 2, 4, 8}


def test_only_checkpointing_that_the_software_has_is_tried_unless_another_is_asked_for():
    switch = recipe(act_ckpts=("none", "full"))
    tried = {ACT_CKPT[code] for code in enumerate_layouts(switch, H100, FREE, gpus=8).act_ckpt}
    asked = enumerate_layouts(switch, H100, FixedLayout(act_ckpt="every-2"), gpus=8)

    assert tried == {"none", "full"}
    assert {ACT_CKPT[code] for code in asked.act_ckpt} == {"every-2"}
