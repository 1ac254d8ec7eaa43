"""Scaled formats: scales of known blocks, and agreement with torchao's own casts where that is installed."""

from __future__ import annotations

import pytest

from probes.numerics.formats.elements import find_format
from probes.numerics.formats.scales import SCALINGS, blockwise, mx, nvfp4, power_of_two_scale, rowwise, tensorwise

torch = pytest.importorskip("torch")

E4M3, E2M1 = find_format("e4m3"), find_format("e2m1")


def test_tensorwise_brings_the_maximum_to_the_largest_number():
    x = torch.tensor([[1.0, -0.5, 0.003]])

    values = tensorwise(x, E4M3)

    step = 2.0**-3 / 448.0  # 0.003 times 448 is 1.344, whose neighbours are 1.25 and 1.375
    assert values[0].tolist() == pytest.approx([1.0, -0.5, 1.375 / 448.0], abs=1e-7)
    assert abs(values[0, 2] - 0.003) <= step / 2


@pytest.mark.parametrize(
    ("largest", "scale"), [(448.0, 1.0), (449.0, 2.0), (224.0, 0.5), (1.0, 2.0**-8), (7.0, 2.0**-6)]
)
def test_a_power_of_two_scale_is_the_least_that_fits(largest, scale):
    assert float(power_of_two_scale(torch.tensor([largest]), E4M3)) == scale


def test_an_outlier_spoils_its_own_block_alone():
    x = torch.full((1, 64), 1e-3)
    x[0, 0] = 1e4

    per_block, per_tensor = mx(x, E4M3), tensorwise(x, E4M3)

    assert torch.all(per_tensor[0, 1:] == 0.0)
    assert torch.all(per_block[0, 1:32] == 0.0)
    assert per_block[0, 32:].tolist() == pytest.approx([1e-3] * 32, rel=2.0**-4)


def test_nvfp4_restores_blocks_that_are_multiples_of_the_format():
    x = torch.tensor([[0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0] * 2]) * 7.0

    assert torch.allclose(nvfp4(x, E2M1), x, rtol=1e-6)


def test_a_weight_has_one_scale_for_128_by_128_and_an_activation_for_128():
    x = torch.full((256, 128), 1e-5)
    x[0, 0] = 448.0

    weight, activation = blockwise(x, E4M3, True), blockwise(x, E4M3, False)

    assert torch.all(weight[1:128] == 0.0)  # 1e-5 below half of 2^-9 at a scale of 1
    assert torch.all(activation[1:128] > 0.0)
    assert torch.all(weight[128:] > 0.0)


def test_a_weight_in_nvfp4_has_one_scale_for_16_by_16_and_is_the_same_along_both_dimensions():
    x = torch.randn(40, 48, generator=torch.Generator().manual_seed(5)) * torch.logspace(-2, 2, 48)

    weight = nvfp4(x, E2M1, True)

    assert torch.equal(nvfp4(x.t().contiguous(), E2M1, True).t(), weight)
    assert not torch.equal(nvfp4(x.t().contiguous(), E2M1).t(), nvfp4(x, E2M1))
    spoiled = torch.full((32, 16), 1e-2)
    spoiled[0, 0] = 6.0  # the step below 0.5 is 0 to half: 1e-2 vanishes in the whole tile, and in no other
    assert torch.all(nvfp4(spoiled, E2M1, True)[1:16] == 0.0)
    assert torch.all(nvfp4(spoiled, E2M1, True)[16:] > 0.0)
    assert torch.all(nvfp4(spoiled, E2M1)[1:16] > 0.0)


@pytest.mark.parametrize("largest", [1e-14, 1e-18, 1e-25, 1e-35])
def test_mx_scales_reach_down_to_the_least_power_of_two_of_e8m0(largest):
    x = torch.zeros(1, 64)
    x[0, 0], x[0, 33] = largest, 1.0

    values = mx(x, E4M3)

    assert values[0, 0].item() == pytest.approx(largest, rel=2.0**-4)  # three bits of mantissa
    assert (values[0, 33].item(), values[0, 1:33].abs().sum().item()) == (1.0, 0.0)


@pytest.mark.parametrize("name", SCALINGS)
@pytest.mark.parametrize("broken", [float("inf"), float("-inf"), float("nan")])
def test_what_is_not_finite_stays_so_in_every_scaling(name, broken):
    x = torch.ones(4, 256)
    x[1, 3] = broken

    values = SCALINGS[name](x, E4M3, True)

    assert not torch.isfinite(values[1, 3])
    if name == "mx":
        assert torch.all(values[1, 32:] == 1.0)
        assert torch.isnan(values[1, :32]).all() == (broken != broken)


@pytest.mark.parametrize("name", SCALINGS)
@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 40), (1, 129), (130, 260)])
def test_every_scaling_keeps_shape_zeros_and_sign(name, shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    x.view(-1)[0] = 0.0

    values = SCALINGS[name](x, E4M3, True)

    assert values.shape == x.shape
    assert values.flatten()[0] == 0.0
    assert torch.all(values * x >= 0.0)
    assert float((values - x).norm() / x.norm()) < 0.04  # three bits of mantissa
    assert torch.equal(SCALINGS[name](torch.zeros(shape), E4M3, True), torch.zeros(shape))


def test_mxfp8_is_torchaos_mx_tensor_bit_for_bit():
    torchao = pytest.importorskip("torchao.prototype.moe_training.mxfp8_linear")
    x = torch.randn(8, 128, generator=torch.Generator().manual_seed(2)) * torch.logspace(-35, 3, 8)[:, None]
    x[1, 5], x[2, 70], x[3, 100] = float("inf"), float("-inf"), float("nan")
    theirs = torchao.MXTensor.to_mx(
        x, torch.float8_e4m3fn, 32, torchao.ScaleCalculationMode.RCEIL, torchao.KernelPreference.EMULATED
    )

    assert torch.equal(mx(x, E4M3).nan_to_num(-1.0), theirs.dequantize(torch.float32).nan_to_num(-1.0))


def test_rowwise_is_the_probes_own_quantisation():
    from probes.precisions.linear.products import quantise

    x = torch.randn(16, 64, generator=torch.Generator().manual_seed(3)) * torch.logspace(-5, 4, 16)[:, None]
    values, scale = quantise(x, torch.float8_e4m3fn, 1)

    assert torch.equal(rowwise(x, E4M3), values.float() * scale)
