"""The MFU in each convention, and which one a printed figure reveals itself to be."""

from __future__ import annotations

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
from planner.hardware.catalogue import find_gpu
from planner.models.catalogue import find_model
from planner.performance.operations import model_flop_per_token
from planner.units import TERA
from tests.planner.comparison.runs import LLAMA, TOKENS_PER_GPU, compared, log_of
from tests.planner.runlog.writers import BEGIN, LLAMA_8B, megatron_arguments, megatron_log, titan_step

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
    first = counts_of(LLAMA)[0]

    assert first == Count(recompute=False, attention="causal", parameters="matrices")
    assert flop_per_token(LLAMA, 8192, first) == pytest.approx(model_flop_per_token(LLAMA, 8192))
    full = Count(recompute=False, attention="full", parameters="matrices")
    assert flop_per_token(LLAMA, 8192, full) == pytest.approx(model_flop_per_token(LLAMA, 8192, causal_half=False))


def test_6n_without_attention_is_six_times_the_parameters():
    plain = Count(recompute=False, attention="none", parameters="all")
    layers = Count(recompute=False, attention="none", parameters="layers")

    assert flop_per_token(LLAMA, 8192, plain) == pytest.approx(6 * 8.0303e9, rel=1e-3)
    assert flop_per_token(LLAMA, 8192, layers) == pytest.approx(6 * (8.0303e9 - 2 * 128256 * 4096), rel=1e-3)


def test_8n_counts_the_layers_a_fourth_time_and_the_output_layer_not():
    once = Count(recompute=False, attention="full", parameters="matrices")
    again = Count(recompute=True, attention="full", parameters="matrices")
    head = 6 * 128256 * 4096

    assert flop_per_token(LLAMA, 8192, again) - head == pytest.approx(
        (flop_per_token(LLAMA, 8192, once) - head) * 4 / 3
    )


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_a_planted_count_is_named_or_is_among_those_that_look_the_same(recompute, parameters, attention):
    count = Count(recompute=recompute, attention=attention, parameters=parameters)
    (revealed,) = megatron_of(flop_per_token(LLAMA, 8192, count)).revealed

    assert revealed.figure == "tflops_per_gpu"
    assert count in [reading.count for reading in revealed.readings]
    if revealed.verdict == "named" and count.rarity == 0:
        assert revealed.readings[0].count == count


def test_the_counts_that_frameworks_print_are_named():
    for attention in ("causal", "full"):  # Megatron-LM, torchtitan
        count = Count(recompute=False, attention=attention, parameters="matrices")
        (revealed,) = megatron_of(flop_per_token(LLAMA, 8192, count)).revealed
        assert (revealed.verdict, revealed.readings[0].count) == ("named", count)


@pytest.mark.parametrize(
    ("peak_tflops", "compute", "sparse"),
    [(989.0, "bf16", False), (1979.0, "bf16", True), (3958.0, "fp8", True)],
)
def test_a_planted_peak_is_named(peak_tflops, compute, sparse):
    count = Count(recompute=False, attention="full", parameters="matrices")
    tflops, mfu = titan_of(flop_per_token(LLAMA, 8192, count), peak_tflops).revealed

    assert (tflops.verdict, tflops.readings[0].count) == ("named", count)
    assert (mfu.figure, mfu.verdict) == ("mfu", "named")
    peak = mfu.readings[0].peak
    assert peak is not None
    assert (peak.compute, peak.sparse) == (compute, sparse)


def test_the_same_run_has_half_the_mfu_over_the_sparse_peak():
    rows = titan_of(flop_per_token(LLAMA, 8192, counts_of(LLAMA)[0]), 989.0).utilisations

    for row in rows:
        assert row.mfu_dense_ratio == pytest.approx(2 * row.mfu_sparse_ratio)
    assert rows[0].mfu_dense_ratio == pytest.approx(
        model_flop_per_token(LLAMA, 8192) * TOKENS_PER_GPU / 2.3 / 989e12, rel=0.01
    )


def test_a_count_that_nobody_uses_agrees_with_none_and_the_nearest_is_said():
    (revealed,) = megatron_of(2.0 * flop_per_token(LLAMA, 8192, counts_of(LLAMA)[0])).revealed

    assert revealed.verdict == "none"
    assert abs(revealed.readings[0].error_ratio) > 0.1


def test_without_a_model_or_gpu_the_convention_is_unknown_and_what_is_missing_is_named():
    count = Count(recompute=False, attention="full", parameters="matrices")
    tflops, mfu = titan_of(flop_per_token(LLAMA, 8192, count), 989.0, Given()).revealed

    assert (tflops.verdict, tflops.lacks) == ("unknown", ("model", "seq_len"))
    assert (mfu.verdict, mfu.lacks) == ("unknown", ("gpu", "precision"))


def test_the_settings_of_megatron_describe_the_model_so_that_no_flag_is_needed():
    count = Count(recompute=False, attention="causal", parameters="matrices")
    rates = [flop_per_token(LLAMA, 8192, count) * TOKENS_PER_GPU / step_s / TERA for step_s in STEPS_S]
    lines, _ = megatron_log([float(step_s) for step_s in STEPS_S], of=1000, tflops=rates)
    comparison = compared(log_of(megatron_arguments(LLAMA_8B), lines), Given(gpu=H100))

    assert comparison.basis.model is not None
    assert comparison.basis.model.params_total == pytest.approx(8.03e9, rel=1e-3)
    assert comparison.basis.missing == ()
    assert (comparison.revealed[0].verdict, comparison.revealed[0].readings[0].count) == ("named", count)


def test_an_encoder_has_no_causal_half_and_tied_embeddings_no_third_way():
    gpt2 = find_model("gpt2") if find_model("gpt2").tied_embeddings else None
    assert gpt2 is not None
    assert {count.parameters for count in counts_of(gpt2)} == {"matrices", "layers"}
    bert = find_model("bert-large")
    assert {count.attention for count in counts_of(bert)} == {"full", "none"}


def test_a_gpu_without_sparsity_has_no_sparse_peak():
    assert not any(peak.sparse for peak in peaks_of(find_gpu("v100-sxm2-32gb"), "fp16"))
    assert [peak.flop_per_s for peak in peaks_of(H100, "bf16")][:2] == pytest.approx([989e12, 1978e12], rel=1e-3)


def test_rounding_follows_from_the_digits_that_are_printed():
    assert rounding_ratio(np.array([401.2, 398.7, 400.0])) == pytest.approx(0.05 / 400.0)
    assert rounding_ratio(np.array([0.52, 0.51])) == pytest.approx(0.005 / 0.515)
