import numpy as np
import pytest

from planner.cluster import make_cluster
from planner.convolution import find_network, network_memory, network_step, resnet, shape_of_network
from planner.gpus import find_gpu
from planner.ladder import resolve_rates
from planner.layout import Layout, Layouts
from planner.optimizers import find_optimizer
from planner.policies import find_policy
from planner.recipe import Recipe


@pytest.mark.parametrize(("depth", "params"), [(50, 25_557_032), (101, 44_549_160), (152, 60_192_808)])
def test_the_parameters_are_those_of_torchvision(depth, params):
    # torchvision documentation: models resnet50, resnet101, resnet152, num_params
    assert resnet(depth).params == params


def test_resnet_50_v1_5_takes_4_09_billion_multiplications_per_image():
    # torchvision documentation: resnet50, GFLOPS 4.09 (multiply-adds)
    assert resnet(50).flop_per_image / 2 == pytest.approx(4.09e9, rel=0.001)
    assert len(resnet(50).convolutions) == 53


@pytest.mark.parametrize("name", ["ResNet-50 v1.5", "resnet50", "ResNet-50 (ImageNet)"])
def test_a_network_is_found_by_its_name(name):
    assert find_network(name) is resnet(50)


def test_an_unknown_network_is_none():
    assert find_network("VGG-16") is None


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
