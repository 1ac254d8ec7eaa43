"""The MFU in each convention, and which one a printed figure reveals itself to be."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from planner.comparison.basis import Given
from planner.comparison.compare import Comparison
from planner.comparison.conventions import (
    ATTENTIONS,
    PARAMETERS,
    Count,
    counts_of,
    flop_per_token,
    peaks_of,
    rounding_ratio,
)
from planner.comparison.findings import findings
from planner.hardware.catalogue import find_gpu
from planner.models.catalogue import find_model
from planner.performance.operations import (
    attention_flop_per_token,
    model_flop_per_token,
    worked_flop_per_token,
)
from planner.units import TERA
from tests.planner.comparison.runs import LLAMA, RECIPE, TOKENS_PER_GPU, compared, log_of, recipe_of
from tests.planner.runlog.writers import BEGIN, LLAMA_8B, megatron_arguments, megatron_log, titan, titan_step

H100 = find_gpu("h100-sxm5-80gb")
GIVEN = Given(model=LLAMA, gpu=H100, gpus=64, seq_len=8192, global_batch=128, precision="bf16")
STEPS_S = 2.3 * (1.0 + 0.02 * np.random.default_rng(3).standard_normal(60))


def megatron_of(flop: float) -> Comparison:
    """A run of Megatron-LM whose throughput counts so many FLOP a token."""
    rates = [flop * TOKENS_PER_GPU / step_s / TERA for step_s in STEPS_S]
    lines, _ = megatron_log([float(step_s) for step_s in STEPS_S], of=1000, tflops=rates)
    return compared(log_of(lines), GIVEN)


def titan_of(flop: float, peak_tflops: float, given: Given = GIVEN) -> Comparison:
    """A run of torchtitan whose MFU is over a peak."""
    lines, at = [], BEGIN
    for step, step_s in enumerate(STEPS_S, 1):
        at += timedelta(seconds=float(step_s))
        tflops = flop * TOKENS_PER_GPU / float(step_s) / TERA
        tps = TOKENS_PER_GPU / float(step_s)
        lines.append(titan_step(at, step, tps=tps, tflops=tflops, mfu=100 * tflops / peak_tflops))
    return compared(log_of(lines), given)


def test_the_projects_own_convention_is_the_first_and_its_flop_are_those_of_plans():
    first = counts_of(RECIPE)[0]

    assert first == Count(recompute=False, attention="causal", parameters="matrices")
    assert flop_per_token(RECIPE, first) == pytest.approx(model_flop_per_token(LLAMA, 8192))
    full = Count(recompute=False, attention="full", parameters="matrices")
    assert flop_per_token(RECIPE, full) == pytest.approx(model_flop_per_token(LLAMA, 8192, causal_half=False))


def test_6n_without_attention_is_six_times_the_parameters():
    plain = Count(recompute=False, attention="none", parameters="all")
    layers = Count(recompute=False, attention="none", parameters="layers")

    assert flop_per_token(RECIPE, plain) == pytest.approx(6 * 8.0303e9, rel=1e-3)
    assert flop_per_token(RECIPE, layers) == pytest.approx(6 * (8.0303e9 - 2 * 128256 * 4096), rel=1e-3)


def test_8n_counts_the_layers_a_fourth_time_and_the_output_layer_not():
    once = Count(recompute=False, attention="full", parameters="matrices")
    recomputed = Count(flop_per_parameter=8.0, recompute=True, attention="full", parameters="matrices")
    head = 6 * 128256 * 4096

    assert flop_per_token(RECIPE, recomputed) - head == pytest.approx((flop_per_token(RECIPE, once) - head) * 4 / 3)


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_a_planted_count_is_named_or_is_among_those_that_look_the_same(recompute, parameters, attention):
    count = Count(
        flop_per_parameter=8.0 if recompute else 6.0, recompute=recompute, attention=attention, parameters=parameters
    )
    (revealed,) = megatron_of(flop_per_token(RECIPE, count)).revealed

    assert revealed.figure == "tflops_per_gpu"
    assert count in [reading.count for reading in revealed.readings]
    if revealed.verdict == "named" and count.rarity == 0:
        assert revealed.readings[0].count == count


def test_the_counts_that_frameworks_print_are_named():
    for attention in ("causal", "full"):  # Megatron-LM, torchtitan
        count = Count(recompute=False, attention=attention, parameters="matrices")
        (revealed,) = megatron_of(flop_per_token(RECIPE, count)).revealed
        assert (revealed.verdict, revealed.readings[0].count) == ("named", count)


@pytest.mark.parametrize(
    ("peak_tflops", "compute", "sparse"),
    [(989.0, "bf16", False), (1979.0, "bf16", True), (3958.0, "fp8", True)],
)
def test_a_planted_peak_is_named(peak_tflops, compute, sparse):
    count = Count(recompute=False, attention="full", parameters="matrices")
    tflops, mfu = titan_of(flop_per_token(RECIPE, count), peak_tflops).revealed

    assert (tflops.verdict, tflops.readings[0].count) == ("named", count)
    assert (mfu.figure, mfu.verdict) == ("mfu", "named")
    peak = mfu.readings[0].peak
    assert peak is not None
    assert (peak.compute, peak.sparse) == (compute, sparse)


def test_an_fp8_run_over_the_dense_bf16_peak_is_not_said_to_be_over_sparse_tf32():
    flop = flop_per_token(RECIPE, counts_of(RECIPE)[0])
    peak = titan_of(flop, 989.5, replace(GIVEN, precision="fp8")).revealed[1].readings[0].peak

    assert peak is not None
    assert (peak.compute, peak.sparse, peak.own) == ("bf16", False, False)


def test_the_same_run_has_half_the_mfu_over_the_sparse_peak():
    rows = titan_of(flop_per_token(RECIPE, counts_of(RECIPE)[0]), 989.0).utilisations

    for row in rows:
        assert row.mfu_dense_ratio == pytest.approx(2 * row.mfu_sparse_ratio)
    assert rows[0].mfu_dense_ratio == pytest.approx(
        model_flop_per_token(LLAMA, 8192) * TOKENS_PER_GPU / 2.3 / 989e12, rel=0.01
    )


def test_a_count_that_nobody_uses_agrees_with_none_and_the_nearest_is_said():
    (revealed,) = megatron_of(2.0 * flop_per_token(RECIPE, counts_of(RECIPE)[0])).revealed

    assert revealed.verdict == "none"
    assert abs(revealed.readings[0].error_ratio) > 0.1


def test_without_a_model_or_gpu_the_convention_is_unknown_and_what_is_missing_is_named():
    count = Count(recompute=False, attention="full", parameters="matrices")
    tflops, mfu = titan_of(flop_per_token(RECIPE, count), 989.0, Given()).revealed

    assert (tflops.verdict, tflops.lacks) == ("unknown", ("model", "seq_len"))
    assert (mfu.verdict, mfu.lacks) == ("unknown", ("gpu", "precision"))


def test_the_settings_of_megatron_describe_the_model_so_that_no_flag_is_needed():
    count = Count(recompute=False, attention="causal", parameters="matrices")
    rates = [flop_per_token(RECIPE, count) * TOKENS_PER_GPU / step_s / TERA for step_s in STEPS_S]
    lines, _ = megatron_log([float(step_s) for step_s in STEPS_S], of=1000, tflops=rates)
    comparison = compared(log_of(megatron_arguments(LLAMA_8B), lines), Given(gpu=H100))

    assert comparison.basis.model is not None
    assert comparison.basis.model.params_total == pytest.approx(8.03e9, rel=1e-3)
    assert comparison.basis.missing == ()
    assert (comparison.revealed[0].verdict, comparison.revealed[0].readings[0].count) == ("named", count)


@pytest.mark.parametrize(("stated", "modules"), [(1, 1), (2, 2), (None, 0)])
def test_modules_of_multi_token_prediction_count_where_the_log_states_them(stated, modules):
    settings = megatron_arguments(LLAMA_8B | {"mtp_num_layers": stated})
    log = log_of(settings, megatron_log(STEPS_S.tolist(), of=1000)[0])
    expected = flop_per_token(recipe_of(replace(LLAMA, mtp_layers=modules).unrolled()), counts_of(RECIPE)[0])
    for given in (Given(gpu=H100), Given(gpu=H100, model=replace(LLAMA, mtp_layers=3))):
        basis = compared(log, given).basis

        assert basis.recipe is not None
        assert basis.model is not None
        assert (basis.model.layers, basis.model.mtp_layers) == (32, modules)
        assert flop_per_token(basis.recipe, counts_of(RECIPE)[0]) == pytest.approx(expected, rel=1e-3)


def test_a_name_does_not_say_that_a_run_trains_such_modules():
    log = log_of(megatron_log(STEPS_S.tolist(), of=1000)[0])
    basis = compared(log, replace(GIVEN, model=replace(LLAMA, mtp_layers=3))).basis

    assert basis.model is not None
    assert basis.model.mtp_layers == 0


def test_an_encoder_has_no_causal_half_and_tied_embeddings_no_third_way():
    gpt2 = find_model("gpt2") if find_model("gpt2").tied_embeddings else None
    assert gpt2 is not None
    assert {count.parameters for count in counts_of(recipe_of(gpt2))} == {"matrices", "layers"}
    bert = find_model("bert-large")
    assert {count.attention for count in counts_of(recipe_of(bert))} == {"full", "none"}


def test_a_gpu_without_sparsity_has_no_sparse_peak():
    assert not any(peak.sparse for peak in peaks_of(find_gpu("v100-sxm2-32gb"), "fp16"))
    assert [peak.flop_per_s for peak in peaks_of(H100, "bf16")][:2] == pytest.approx([989e12, 1978e12], rel=1e-3)


def test_rounding_follows_from_the_digits_that_are_printed():
    assert rounding_ratio(np.array([401.2, 398.7, 400.0])) == pytest.approx(0.05 / 400.0)
    assert rounding_ratio(np.array([0.52, 0.51])) == pytest.approx(0.005 / 0.515)


@pytest.mark.parametrize(
    ("method", "passes"),
    [("pretrain", (6, 8)), ("sft", (6, 8)), ("lora", (4, 6)), ("qlora", (4, 6)), ("dpo", (8, 10)), ("dpo-lora", (6, 8)),
     ("freeze", (2.25, 2.375))],
)  # fmt: skip
def test_a_method_counts_the_flop_that_plans_count_for_it(method, passes):
    recipe = recipe_of(LLAMA, method)
    counts = counts_of(recipe)
    own = [count for count in counts if (count.attention, count.parameters) == ("causal", "matrices")]

    assert flop_per_token(recipe, counts[0]) == pytest.approx(worked_flop_per_token(recipe))
    assert tuple(count.flop_per_parameter for count in own if count.method == counts[0].method) == passes
    whole = [count for count in counts if count.method == "pretrain" and not count.recompute]
    assert flop_per_token(recipe, whole[0]) == pytest.approx(model_flop_per_token(LLAMA, 8192))


def test_the_recomputation_of_a_method_is_that_of_the_layers_that_are_run_backward():
    for method in ("lora", "freeze", "dpo"):
        recipe = recipe_of(LLAMA, method)
        for attention in ATTENTIONS:
            once, recomputed = (
                next(
                    count for count in counts_of(recipe)
                    if (count.method, count.recompute, count.attention, count.parameters)
                    == (method, recompute, attention, "matrices")
                )
                for recompute in (False, True)
            )  # fmt: skip
            more = flop_per_token(recipe, recomputed) - flop_per_token(recipe, once)
            core = 0.0 if attention == "none" else attention_flop_per_token(
                LLAMA, 8192, causal_half=attention == "causal"
            )  # fmt: skip
            layers = 2.0 * (LLAMA.matrix_params_active - LLAMA.head_params)
            assert more == pytest.approx(recipe.backward_share * (layers + core))


def test_a_printed_rate_of_lora_is_named_by_the_method_or_as_if_every_weight_learned():
    given = replace(GIVEN, method="lora")
    recipe = recipe_of(LLAMA, "lora")
    own, whole = (
        next(c for c in counts_of(recipe) if (c.method, c.recompute, c.attention) == (method, False, "full"))
        for method in ("lora", "pretrain")
    )
    for count in (own, whole):
        tflops = titan_of(flop_per_token(recipe, count), 989.0, given).revealed[0]
        assert tflops.readings[0].count == count


def test_a_model_without_matrices_in_its_layers_has_no_way_of_counting_that_is_zero():
    assert all(flop_per_token(RECIPE, count) > 0 for count in counts_of(RECIPE))
    hollow = replace(LLAMA, name="head alone", layers=0)
    recipe = recipe_of(hollow)
    assert {count.parameters for count in counts_of(recipe)} == {"matrices", "all"}


def beyond(comparison: Comparison) -> set[str]:
    return {message.key for message in findings(comparison) if message.key.startswith("compare.beyond")}


def test_an_mfu_above_one_says_that_something_is_not_the_runs():
    flop = flop_per_token(RECIPE, counts_of(RECIPE)[0])

    assert beyond(titan_of(flop, 989.0)) == set()
    assert beyond(titan_of(flop, 989.0, replace(GIVEN, gpu=find_gpu("l4")))) == {"compare.beyond.mfu"}
    assert beyond(titan_of(flop, 100.0)) == {"compare.beyond.printed"}


def test_a_stated_peak_that_is_none_of_the_gpus_is_told():
    lines = [titan(BEGIN, "Peak FLOPS used for computing MFU: {:.3e}")]
    steps = [titan_step(BEGIN + timedelta(seconds=2 * n), n, tps=7000, tflops=300, mfu=30.0) for n in range(1, 9)]
    known, other = (log_of([lines[0].format(peak)], steps) for peak in (9.89e14, 3.12e14))

    assert beyond(compared(known, GIVEN)) == set()
    assert beyond(compared(other, GIVEN)) == {"compare.beyond.peak"}
