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
from tests.planner.build import layout


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
    one, eight = (images_per_s("resnet50", "fp16", "a100-sxm4-80gb", 256, gpus) for gpus in (1, 8))

    assert 7.0 < eight / one < 8.0


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
