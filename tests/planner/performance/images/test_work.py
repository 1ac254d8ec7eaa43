import gc
from dataclasses import replace

import numpy as np
import pytest

from planner.hardware.catalogue import find_gpu, load_gpus
from planner.hardware.cluster import make_cluster
from planner.models.image_network import Convolution, ImageNetwork, Product
from planner.models.images.catalogue import load_image_models, network_of
from planner.performance.images.work import ImageWork, image_work
from planner.rates.ladder import resolve_rates
from planner.training.optimizers import find_optimizer
from planner.training.policies import find_policy
from planner.training.recipe import Recipe
from tests.planner.build import ROUNDING, plain_rates

RESNET = network_of(load_image_models()["resnet50"])
VIT = network_of(load_image_models()["vit_base_patch16_224"])
FREE = {
    "operand_bytes_per_s": 1e30, "memory_bytes_per_s": 1e30, "image_conv_width": 0.0, "image_linear_width": 0.0,
    "image_misaligned_ratio": 1.0, "image_spatial_ratio": 1.0, "image_layout_bytes_per_s": 1e30,
}  # fmt: skip
"""Rates at which only arithmetic takes time, and all widths are alike."""


def recipe(policy: str = "fp16", **changes: object) -> Recipe:
    values: dict[str, object] = {
        "model": load_image_models()["resnet50"], "policy": find_policy(policy), "method": "pretrain", "seq_len": 1,
        "optimizer": find_optimizer("sgd-momentum"), "global_batch": 64, "stack": "eager",
    }  # fmt: skip
    return Recipe(**(values | changes))  # type: ignore[arg-type]


def work(network: ImageNetwork, trained: Recipe, images: float = 1.0, **rates: float) -> ImageWork:
    return image_work(network, images, trained, plain_rates(**rates))


def alone(convolution: Convolution) -> ImageNetwork:
    quiet = replace(RESNET.half, **dict.fromkeys(("batch_norm", "pointwise", "copy", "reduce", "pool"), 0.0))
    return replace(
        RESNET,
        convolutions=(convolution,),
        products=(),
        half=replace(quiet, weights=0.0),
        full=replace(quiet, weights=0.0),
    )


def seconds(value: object) -> float:
    return float(np.ravel(np.asarray(value))[0])


WIDE = Convolution(inputs=64, outputs=64, groups=1, taps=9, pixels=100.0, input_pixels=100.0, count=1)
FLOP = 2 * 100 * 64 * 64 * 9


def test_a_convolution_has_three_products_of_its_arithmetic_and_the_first_only_two():
    assert seconds(work(alone(WIDE), recipe(), **FREE).products) == pytest.approx(3 * FLOP)
    first = replace(WIDE, reads_image=True)
    assert seconds(work(alone(first), recipe(), **FREE).products) == pytest.approx(2 * FLOP)


def test_a_network_that_was_planned_is_not_kept_alive():
    for layers in (RESNET.convolutions, (WIDE,)):
        passing = replace(RESNET, name="passing", convolutions=layers)
        work(passing, recipe(), 64)
    del passing

    assert not [o for o in gc.get_objects() if type(o) is ImageNetwork and o.name == "passing"]


def test_layers_are_told_apart_by_what_they_are():
    wide, wider = alone(WIDE), alone(replace(WIDE, outputs=128))

    assert seconds(work(wide, recipe(), 64).products) < seconds(work(wider, recipe(), 64).products)
    assert seconds(work(wide, recipe(), 64).products) == seconds(work(alone(replace(WIDE)), recipe(), 64).products)


def test_narrow_channels_odd_channels_and_larger_kernels_are_slower():
    usual = seconds(work(alone(WIDE), recipe(), **FREE).products)
    narrow = seconds(work(alone(WIDE), recipe(), **(FREE | {"image_conv_width": 64.0})).products)
    spatial = seconds(work(alone(WIDE), recipe(), **(FREE | {"image_spatial_ratio": 0.5})).products)
    odd = alone(replace(WIDE, inputs=63))
    misaligned = FREE | {"image_misaligned_ratio": 0.25}

    assert narrow == pytest.approx(4 * usual)  # half the rate in each of the two channels
    assert spatial == pytest.approx(2 * usual)
    assert seconds(work(odd, recipe(), **misaligned).products) == pytest.approx(4 * usual * 63 / 64)
    assert seconds(work(odd, recipe("fp32"), **misaligned).products) == pytest.approx(usual * 63 / 64)


