from __future__ import annotations

import pytest

from planner.models.linear_attention import LinearAttention
from planner.performance.operations import count_work
from planner.performance.products import product_times
from planner.used.kernels import attention_used, gain_of_narrow, products_used
from tests.planner.build import cluster, layouts, mid_rates, recipe, shape

AT = layouts(tp=1, micro_batch=1)


def test_the_products_of_a_layer_add_up_to_the_time_of_its_products():
    training = recipe("llama-3.1-8b")
    rates, work = mid_rates(training, cluster()), count_work(recipe("llama-3.1-8b"), AT)
    used = products_used(training, AT, rates)

    layer = product_times(work.dense_layer, training, rates)
    assert sum(use.step_s for use in used if use.where == "layer") == pytest.approx(float(layer.total[0]), rel=1e-5)
    assert [(use.m, use.n, use.k) for use in used] == [
        # queries, keys and values; output; gate and up; down; output layer over 128 256 tokens
        (4096, 6144, 4096), (4096, 4096, 4096), (4096, 28672, 4096), (4096, 4096, 14336), (4096, 128256, 4096),
    ]  # fmt: skip
    assert {use.evidence for use in used} == {"kernels:matmul:h100-sxm5-80gb:bf16"}
    assert sum(use.share_ratio for use in used) == pytest.approx(1.0)


def test_a_product_that_nobody_measured_names_no_source():
    training = recipe(policy="fp16")

    used = products_used(training, AT, mid_rates(training, cluster("v100-sxm2-32gb")))

    assert {use.evidence for use in used} == {None}


def test_the_attention_kernel_shows_its_shape_rate_and_source():
    training = recipe("llama-3.1-8b", seq_len=8192)
    used = attention_used(training, layouts(tp=2, cp=2, micro_batch=3), mid_rates(training, cluster()))

    assert used is not None
    assert (used.heads, used.head_dim, used.length, used.chunks) == (48, 128, 4096, 2)
    assert used.evidence == "kernels:attention:h100-sxm5-80gb:bf16"
    # forward and 2.5 times as much backward, of a quarter of the square of 48 heads
    assert used.step_s * used.tflops * 1e12 == pytest.approx(3.5 * 48 * 8192**2 * 128, rel=1e-4)


def test_attention_names_no_source_where_nobody_measured_it_and_no_kernel_where_scores_are_stored():
    fused, naive = recipe(policy="fp16"), recipe(attention="naive")
    unmeasured = attention_used(fused, AT, mid_rates(fused, cluster("v100-sxm2-32gb")))

    assert unmeasured is not None
    assert unmeasured.evidence is None
    assert attention_used(naive, AT, mid_rates(naive, cluster())) is None


def test_a_model_that_only_scans_has_no_kernel_and_no_product_of_attention():
    linear = LinearAttention(layers=2, key_heads=2, key_dim=64, value_heads=16, value_dim=64)
    training = recipe(shape(layers=2, attention_layers=0, linear=linear))
    rates = mid_rates(training, cluster())

    assert attention_used(training, AT, rates) is None
    # into and out of the scan; gate and up; down
    assert [(use.n, use.k, use.count) for use in products_used(training, AT, rates)][:4] == [
        (2 * 1024 + 2 * 128 + 16, 1024, 1), (1024, 1024, 1), (2 * 2816, 1024, 1), (1024, 2816, 1),
    ]  # fmt: skip


def test_layers_with_experts_are_listed_apart_with_their_number_on_the_gpu():
    training = recipe("mixtral-8x7b")
    used = products_used(training, AT, mid_rates(training, cluster()))

    assert {use.where for use in used} == {"moe_layer", "head"}
    assert max(use.count for use in used) == 8


def test_fp8_gains_on_large_products_of_a_hopper_and_says_from_which_size_on():
    fp8 = recipe(policy="fp8")
    rates = mid_rates(fp8, cluster())
    gain = gain_of_narrow(fp8, rates, products_used(fp8, AT, rates))

    assert gain is not None
    assert (gain.n, gain.k) == (28672, 4096)  # the longest: gate and up
    assert 1.2 < gain.gain_ratio < 2.0  # FP8 doubles the peak; casts take some of it
    assert gain.pays_from_hidden is not None
    assert gain.pays_from_hidden < 4096


@pytest.mark.parametrize(("gpu", "policy"), [("h100-sxm5-80gb", "bf16"), ("mi300x-192gb", "fp8")])
def test_there_is_nothing_to_say_of_a_gain_without_narrow_products_or_without_measurements(gpu, policy):
    training = recipe(policy=policy)
    rates = mid_rates(training, cluster(gpu))

    assert gain_of_narrow(training, rates, products_used(training, AT, rates)) is None
