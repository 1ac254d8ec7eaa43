"""Which precisions a device really runs: shown by the error of a product, not by the absence of an exception."""

from __future__ import annotations

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from probes.device.device import open_device  # noqa: E402
from probes.precisions import recipe_by_id  # noqa: E402
from probes.precisions.support import check_support, product_error  # noqa: E402
from tests.probes.build import CPU  # noqa: E402


@pytest.mark.parametrize(
    ("recipe", "low", "high"),
    [("fp32", 1e-8, 1e-6), ("fp16", 1e-4, 1e-3), ("bf16-autocast", 1e-3, 1e-2), ("bf16-pure", 1e-3, 1e-2)],
)
def test_the_error_of_a_product_shows_the_arithmetic(recipe: str, low: float, high: float) -> None:
    support = check_support(recipe_by_id(recipe), CPU)

    assert support.reason is None
    assert support.error_ratio is not None
    assert low < support.error_ratio < high


@pytest.mark.parametrize("recipe", ["fp8", "fp8-rowwise"])
def test_fp8_has_the_error_of_fp8_on_the_path_that_a_gpu_takes(recipe: str) -> None:
    # e4m3 has 3 bits of mantissa: rounding errs by 2.6 % for normal values, products of two by 3.7 %
    assert 0.02 < product_error(recipe_by_id(recipe), CPU) < 0.06


def test_tf32_that_is_accepted_but_computes_in_fp32_is_called_inactive() -> None:
    pretending = replace(recipe_by_id("tf32"), why_not_cpu=None)  # as if the device had said yes

    support = check_support(pretending, CPU)

    assert support.reason == "TF32 is accepted but not active: products have FP32's error"
    torch.set_float32_matmul_precision("highest")


def test_fp32_with_the_error_of_a_lower_type_is_called_out() -> None:
    secretly = replace(recipe_by_id("fp32"), autocast="bfloat16")

    assert "products have TF32's error although it is off" in str(check_support(secretly, CPU).reason)


def test_a_recipe_whose_product_fails_is_unsupported_with_the_reason() -> None:
    def convert(module):
        raise RuntimeError("no kernel for this device")

    support = check_support(replace(recipe_by_id("bf16-pure"), convert=convert), CPU)

    assert support.reason == "a small matrix product failed: RuntimeError: no kernel for this device"


class OnlyForward(torch.autograd.Function):
    """A product whose backward pass lacks a kernel, as MXFP8's does where torchao's extension was not loaded."""

    @staticmethod
    def forward(ctx, x, weight):
        return x @ weight.t()

    @staticmethod
    def backward(ctx, gradient):
        raise NotImplementedError("no kernel that casts along this dimension")


class OnlyForwardLinear(torch.nn.Linear):
    def forward(self, x):
        return OnlyForward.apply(x, self.weight)


def test_a_recipe_that_runs_only_forward_is_unsupported() -> None:
    def convert(module):
        module[0].__class__ = OnlyForwardLinear
        return ()

    support = check_support(replace(recipe_by_id("bf16-pure"), convert=convert), CPU)

    assert "no kernel that casts along this dimension" in str(support.reason)


def test_the_cpu_is_opened_with_its_name_and_memory_and_no_uuid() -> None:
    device = open_device("cpu")

    assert device.name
    assert device.memory_bytes > 2**28
    assert device.hashed is None


def test_the_hash_of_a_uuid_is_short_salted_and_stable() -> None:
    device = replace(CPU, kind="cuda", uuid="GPU-11111111-2222-3333-4444-555555555555")

    assert device.hashed == replace(device, index=3).hashed
    assert len(str(device.hashed)) == 12
    assert str(device.hashed) not in str(device.uuid)
