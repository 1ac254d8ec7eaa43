from dataclasses import fields

import numpy as np
import pytest

from planner.hardware.catalogue import find_gpu
from planner.hardware.cluster import make_cluster
from planner.models.convnet import resnet, shape_of_network
from planner.parallelism.layout import Layouts
from planner.performance.convnet import network_memory, network_step
from planner.performance.step import StepTimes
from planner.rates.ladder import resolve_rates
from planner.training.optimizers import find_optimizer
from planner.training.policies import find_policy
from planner.training.recipe import Recipe
from tests.planner.build import layout, plain_rates


def recipe(policy: str, *, channels_last: bool = True) -> Recipe:
    return Recipe(
        model=shape_of_network(resnet(50)), policy=find_policy(policy), optimizer=find_optimizer("sgd-momentum"),
        method="pretrain", seq_len=1, global_batch=256, stack="eager", channels_last=channels_last,
    )  # fmt: skip


def images_per_s(policy: str, images: int, *, gpus: int = 1, channels_last: bool = True) -> float:
    one = recipe(policy, channels_last=channels_last)
    cluster = make_cluster(find_gpu("v100-sxm2-32gb"))
    at = layouts(images, gpus)
    step = network_step(resnet(50), one, cluster, at, resolve_rates(cluster, one).sample())
    return float(images * gpus / np.ravel(step.total)[0])


def layouts(images: int, gpus: int = 1, accumulated: int = 1) -> Layouts:
    return Layouts.of(layout(dp=gpus, micro_batch=images, grad_accum=accumulated))


def test_half_precision_and_channels_last_each_speed_up_a_v100():
    full, half, plain = (
        images_per_s("fp32", 128), images_per_s("fp16", 128), images_per_s("fp16", 128, channels_last=False)
    )  # fmt: skip

    assert full < plain < half
    assert 2.0 < half / full < 5.0


def test_eight_gpus_are_a_little_less_than_eight_times_one():
    assert 7.0 < images_per_s("fp16", 128, gpus=8) / images_per_s("fp16", 128) < 8.0


def seconds(value: object) -> float:
    return float(np.ravel(value)[0])


FREE = {"operand_bytes_per_s": 1e30, "memory_bytes_per_s": 1e30, "optimizer_bytes_per_s": 1e30}
"""Rates at which what they carry takes no time."""

OUTPUTS, AFTER_RELU, SUMS = 11_113_984, 9_608_704, 5_519_360
"""Elements of one image at 224 pixels in ResNet-50: outputs of all 53 convolutions (11.1 M activations: Radosavovic et
al., arXiv 2003.13678, table 4); of those that a ReLU follows, which are all but the four on the shortcuts, 802 816 +
401 408 + 200 704 + 100 352; and of the results of the 16 blocks, 3, 4, 6 and 3 of these four."""

INPUTS = 150_528 + 3_211_264 + 3_913_728 + 2_558_976 + 827_904
"""Elements that the convolutions of one image read: the picture, and stage by stage the input of each block (once more
in its first, for the shortcut), its narrow input of the 3 x 3 and that of the last (He et al., arXiv 1512.03385, table
1, the stride in the 3 x 3)."""


def plain_step(
    policy: str, images: int, gpus: int = 1, accumulated: int = 1, *, channels_last: bool = True, **rates: float
) -> StepTimes:
    one, where = recipe(policy, channels_last=channels_last), layouts(images, gpus, accumulated)
    machine = make_cluster(find_gpu("v100-sxm2-32gb"))
    return network_step(resnet(50), one, machine, where, plain_rates(**(FREE | rates)))


@pytest.mark.parametrize(("policy", "each"), [("fp32", 4), ("fp16", 2)])
def test_stored_activations_are_convolution_outputs_and_relu_results(policy, each):
    small, large = (
        seconds(network_memory(resnet(50), recipe(policy), layouts(n), plain_rates()).activations) for n in (64, 128)
    )

    assert small == 64 * (OUTPUTS + AFTER_RELU) * each
    assert large == 2 * small


def test_the_states_are_those_of_25_557_032_parameters():
    # torchvision, resnet50: 25 557 032 parameters; FP32 weights, gradients and one momentum
    fp32 = network_memory(resnet(50), recipe("fp32"), layouts(1), plain_rates())
    # autocast: the same, and an FP16 copy of the weights
    fp16 = network_memory(resnet(50), recipe("fp16"), layouts(1), plain_rates())

    states = ("weights", "gradients", "master_weights", "optimizer_states", "fp8_copies")
    assert [seconds(getattr(fp32, name)) / 25_557_032 for name in states] == [4, 4, 0, 4, 0]
    assert [seconds(getattr(fp16, name)) / 25_557_032 for name in states] == [4, 4, 0, 4, 2]


def test_communicators_are_held_only_beside_other_gpus_and_fragments_are_of_the_activations():
    rates = plain_rates(nccl_bytes=5e8, context_bytes=1e9, fragmentation_ratio=0.1)
    alone, two = (network_memory(resnet(50), recipe("fp32"), layouts(2, gpus), rates) for gpus in (1, 2))

    assert (seconds(alone.comm_buffers), seconds(two.comm_buffers)) == (0, 5e8)
    assert seconds(alone.framework) == 1e9
    assert seconds(alone.fragmentation) == pytest.approx(0.1 * 2 * (OUTPUTS + AFTER_RELU) * 4)


