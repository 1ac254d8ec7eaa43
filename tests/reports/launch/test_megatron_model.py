"""The shape of a model as Megatron-LM's arguments."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reports.launch.megatron_model import model_arguments
from tests.reports.launch.runs import file_of, run_of


def given(name: str) -> dict[str, tuple[str, ...]]:
    return {flag: tuple(values) for flag, *values in model_arguments(run_of(name))}


def test_experts_and_latent_attention_are_in_the_shape():
    flags = given("moe-shared")

    assert flags["--moe-layer-freq"] == ("([0]*3+[1]*58)",)  # DeepSeek-V3: three dense layers of 61
    assert (flags["--moe-router-num-groups"], flags["--moe-router-group-topk"]) == (("8",), ("4",))
    assert (flags["--kv-lora-rank"], flags["--qk-head-dim"], flags["--v-head-dim"]) == (("512",), ("128",), ("128",))
    assert "--kv-channels" not in flags


def test_a_token_with_one_expert_has_the_scores_of_llama_4():
    # transformers' Llama4TextMoe: a sigmoid of the highest logit scales what the expert takes; Megatron-LM's
    # TransformerConfig refuses the softmax of one score, whose gradient is 0
    flags = given("moe-top-1")

    assert (flags["--moe-router-topk"], flags["--moe-router-score-function"]) == (("1",), ("sigmoid",))
    assert flags["--moe-apply-probs-on-input"] == ()
    assert "--moe-router-score-function" not in given("moe")
    assert "--moe-apply-probs-on-input" not in given("moe")


def test_every_second_layer_has_experts_the_second_first():
    assert given("moe-top-1")["--moe-layer-freq"] == ("([0]*1+[1])*24",)  # as transformers' Llama4TextConfig
    assert given("moe")["--moe-layer-freq"] == ("1",)


@pytest.mark.parametrize(
    ("layers", "dense", "interval", "with_experts"),
    [
        (7, 1, 2, [1, 3, 5]),
        (8, 4, 2, [4, 6]),
        (9, 0, 2, [0, 2, 4, 6, 8]),  # as the plan counts them; an interval begins with the first layer
        (8, 1, 3, [1, 4, 7]),
        (5, 2, 1, [2, 3, 4]),
    ],
)
def test_the_layers_with_experts_after_dense_ones_are_as_many_as_the_plan_counts(layers, dense, interval, with_experts):
    run = run_of("moe-shared")
    shape = {**run.shape, "layers": layers, "dense_layers": dense, "moe_every": interval}
    flags = {flag: values for flag, *values in model_arguments(replace(run, shape=shape))}
    frequency = eval(flags["--moe-layer-freq"][0])
    # Megatron-LM's `moe_freq_type`: a number n for every n-th layer from the first one, or a list for all layers
    pattern = [int(i % frequency == 0) for i in range(layers)] if isinstance(frequency, int) else frequency

    assert [i for i, has in enumerate(pattern) if has] == with_experts
    assert len(pattern) == layers


def test_experts_are_balanced_and_what_the_plan_does_not_know_of_their_routing_is_said():
    made = file_of("megatron", "moe-shared")

    assert given("moe-shared")["--moe-aux-loss-coeff"] == ("1e-2",)  # Megatron's default is none
    assert any("a model's own scores, expert bias and scaling factor" in note for note in made.notes)
    assert "--moe-aux-loss-coeff" not in given("dense")
    assert not any("experts" in note for note in file_of("megatron", "dense").notes)


@pytest.mark.parametrize(
    ("changes", "dispatcher", "backend"),
    [
        ({"moe_dispatcher": "deepep"}, "flex", ("deepep",)),
        ({"moe_dispatcher": "deepep", "rack_domain": True}, "flex", ("hybridep",)),
        ({"moe_dispatcher": "alltoall"}, "alltoall", None),
    ],
)
def test_tokens_are_sent_as_the_plan_has_it(changes, dispatcher, backend):
    flags = {flag: tuple(values) for flag, *values in model_arguments(replace(run_of("moe-shared"), **changes))}

    assert flags["--moe-token-dispatcher-type"] == (dispatcher,)
    assert flags.get("--moe-flex-dispatcher-backend") == backend
    assert flags.get("--moe-router-dtype") == (("fp32",) if backend else None)
