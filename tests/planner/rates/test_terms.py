"""Rates: every GPU and policy resolves, evidence stays with the number, draws are common and reproducible."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.evidence import EvidenceKind
from planner.hardware.catalogue import load_gpus
from planner.hardware.interconnect import load_interconnect
from planner.models.convnet import resnet, shape_of_network
from planner.rates.ladder import clock_ratio, resolve_rates
from planner.rates.parameters import shipped_parameters
from planner.rates.terms import Draws
from planner.training.policies import default_policy, load_policies, why_unsupported
from planner.training.recipe import STACKS
from tests.planner.build import cluster, recipe

H100 = cluster()


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("gpu", load_gpus().values(), ids=lambda gpu: gpu.id)
def test_every_gpu_of_the_catalogue_has_all_rates_for_every_policy_it_supports(gpu, stack):
    supported = [p for p in load_policies().values() if why_unsupported(p, gpu) is None]

    assert supported
    for policy in supported:
        one = replace(recipe(stack=stack), policy=policy)
        terms = resolve_rates(cluster(gpu.id), one)
        mid = terms.sample()
        values = {name: float(value) for name, value in vars(mid).items()}
        assert all(np.isfinite(value) and value >= 0 for value in values.values())
        assert all(values[name] > 0 for name in values if name.endswith(("_per_s", "_w")))
        assert values["linear_flop_per_s"] <= gpu.peak_flop_per_s[policy.linear_compute]
        assert values["memory_bytes_per_s"] <= gpu.memory_bytes_per_s
        assert all(term.evidence.source for term in terms.terms.values())


@pytest.mark.parametrize("gpu", ["a100-sxm4-80gb", "h100-sxm5-80gb", "h200-sxm-141gb", "b200-sxm-180gb"])
def test_matrix_products_run_faster_the_fewer_bits_they_have(gpu):
    machine = cluster(gpu)
    known = [default_policy(name) for name in ("fp32", "tf32", "bf16", "fp8")]
    names = [policy.id for policy in known if why_unsupported(policy, machine.gpu) is None]
    rates = [float(resolve_rates(machine, recipe(policy=name)).sample().linear_flop_per_s) for name in names]

    assert rates == sorted(rates)


def test_a_large_bf16_product_reaches_what_was_measured():
    # gpus.csv: 794.5 TFLOP/s on H100 and 271.2 on A100 (MAMF), the best shapes
    for gpu, measured in (("h100-sxm5-80gb", 794.5e12), ("a100-sxm4-80gb", 271.2e12)):
        rate = float(resolve_rates(cluster(gpu), recipe()).sample().linear_flop_per_s)

        assert 0.8 * measured < rate < 1.12 * measured


def test_strict_fp32_stays_off_the_tensor_cores():
    strict, tf32 = (resolve_rates(H100, recipe(policy=name)).sample() for name in ("fp32", "tf32"))

    assert float(strict.linear_flop_per_s) < 67e12  # CUDA cores of an H100
    assert float(tf32.linear_flop_per_s) > 200e12


def test_draws_repeat_with_their_seed_and_differ_with_another():
    terms = resolve_rates(H100, recipe())
    one, again, other = (terms.sample(Draws(count=101, seed=seed)) for seed in (7, 7, 8))

    assert np.array_equal(one.linear_flop_per_s, again.linear_flop_per_s)
    assert not np.array_equal(one.linear_flop_per_s, other.linear_flop_per_s)


def test_the_same_input_is_drawn_alike_in_every_precision():
    draws = Draws(count=101, seed=0)
    bf16, fp8 = (resolve_rates(H100, recipe(policy=name)).sample(draws) for name in ("bf16", "fp8"))

    assert np.array_equal(bf16.memory_bytes_per_s, fp8.memory_bytes_per_s)
    # two rates of one chip err together: their order is the same in every draw
    assert np.corrcoef(np.log(bf16.linear_flop_per_s), np.log(fp8.linear_flop_per_s))[0, 1] > 0.95


def test_different_inputs_are_drawn_independently():
    drawn = resolve_rates(H100, recipe()).sample(Draws(count=4001, seed=0))

    assert abs(np.corrcoef(drawn.memory_bytes_per_s, drawn.nic_bytes_per_s)[0, 1]) < 0.06


def test_the_percentiles_of_the_draws_are_the_range_of_the_parameter():
    terms = resolve_rates(H100, recipe())
    term = terms.terms["hop_latency_s"]
    drawn = np.asarray(terms.sample(Draws(count=20_001, seed=0)).hop_latency_s)

    low, mid, high = np.quantile(drawn, (0.05, 0.5, 0.95))
    assert mid == pytest.approx(term.value, rel=0.02)
    assert np.log(high / low) / (2 * 1.6449) == pytest.approx(term.log_sd, rel=0.03)


def test_no_draw_goes_beyond_what_is_possible():
    drawn = resolve_rates(H100, recipe()).sample(Draws(count=2001, seed=3))

    assert np.max(drawn.linear_flop_per_s) <= 989e12
    assert np.max(drawn.memory_bytes_per_s) <= 3.35e12
    for name in ("overlap_dp_ratio", "overlap_cp_ratio", "overlap_pp_ratio", "overlap_ep_ratio"):
        assert np.max(getattr(drawn, name)) <= 1
    for name in ("power_linear_w", "power_wait_w"):
        assert np.max(getattr(drawn, name)) <= 700


def test_one_input_can_vary_alone():
    terms = resolve_rates(H100, recipe())
    alone = terms.sample(Draws(count=11, seed=0), only="memory_bytes_per_s")

    assert np.ndim(alone.memory_bytes_per_s) == 1
    assert all(np.ndim(value) == 0 for name, value in vars(alone).items() if name != "memory_bytes_per_s")


def test_a_measured_term_wins_over_everything_else():
    published = resolve_rates(H100, recipe())
    term = published.terms["linear_flop_per_s"]
    evidence = replace(term.evidence, id="measured:here", kind=EvidenceKind.MEASURED)
    own = replace(term, value=700e12, log_sd=0.01, evidence=evidence)
    measured = resolve_rates(H100, recipe(), {"linear_flop_per_s": own})

    assert measured.sample().linear_flop_per_s == 700e12
    assert measured.terms["linear_flop_per_s"].evidence.kind is EvidenceKind.MEASURED
    assert measured.terms["nic_bytes_per_s"] == published.terms["nic_bytes_per_s"]


def test_a_gpu_without_a_measured_rate_says_transferred_and_ranges_wider():
    measured = resolve_rates(cluster("h100-sxm5-80gb"), recipe()).terms["linear_flop_per_s"]
    transferred = resolve_rates(cluster("h100-pcie-80gb"), recipe()).terms["linear_flop_per_s"]

    assert measured.evidence.kind is EvidenceKind.PUBLISHED
    assert transferred.evidence.kind is EvidenceKind.TRANSFERRED
    assert transferred.log_sd > measured.log_sd
    assert transferred.evidence.gpu == "h100-pcie-80gb"


def test_a_power_limit_lowers_clock_rate_and_watts_together():
    limited = cluster(power_limit_w=400.0)
    full, half = (resolve_rates(machine, recipe()).sample() for machine in (H100, limited))

    assert clock_ratio(H100) == 1
    assert float(half.linear_flop_per_s) == pytest.approx(clock_ratio(limited) * float(full.linear_flop_per_s))
    assert 0.6 < clock_ratio(limited) < 0.9
    assert float(half.power_linear_w) == 400
    assert float(half.memory_bytes_per_s) == float(full.memory_bytes_per_s)


def test_a_limit_above_what_is_drawn_changes_nothing():
    assert clock_ratio(cluster(power_limit_w=690.0)) == 1


def test_only_hopper_and_later_reduce_in_the_switch():
    gains = {
        gpu: float(resolve_rates(cluster(gpu), recipe()).sample().nvls_gain_ratio)
        for gpu in ("a100-sxm4-80gb", "h100-sxm5-80gb", "b200-sxm-180gb", "l40s", "mi300x-192gb")
    }

    assert gains["a100-sxm4-80gb"] == gains["l40s"] == gains["mi300x-192gb"] == 1
    # interconnect.csv: H200 480 against 363 GB/s
    measured = load_interconnect()
    ratio = (measured["ic044"].bus_bytes_per_s or 0) / (measured["ic041"].bus_bytes_per_s or 1)
    assert gains["h100-sxm5-80gb"] == pytest.approx(ratio, abs=0.1)


def test_a_gpu_without_nvlink_talks_over_pcie():
    rates = resolve_rates(cluster("l40s"), recipe()).sample()

    assert float(rates.nvlink_bytes_per_s) <= 31.5e9  # PCIe 4.0 x16


@pytest.mark.parametrize(
    ("gpu", "row"),
    [("p100-pcie-16gb", "Volta"), ("mi300x-192gb", "CDNA"), ("gb300-288gb", "Blackwell Ultra")],
)
def test_relatives_share_the_parameters_of_an_architecture_that_has_no_rows_of_its_own(gpu, row):
    terms = resolve_rates(cluster(gpu), recipe(policy="fp16")).terms

    value = shipped_parameters().find("matmul_efficiency", row).value
    assert f": {value:g} (" in terms["linear_flop_per_s"].evidence.what


def test_a_convolution_draws_its_own_terms_and_a_transformer_has_none_of_them():
    network = replace(recipe(), model=shape_of_network(resnet(50)))

    assert "conv_rate_ratio" not in resolve_rates(H100, recipe()).terms
    assert np.ndim(resolve_rates(H100, network).sample(Draws(count=11, seed=0)).conv_rate_ratio) == 1


def test_what_sets_precisions_apart_is_drawn_apart_and_all_else_alike():
    draws = Draws(count=501, seed=0)
    bf16, fp8 = (resolve_rates(H100, recipe(policy=name)) for name in ("bf16", "fp8"))
    one, other = bf16.sample(draws), fp8.sample(draws)

    assert np.array_equal(one.model_error_ratio, other.model_error_ratio)
    assert abs(np.corrcoef(one.precision_error_ratio, other.precision_error_ratio)[0, 1]) < 0.15
    assert bf16.terms["precision_error_ratio"].drawn_as != fp8.terms["precision_error_ratio"].drawn_as