def test_a_convolution_runs_forward_and_twice_backward_but_images_need_no_gradient():
    # 8 178 368 512 FLOP forward (4.09 G multiply-adds: torchvision), of which 2 x 2048 x 1000 in the classifier, which
    # is no convolution, and 2 x 112^2 x 64 x 3 x 7^2 in the first
    first, convolutions = 2 * 112**2 * 64 * 147, 8_178_368_512 - 4_096_000
    rates = {"linear_flop_per_s": 1e12, "conv_rate_ratio": 0.7}

    per_image = (3 * convolutions - first) / (1e12 * 0.7)
    assert seconds(plain_step("fp32", 64, **rates).matmul) == pytest.approx(64 * per_image)


def test_a_convolution_reads_its_input_and_its_weights_and_writes_its_output():
    free = {"linear_flop_per_s": 1e30, "operand_bytes_per_s": 1e12}
    one, two = (seconds(plain_step("fp32", images, **free).matmul) for images in (1, 2))

    # per image: outputs as above, and inputs: the picture of 3 x 224^2, and per block the input once more on a shortcut
    stem = 224**2 * 3 + 112**2 * 64
    assert two - one == pytest.approx((3 * (OUTPUTS + INPUTS) - stem) * 4 / 1e12, rel=1e-9)
    # once a step and pass: all parameters but the classifier's 2 049 000; the first convolution's 9 408 + 128 twice
    assert 2 * one - two == pytest.approx((3 * (25_557_032 - 2_049_000) - 9_536) * 4 / 1e12, rel=1e-9)


def test_norm_relu_and_addition_pass_over_the_outputs_that_they_follow():
    passes = {"batch_norm_passes": 6.0, "relu_passes": 1.0, "residual_passes": 3.0}
    times = plain_step("fp16", 32, linear_flop_per_s=1e30, memory_bytes_per_s=1e12, kernel_s=1e-6, **passes)

    passed = 6 * OUTPUTS + 1 * AFTER_RELU + 3 * SUMS
    # and twelve kernels for each of the 53 convolutions
    assert seconds(times.memory_bound) == pytest.approx(32 * passed * 2 / 1e12 + 12 * 53 * 1e-6)


@pytest.mark.parametrize(("policy", "each"), [("fp16", 2), ("fp32", 0)])
def test_channels_first_moves_inputs_and_outputs_of_16_bits_to_the_layout_of_their_kernels(policy, each):
    passes = {"layout_passes": 2.0, "linear_flop_per_s": 1e30, "memory_bytes_per_s": 1e12}
    first, last = (seconds(plain_step(policy, 32, channels_last=last, **passes).memory_bound) for last in (False, True))

    # 32-bit kernels read channels first: nothing to move
    assert first - last == pytest.approx(32 * 2 * (OUTPUTS + INPUTS) * each / 1e12)


def test_small_batches_wait_for_the_host_to_launch_53_times_12_kernels():
    times = plain_step("fp32", 1, accumulated=3, linear_flop_per_s=1e15, launch_s=1e-5)

    assert seconds(times.launch) == pytest.approx(3 * 12 * 53 * 1e-5 - seconds(times.compute))
    assert seconds(plain_step("fp32", 512, linear_flop_per_s=1e12, launch_s=1e-5).launch) == 0


def test_images_that_take_the_gpu_as_long_as_the_host_wait_an_eighth_of_it():
    work = seconds(plain_step("fp32", 64, linear_flop_per_s=1e12).compute)
    even = plain_step("fp32", 64, linear_flop_per_s=1e12, launch_s=work / (12 * 53))

    assert seconds(even.launch) == pytest.approx(0.122462 * work, rel=1e-5)  # 2^(1/6) - 1


def test_gradients_are_reduced_once_a_step_behind_two_thirds_of_the_last_backward_pass():
    links = {"nvlink_bytes_per_s": 1e9, "linear_flop_per_s": 1e15}
    bare, hidden = (plain_step("fp32", 32, 8, 4, overlap_dp_ratio=share, **links) for share in (0.0, 0.9))

    # ring of 8: 2 x 7/8 of 4 bytes per parameter on the bus
    reduce_s = 2 * 7 / 8 * 25_557_032 * 4 / 1e9
    assert seconds(bare.dp_comm) == pytest.approx(reduce_s)
    assert seconds(hidden.dp_comm) == pytest.approx(reduce_s - 0.9 * seconds(hidden.compute) / 4 * 2 / 3)
    # the last of 20 buckets has nothing left to hide behind
    assert seconds(plain_step("fp32", 512, 8, overlap_dp_ratio=1.0, nvlink_bytes_per_s=1e12).dp_comm) == pytest.approx(
        reduce_s / 1000 / 20
    )
    assert seconds(plain_step("fp32", 32, 1, **links).dp_comm) == 0


@pytest.mark.parametrize(
    "name",
    ["model_error_ratio", "precision_error_ratio", "stack_error_ratio", "gpu_error_ratio", "shape_error_ratio"],
)
def test_every_item_of_a_step_grows_with_what_the_equations_leave_out(name):
    busy = {"linear_flop_per_s": 1e15, "launch_s": 1e-2, "jitter_ratio": 0.02, "optimizer_bytes_per_s": 1e12}
    plain, off = (plain_step("fp32", 8, 8, 2, **busy, **{name: error}) for error in (1.0, 1.5))

    items = {f.name: seconds(getattr(off, f.name)) / (seconds(getattr(plain, f.name)) or 1) for f in fields(off)}
    assert {name for name, ratio in items.items() if ratio} == {
        "matmul", "memory_bound", "launch", "dp_comm", "optimizer", "jitter"
    }  # fmt: skip
    assert all(ratio == pytest.approx(1.5) for ratio in items.values() if ratio)