def test_where_operands_are_slow_they_set_the_time():
    elements = 100 * 64 + 100 * 64
    slow = FREE | {"linear_flop_per_s": 1e30, "operand_bytes_per_s": 1.0}

    assert seconds(work(alone(WIDE), recipe(), **slow).products) == pytest.approx(3 * 2 * elements)
    assert seconds(work(alone(WIDE), recipe("fp32"), **slow).products) == pytest.approx(3 * 4 * elements)


def test_channels_first_adds_changes_of_layout_on_tensor_cores():
    rates = FREE | {"memory_bytes_per_s": 1.0, "linear_flop_per_s": 1e30, "image_layout_passes": 6.0}
    elements = 2 * 100 * 64

    for policy, element_bytes in (("fp16", 2), ("tf32", 4), ("fp32", 0)):
        first, last = (recipe(policy, channels_last=last) for last in (False, True))
        assert seconds(work(alone(WIDE), first, **rates).memory) == pytest.approx(6 * element_bytes * elements)
        assert seconds(work(alone(WIDE), last, **rates).memory) == 0.0


def test_changes_of_layout_take_the_rate_of_the_multiprocessors_where_memory_is_faster():
    slow = FREE | {"linear_flop_per_s": 1e30, "image_layout_passes": 6.0, "image_layout_bytes_per_s": 0.5}
    first = recipe(channels_last=False)

    assert seconds(work(alone(WIDE), first, **slow).memory) == pytest.approx(2 * 6 * 2 * 2 * 100 * 64)
    assert seconds(work(alone(WIDE), recipe(), **slow).memory) == 0.0


def test_channels_first_gain_less_from_more_bandwidth_for_the_same_multiprocessors():
    def gain(channels_last: bool) -> float:
        trained = recipe(channels_last=channels_last)
        rates = [resolve_rates(make_cluster(find_gpu(id_)), trained).sample() for id_ in ("h100-sxm5", "h200-sxm")]
        slower, faster = (seconds(image_work(RESNET, 256.0, trained, each).total) for each in rates)
        return slower / faster

    assert 1.0 < gain(channels_last=False) < 0.9 * gain(channels_last=True)


def test_a_depthwise_convolution_is_passes_over_its_operands_and_each_tap_of_the_kernel():
    depthwise = replace(WIDE, inputs=1, groups=64)
    rates = FREE | {"memory_bytes_per_s": 1.0, "image_depthwise_passes": 4.0, "image_depthwise_tap_passes": 0.5}

    assert seconds(work(alone(depthwise), recipe(), **rates).memory) == pytest.approx((4 + 9 * 0.5) * 2 * 12800)
    assert seconds(work(alone(depthwise), recipe(), **rates).products) == 0.0


def test_more_groups_run_faster_up_to_those_of_resnext():
    def grouped(groups: int) -> float:
        rates = FREE | {"image_grouped_width": 0.0, "image_groups_power": 1.0}
        layer = replace(WIDE, inputs=8, outputs=8 * groups, groups=groups)
        return seconds(work(alone(layer), recipe(), **rates).products) / layer.flop

    assert grouped(8) == pytest.approx(4 * grouped(32))
    assert grouped(64) == pytest.approx(grouped(32))


@pytest.mark.parametrize("narrow", ["fp8", "mxfp8", "nvfp4"])
def test_linear_layers_take_the_rate_of_the_policy_and_convolutions_never_a_narrow_one(narrow):
    linear = replace(alone(WIDE), convolutions=(), products=(Product(m=10.0, n=64, k=32, count=1),))
    fast = FREE | {"linear_flop_per_s": 2.0, "other_flop_per_s": 1.0}

    assert seconds(work(linear, recipe(narrow), **fast).products) == pytest.approx(3 * 2 * 10 * 64 * 32 / 2)
    assert seconds(work(alone(WIDE), recipe(narrow), **fast).products) == pytest.approx(3 * FLOP)
    assert seconds(work(alone(WIDE), recipe("fp16"), **fast).products) == pytest.approx(3 * FLOP / 2)


