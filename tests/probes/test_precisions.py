"""Every recipe, on the CPU, with the code that runs on a GPU: it trains, and its products are as exact as its types."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from planner.errors import UsageError  # noqa: E402
from planner.training.policies import load_policies  # noqa: E402
from probes.device.device import Device  # noqa: E402
from probes.precisions import PRECISIONS, RECIPES, choose, recipe_by_id  # noqa: E402
from probes.precisions.interface import ROLES, PrecisionRecipe  # noqa: E402
from probes.precisions.linear.products import make_scaled, quantise, scaled_mm  # noqa: E402
from probes.precisions.low import float8  # noqa: E402
from probes.precisions.low.float8 import why_no_torchao  # noqa: E402
from probes.precisions.training import Training, fused_adamw  # noqa: E402
from tests.probes.build import CPU, H200  # noqa: E402

ERROR = {"fp32": 1e-6, "tf32": 1e-6, "fp16": 1e-3, "bf16": 1e-2, "fp8": 6e-2, "mxfp8": 6e-2}
"""Relative error of a 64-wide product by precision: 2^-11 for FP16, 2^-8 for BF16, 2^-4 for e4m3, with some room.
On a CPU TF32 runs as FP32."""


@pytest.fixture(autouse=True)
def quiet_libraries() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"torch|torchao|transformers")
        yield
    torch.set_float32_matmul_precision("highest")


def emulated(recipe: PrecisionRecipe) -> PrecisionRecipe:
    """FP8 recipes with arithmetic that a CPU has; the code around it is the same."""
    if recipe.id == "mxfp8":
        from probes.precisions.linear import mx_linear

        def convert(module: Any) -> tuple[str, ...]:
            mx_linear.swap(module, emulate=True)
            return ("torchao", "emulated")

        return replace(recipe, convert=convert)
    return recipe


def a_layer_stack() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(64, 128, bias=False), torch.nn.SiLU(), torch.nn.Linear(128, 64, bias=False)
    )


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.id)
def test_a_recipe_trains_a_module(recipe: PrecisionRecipe) -> None:
    recipe = emulated(recipe)
    recipe.activate()
    module = a_layer_stack()
    training = Training(module, recipe, "cpu")
    optimizer = fused_adamw(training.updated)
    x = torch.randn(32, 64).to(getattr(torch, recipe.held))
    target = torch.randn(32, 64)
    losses = []
    for _ in range(30):
        with training.region():
            loss = (module(x).float() - target).pow(2).mean()
        training.backward(loss)
        training.update(optimizer)
        losses.append(float(loss.detach()))

    assert losses[-1] < losses[0] - 1e-4
    assert {parameter.dtype for parameter in module.parameters()} == {getattr(torch, recipe.held)}
    assert training.loss_scale == (65536.0 if recipe.loss_scaling else None)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.id)
def test_a_linear_layer_is_as_exact_as_its_types_allow_and_no_more(recipe: PrecisionRecipe) -> None:
    recipe = emulated(recipe)
    recipe.activate()
    torch.manual_seed(1)
    module = torch.nn.Sequential(torch.nn.Linear(64, 64, bias=False))
    weight, x = module[0].weight.detach().double(), torch.randn(64, 64)
    training = Training(module, recipe, "cpu")
    with torch.no_grad(), training.region():
        y = module(x.to(getattr(torch, recipe.held)))
    exact = x.double() @ weight.t()
    error = float(torch.linalg.norm(y.double() - exact) / torch.linalg.norm(exact))

    assert error < ERROR[recipe.precision]
    assert error > ERROR[recipe.precision] / 100


@pytest.mark.parametrize("recipe", [recipe for recipe in RECIPES if recipe.id != "mxfp8"], ids=lambda recipe: recipe.id)
@pytest.mark.parametrize("role", ROLES)
def test_the_bare_products_of_a_recipe_run_in_all_three_roles(recipe: PrecisionRecipe, role: str) -> None:
    product = recipe.product(recipe, role, 32, 64, 48, CPU, 2)

    for _ in range(3):
        product()


@pytest.mark.parametrize("role", ROLES)
def test_mx_products_run_in_all_three_roles_when_emulated(role: str) -> None:
    pytest.importorskip("torchao")
    from probes.precisions.linear.mx_linear import make_mx

    make_mx(role, 32, 64, 96, CPU, 1, emulate=True)()


@pytest.mark.parametrize("rowwise", [False, True])
def test_our_own_fp8_layer_and_torchaos_give_nearly_the_same(rowwise: bool) -> None:
    pytest.importorskip("torchao")
    from probes.precisions.linear.scaled_linear import swap
    from probes.precisions.low.float8 import convert_linears

    ours, theirs = a_layer_stack().to(torch.bfloat16), a_layer_stack().to(torch.bfloat16)
    swap(ours, rowwise=rowwise)
    convert_linears(theirs, "rowwise" if rowwise else "tensorwise")
    x = torch.randn(32, 64, dtype=torch.bfloat16)
    results = []
    for module in (ours, theirs):
        y = module(x)
        y.float().pow(2).mean().backward()
        results.append((y.detach().float(), module[0].weight.grad.float()))

    (ours_y, ours_grad), (theirs_y, theirs_grad) = results
    assert float((ours_y - theirs_y).norm() / theirs_y.norm()) < 0.05
    assert float((ours_grad - theirs_grad).norm() / theirs_grad.norm()) < 0.15


@pytest.mark.parametrize("recipe_name", ["tensorwise", "rowwise"])
def test_torchaos_fp8_runs_emulated_too(recipe_name: str) -> None:
    pytest.importorskip("torchao")
    from probes.precisions.low.float8 import convert_linears

    module = a_layer_stack().to(torch.bfloat16)

    flags = convert_linears(module, recipe_name, emulate=True)
    module(torch.randn(32, 64, dtype=torch.bfloat16)).sum().backward()

    assert flags[0] == "torchao"
    assert "emulated" in flags


@pytest.fixture
def torchao_is_looked_for_anew() -> Iterator[None]:
    why_no_torchao.cache_clear()
    yield
    why_no_torchao.cache_clear()


@pytest.mark.usefixtures("torchao_is_looked_for_anew")
@pytest.mark.parametrize("missing", [True, False], ids=["not installed", "does not fit this torch"])
def test_without_torchao_fp8_runs_on_scaled_mm(monkeypatch: pytest.MonkeyPatch, missing: bool) -> None:
    """torchao 0.18 imports names that torch 2.10 introduced, and pip installs it beside older versions too."""
    from probes.precisions.linear.scaled_linear import ScaledLinear

    if missing:
        monkeypatch.setattr(float8, "find_spec", lambda name: None)
    else:
        pytest.importorskip("torchao")
        monkeypatch.setitem(sys.modules, "torchao.float8", None)  # an import of it fails
    module = a_layer_stack().to(torch.bfloat16)

    flags = float8.convert_linears(module, "rowwise")

    assert flags == ("scaled_mm", "pow2_scales", "e4m3_gradients")
    assert isinstance(module[0], ScaledLinear)
    assert module(torch.randn(32, 64, dtype=torch.bfloat16)).shape == (32, 64)
    assert str(why_no_torchao()).startswith("it is not installed" if missing else "ModuleNotFoundError: ")


def test_the_output_layer_and_odd_sizes_stay_in_high_precision() -> None:
    from probes.precisions.linear.scaled_linear import ScaledLinear, swap

    module = torch.nn.ModuleDict(
        {"up": torch.nn.Linear(64, 64), "odd": torch.nn.Linear(60, 64), "lm_head": torch.nn.Linear(64, 64)}
    )

    swap(module, rowwise=False)

    assert [type(layer) is ScaledLinear for layer in module.values()] == [True, False, False]


def test_quantised_values_restore_to_within_the_format() -> None:
    x = torch.randn(16, 64)
    for dim in (None, 1):
        values, scale = quantise(x, torch.float8_e4m3fn, dim)

        assert values.dtype == torch.float8_e4m3fn
        assert float((values.float() * scale - x).norm() / x.norm()) < 0.04  # 2^-4 at most, 0.026 typically


def test_a_row_of_zeros_does_not_become_nan() -> None:
    values, scale = quantise(torch.zeros(2, 16), torch.float8_e4m3fn, 1)

    assert torch.isfinite(values.float() * scale).all()


def test_scaled_products_match_their_reference() -> None:
    torch.manual_seed(0)
    product = make_scaled("forward", 16, 32, 64, CPU, 1, rowwise=True, gradient=torch.float8_e4m3fn)

    product()  # shapes and layouts are what `_scaled_mm` demands, or it raises


def test_row_wise_products_agree_with_and_without_fast_accumulation() -> None:
    a, scale_a = quantise(torch.randn(32, 64), torch.float8_e4m3fn, 1)
    b, scale_b = quantise(torch.randn(48, 64), torch.float8_e4m3fn, 1)

    fast, exact = (scaled_mm(a, b.t(), scale_a, scale_b.t(), fast=mode) for mode in (True, False))

    assert exact.dtype == torch.bfloat16
    assert float((fast - exact).float().norm() / fast.float().norm()) < 0.01  # BF16 rounds before scaling


def test_master_weights_take_the_gradients_of_several_micro_batches_in_fp32() -> None:
    module = a_layer_stack()
    training = Training(module, recipe_by_id("bf16-fsdp"), "cpu")
    x = torch.randn(8, 64, dtype=torch.bfloat16)
    training.backward(module(x).float().sum())
    once = training.updated[0].grad.clone()
    training.backward(module(x).float().sum())

    assert training.updated[0].grad.dtype == torch.float32
    assert torch.allclose(training.updated[0].grad, 2 * once, rtol=1e-2)
    assert all(parameter.grad is None for parameter in module.parameters())


def test_rotary_frequencies_stay_in_fp32() -> None:
    from probes.precisions.training import hold

    module = torch.nn.Linear(4, 4)
    module.register_buffer("inv_freq", torch.ones(4))
    module.register_buffer("mean", torch.ones(4))

    hold(module, torch.bfloat16)

    assert module.inv_freq.dtype == torch.float32
    assert module.mean.dtype == torch.bfloat16


def old(capability: tuple[int, int]) -> Device:
    return replace(H200, capability=capability)


@pytest.mark.parametrize(
    ("capability", "supported"),
    [
        ((7, 0), {"fp32", "fp16"}),
        ((8, 0), {"fp32", "tf32", "fp16", "bf16-autocast", "bf16-fsdp", "bf16-pure"}),
        ((9, 0), {recipe.id for recipe in RECIPES} - {"mxfp8"}),
        ((10, 0), {recipe.id for recipe in RECIPES}),
    ],
)
def test_a_gpu_runs_what_its_generation_has(capability: tuple[int, int], supported: set[str]) -> None:
    pytest.importorskip("torchao")

    assert {recipe.id for recipe in RECIPES if recipe.unsupported_on(old(capability)) is None} == supported


def test_what_is_not_supported_has_a_reason_in_words() -> None:
    reason = recipe_by_id("fp8").unsupported_on(old((8, 0)))

    assert reason == (
        "FP8 matrix units came with Ada and Hopper: compute capability 8.9 is needed, this device has 8.0"
    )
    assert "TF32" in str(recipe_by_id("tf32").unsupported_on(CPU))


def test_recipes_are_named_alike_in_the_planner() -> None:
    policies = load_policies()

    for recipe in RECIPES:
        assert recipe.id in policies
        assert policies[recipe.id].precision == recipe.precision


def test_a_precision_names_all_its_recipes_and_an_id_just_one() -> None:
    assert [recipe.id for recipe in choose(["bf16"])] == ["bf16-autocast", "bf16-fsdp", "bf16-pure"]
    assert [recipe.id for recipe in choose(["fp8-rowwise", "FP32"])] == ["fp32", "fp8-rowwise"]
    assert choose([]) == RECIPES


def test_an_unknown_precision_is_a_usage_error_that_lists_the_known() -> None:
    with pytest.raises(UsageError, match="unknown precision `bf17`") as caught:
        choose(["bf17"])

    assert all(name in str(caught.value.hint) for name in PRECISIONS)


def test_a_recipe_of_a_package_that_is_missing_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    assert recipe_by_id("mxfp8").unsupported_on(old((10, 0))) == "needs torchao, which is not installed"
