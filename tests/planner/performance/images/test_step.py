from dataclasses import fields

import numpy as np
import pytest

from planner.hardware.catalogue import find_gpu
from planner.hardware.cluster import make_cluster
from planner.models.images.catalogue import image_model_named, network_of
from planner.parallelism.layout import Layouts
from planner.performance.images.step import image_memory, image_step
from planner.performance.step import StepTimes
from planner.rates.ladder import resolve_rates
from planner.rates.terms import Draws
from planner.training.optimizers import find_optimizer
from planner.training.policies import find_policy
from planner.training.recipe import Recipe
from planner.units import GIB
from tests.planner.build import layout, plain_rates


def recipe(name: str, policy: str = "fp16", *, channels_last: bool = True) -> Recipe:
    shape = image_model_named(name)
    assert shape is not None
    return Recipe(
        model=shape, policy=find_policy(policy), optimizer=find_optimizer("sgd-momentum"), method="pretrain", seq_len=1,
        global_batch=256, stack="eager", channels_last=channels_last,
    )  # fmt: skip


def step(trained: Recipe, gpu: str, images: int, gpus: int = 1, accumulated: int = 1) -> StepTimes:
    cluster = make_cluster(find_gpu(gpu))
    at = Layouts.of(layout(dp=gpus, micro_batch=images, grad_accum=accumulated))
    rates = resolve_rates(cluster, trained).sample()
    return image_step(network_of(trained.model), trained, cluster, at, rates)


def images_per_s(name: str, policy: str, gpu: str, images: int, gpus: int = 1, *, channels_last: bool = True) -> float:
    trained = recipe(name, policy, channels_last=channels_last)
    return images * gpus / float(np.ravel(step(trained, gpu, images, gpus).total)[0])


@pytest.mark.parametrize(("gpu", "policy", "images", "published"), [
    ("v100-sxm2-16gb", "fp16", 256, 833),  # lambda-0019 to 0070 of published_runs.csv: channels first
    ("v100-sxm2-16gb", "fp32", 128, 369),
    ("a100-sxm4-80gb", "fp16", 1280, 1582),
    ("a100-sxm4-80gb", "tf32", 640, 1066),
])  # fmt: skip
def test_resnet_50_is_within_30_percent_of_published_runs(gpu, policy, images, published):
    assert images_per_s("resnet50", policy, gpu, images, channels_last=False) == pytest.approx(published, rel=0.30)


def test_half_precision_is_worth_on_a_v100_what_published_pairs_say():
    half, full = (images_per_s("resnet50", policy, "v100-sxm2-16gb", batch, channels_last=False)
                  for policy, batch in (("fp16", 256), ("fp32", 128)))  # fmt: skip

    assert half / full == pytest.approx(833 / 369, rel=0.10)  # pair lambda010


def test_eight_gpus_are_a_little_less_than_eight_times_one():
    on_one, on_eight = (images_per_s("resnet50", "fp16", "a100-sxm4-80gb", 256, gpus) for gpus in (1, 8))

    assert 7.0 < on_eight / on_one < 8.0


def test_accumulation_repeats_the_work_but_not_the_update():
    trained = recipe("resnet50")
    once, twice = (step(trained, "a100-sxm4-80gb", 128, accumulated=times) for times in (1, 2))

    assert float(np.ravel(twice.matmul / once.matmul)[0]) == pytest.approx(2.0)
    assert float(np.ravel(twice.optimizer / once.optimizer)[0]) == pytest.approx(1.0)


def test_items_are_finite_and_none_is_negative_under_draws():
    trained, cluster = recipe("vit-b-16"), make_cluster(find_gpu("h100-sxm5-80gb"))
    rates = resolve_rates(cluster, trained).sample(Draws(count=51, seed=0))
    drawn = image_step(network_of(trained.model), trained, cluster, Layouts.of(layout(dp=16, micro_batch=64)), rates)

    for field in fields(StepTimes):
        value = np.asarray(getattr(drawn, field.name))
        assert np.all(np.isfinite(value)), field.name
        assert np.all(value >= 0), field.name


def test_memory_of_resnet_50_is_what_a_run_reported():
    trained = recipe("resnet50", channels_last=False)
    rates = resolve_rates(make_cluster(find_gpu("a100-sxm4-40gb")), trained).sample()
    peak = image_memory(network_of(trained.model), trained, Layouts.of(layout(dp=8, micro_batch=512)), rates)

    assert float(np.ravel(peak.total)[0]) / GIB == pytest.approx(28.6, rel=0.12)  # flagperf-0125


def test_memory_grows_with_the_images_and_32_bits_keep_twice_as_much():
    half, full = recipe("resnet50"), recipe("resnet50", "fp32")
    rates = resolve_rates(make_cluster(find_gpu("a100-sxm4-80gb")), half).sample()
    at = Layouts.of(layout(micro_batch=64), layout(micro_batch=128))
    narrow, wide = (image_memory(network_of(half.model), trained, at, rates) for trained in (half, full))

    assert float(narrow.activations[1] / narrow.activations[0]) == pytest.approx(2.0)  # type: ignore[index]
    assert float(wide.activations[0] / narrow.activations[0]) == pytest.approx(1.96, rel=0.02)  # type: ignore[index]