def test_fused_attention_stores_no_scores():
    fused, naive = (
        work(VIT, recipe(attention=attention), image_score_passes=10.0, memory_bytes_per_s=1.0)
        for attention in ("flash", "naive")
    )

    assert seconds(naive.memory) - seconds(fused.memory) == pytest.approx(12 * 12 * 197**2 * 2 * 10.0)
    assert seconds(fused.attention) == pytest.approx(12 * 4 * 12 * 197**2 * 64 * 3.5)


def test_twice_the_images_take_twice_the_time_but_for_the_weights():
    cluster = make_cluster(find_gpu("a100-sxm4-80gb"))
    rates = resolve_rates(cluster, recipe()).sample()
    single, double = (image_work(RESNET, images, recipe(), rates) for images in (256.0, 512.0))

    assert 1.9 < seconds(double.total) / seconds(single.total) < 2.0
    assert single.kernels == double.kernels


def test_winograd_saves_products_of_3x3_kernels_of_stride_1_in_fp32_alone():
    saved = FREE | {"image_winograd_ratio": 2.0, "image_fp32_flop_per_s": 1e-30}
    strided, pointwise = replace(WIDE, input_pixels=400.0), replace(WIDE, taps=1)

    assert seconds(work(alone(WIDE), recipe("fp32"), **saved).products) == pytest.approx(3 * FLOP / 2)
    assert seconds(work(alone(strided), recipe("fp32"), **saved).products) == pytest.approx(3 * FLOP)
    assert seconds(work(alone(pointwise), recipe("fp32"), **saved).products) == pytest.approx(3 * FLOP / 9)
    for policy in ("fp16", "tf32"):
        assert seconds(work(alone(WIDE), recipe(policy), **saved).products) == pytest.approx(3 * FLOP)


def test_where_tf32_is_allowed_a_convolution_still_runs_in_fp32_if_that_is_faster():
    slow = FREE | {"image_conv_ratio": 0.5, "image_winograd_ratio": 2.0, "image_fp32_flop_per_s": 1.0}
    pointwise = alone(replace(WIDE, taps=1))

    assert seconds(work(alone(WIDE), recipe("tf32"), **slow).products) == pytest.approx(3 * FLOP / 2)
    assert seconds(work(pointwise, recipe("tf32"), **slow).products) == pytest.approx(3 * FLOP / 9)
    fast = slow | {"image_conv_ratio": 8.0}
    assert seconds(work(alone(WIDE), recipe("tf32"), **fast).products) == pytest.approx(3 * FLOP / 8)


@pytest.mark.parametrize("gpu", [gpu.id for gpu in load_gpus().values() if "tf32" in gpu.peak_flop_per_s])
def test_on_every_gpu_convolutions_in_tf32_are_as_fast_as_in_fp32_and_wide_1x1_ones_below_the_peak(gpu):
    taken = {}
    for policy in ("fp32", "tf32"):
        rates = resolve_rates(make_cluster(find_gpu(gpu)), recipe(policy)).sample()
        taken[policy] = seconds(image_work(replace(RESNET, products=()), 64.0, recipe(policy), rates).products)
        one_by_one = np.asarray(rates.linear_flop_per_s) * rates.image_conv_ratio
        assert one_by_one <= find_gpu(gpu).reachable_flop_per_s[policy]
        assert rates.image_fp32_flop_per_s <= find_gpu(gpu).reachable_flop_per_s["fp32"]

    assert taken["tf32"] <= taken["fp32"] * ROUNDING


def test_casts_of_linear_layers_are_those_of_transformers():
    # 197 rows of each image, 768 to 3072: both operands and the result of a product, once each
    layer = Product(m=197.0, n=3072, k=768, count=12)
    training, only = recipe("fp8"), {"memory_bytes_per_s": 2.0, "cast_fusion_ratio": 0.5, "linear_flop_per_s": 1e30}
    network = replace(alone(WIDE), convolutions=(), products=(layer,))
    rows, each = 64 * 197.0, training.policy.cast_bytes_per_element

    expected = 12 * (rows * 768 + rows * 3072 + 3072 * 768) * each * 0.5 / 2.0
    assert seconds(work(network, training, 64.0, **(FREE | only)).products) == pytest.approx(expected)
