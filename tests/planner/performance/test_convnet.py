import numpy as np
import pytest

from planner.hardware.catalogue import find_gpu
from planner.hardware.cluster import make_cluster
from planner.models.convnet import resnet, shape_of_network
from planner.parallelism.layout import Layout, Layouts
from planner.performance.convnet import network_memory, network_step
from planner.rates.ladder import resolve_rates
from planner.training.optimizers import find_optimizer
from planner.training.policies import find_policy
from planner.training.recipe import Recipe


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


def layouts(images: int, gpus: int = 1) -> Layouts:
    one = Layout(tp=1, pp=1, vp=1, cp=1, ep=1, dp=gpus, zero=0, micro_batch=images, grad_accum=1, act_ckpt="none")
    return Layouts.of(one)


def test_half_precision_and_channels_last_each_speed_up_a_v100():
    full, half, plain = (
        images_per_s("fp32", 128), images_per_s("fp16", 128), images_per_s("fp16", 128, channels_last=False)
    )  # fmt: skip

    assert full < plain < half
    assert 2.0 < half / full < 5.0


def test_eight_gpus_are_a_little_less_than_eight_times_one():
    assert 7.0 < images_per_s("fp16", 128, gpus=8) / images_per_s("fp16", 128) < 8.0


def test_stored_activations_are_convolution_outputs_and_relu_results():
    one = recipe("fp16")
    cluster = make_cluster(find_gpu("v100-sxm2-32gb"))
    rates = resolve_rates(cluster, one).sample()
    small, large = (network_memory(resnet(50), one, layouts(n), rates).activations for n in (64, 128))

    assert large == pytest.approx(2 * small)
    # 11.1M outputs of convolutions per image, nearly all kept a second time after the ReLU, 2 bytes each
    assert float(small[0]) / 64 == pytest.approx(2 * 2 * 11.1e6, rel=0.1)