def seconds(value: object) -> float:
    return float(np.ravel(value)[0])


FREE = {"operand_bytes_per_s": 1e30, "memory_bytes_per_s": 1e30, "optimizer_bytes_per_s": 1e30}
"""Rates at which what they carry takes no time."""


def plain_step(images: int, gpus: int = 1, accumulated: int = 1, policy: str = "fp32", **rates: float) -> StepTimes:
    trained, where = recipe("resnet50", policy), Layouts.of(layout(dp=gpus, micro_batch=images, grad_accum=accumulated))
    cluster = make_cluster(find_gpu("v100-sxm2-32gb"))
    return image_step(network_of(trained.model), trained, cluster, where, plain_rates(**(FREE | rates)))


def test_gradients_are_reduced_once_a_step_behind_two_thirds_of_the_last_backward_pass():
    links = {"nvlink_bytes_per_s": 1e9, "linear_flop_per_s": 1e15}
    bare, hidden = (plain_step(32, 8, 4, overlap_dp_ratio=share, **links) for share in (0.0, 0.9))

    # ring of 8: 2 x 7/8 of 4 bytes for each of torchvision's 25 557 032 parameters on the bus
    reduce_s = 2 * 7 / 8 * 25_557_032 * 4 / 1e9
    assert seconds(bare.dp_comm) == pytest.approx(reduce_s)
    assert seconds(hidden.dp_comm) == pytest.approx(reduce_s - 0.9 * seconds(hidden.compute) / 4 * 2 / 3)
    # the last of 20 buckets has nothing left to hide behind
    late = plain_step(512, 8, overlap_dp_ratio=1.0, nvlink_bytes_per_s=1e12, linear_flop_per_s=1e10)
    assert seconds(late.dp_comm) == pytest.approx(reduce_s / 1000 / 20)
    assert seconds(plain_step(32, **links).dp_comm) == 0


def test_the_weights_are_updated_once_however_many_micro_batches_there_are():
    # so little work that the host decides: each pass takes its kernels, and the optimizer's come once
    steps = [plain_step(1, accumulated=times, linear_flop_per_s=1e18, launch_s=1e-4) for times in (1, 2, 4)]
    one_s, two_s, four_s = (seconds(step.launch) + seconds(step.compute) for step in steps)
    each_s = (four_s - two_s) / 2

    assert two_s - one_s == pytest.approx(each_s, rel=1e-3)
    tensors = network_of(recipe("resnet50", "fp32").model).tensors
    assert one_s - each_s == pytest.approx(4 * tensors * 1e-4, rel=1e-3)


def test_small_batches_wait_for_the_host_to_launch_their_kernels():
    trained = recipe("resnet50", "fp32")
    kernels = network_of(trained.model).full.kernels + 4 * network_of(trained.model).tensors
    times = plain_step(1, accumulated=3, linear_flop_per_s=1e18, launch_s=1e-4)

    passes = network_of(trained.model).full.kernels  # the optimizer's come once
    assert seconds(times.launch) == pytest.approx((2 * passes + kernels) * 1e-4 - seconds(times.compute), rel=1e-3)
    assert seconds(plain_step(512, linear_flop_per_s=1e12, launch_s=1e-6).launch) < 1e-6


def test_the_states_are_those_of_25_557_032_parameters():
    states = ("weights", "gradients", "master_weights", "optimizer_states", "fp8_copies")

    def bytes_each(policy: str) -> list[float]:
        trained = recipe("resnet50", policy)
        peak = image_memory(network_of(trained.model), trained, Layouts.of(layout()), plain_rates())
        return [seconds(getattr(peak, name)) / 25_557_032 for name in states]

    assert bytes_each("fp32") == [4, 4, 0, 4, 0]  # weights, gradients and one momentum
    assert bytes_each("fp16") == [4, 4, 0, 4, 2]  # autocast: the same, and an FP16 copy of the weights


@pytest.mark.parametrize(
    "name",
    ["model_error_ratio", "precision_error_ratio", "stack_error_ratio", "gpu_error_ratio", "shape_error_ratio"],
)
def test_every_item_of_a_step_grows_with_what_the_equations_leave_out(name):
    busy = {"linear_flop_per_s": 1e15, "launch_s": 1e-2, "jitter_ratio": 0.02, "optimizer_bytes_per_s": 1e12}
    plain, off = (plain_step(8, 8, 2, **busy, **{name: error}) for error in (1.0, 1.5))

    items = {f.name: seconds(getattr(off, f.name)) / (seconds(getattr(plain, f.name)) or 1) for f in fields(off)}
    busy_items = {"matmul", "memory_bound", "launch", "dp_comm", "optimizer", "jitter"}
    assert {item for item, ratio in items.items() if ratio} == busy_items
    assert all(ratio == pytest.approx(1.5) for ratio in items.values() if ratio)
