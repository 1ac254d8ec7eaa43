"""Rates: every GPU and policy resolves, evidence stays with the number, draws are common and reproducible."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest

from planner.evidence import Evidence, EvidenceKind
from planner.hardware.catalogue import load_gpus
from planner.hardware.interconnect import load_interconnect
from planner.models.images.catalogue import load_image_models
from planner.rates.clock import clock_ratio
from planner.rates.ladder import resolve_rates
from planner.rates.parameters import Joint, Parameter, Parameters, moved, shipped_parameters
from planner.rates.terms import GOLDEN_GAMMA, Dependence, Draws, RateSet, Term, mixed
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
        training = replace(recipe(stack=stack), policy=policy)
        terms = resolve_rates(cluster(gpu.id), training)
        mid = terms.sample()
        values = {name: float(value) for name, value in vars(mid).items()}
        assert all(np.isfinite(value) and value >= 0 for value in values.values())
        assert all(values[name] > 0 for name in values if name.endswith(("_per_s", "_w")))
        assert values["linear_flop_per_s"] <= gpu.reachable_flop_per_s[policy.linear_compute]
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


def test_the_draws_of_a_question_are_kept_and_those_of_a_seed_long_past_are_not():
    draws = Draws(count=5, seed=70_001)
    inputs = [f"input {number}" for number in range(1_000)]
    first = [draws.normal(name) for name in inputs]
    assert all(draws.normal(name) is kept for name, kept in zip(inputs, first, strict=True))

    held = weakref.ref(first[0])
    del first
    for seed in range(70_002, 70_012):
        Draws(count=5, seed=seed).normal("input 0")
    gc.collect()
    assert held() is None


def test_what_is_drawn_of_an_input_depends_on_no_other_input():
    inputs = [f"input {number}" for number in range(300)]
    together, alone = Draws(count=101, seed=70_020), Draws(count=101, seed=70_020)
    together.draw(inputs)
    first = [together.normal(name).copy() for name in inputs]
    for seed in range(70_021, 70_031):  # what was drawn is forgotten
        Draws(count=101, seed=seed).normal("input 0")

    assert all(np.array_equal(alone.normal(name), drawn) for name, drawn in zip(inputs, first, strict=True))


def test_draws_are_as_random_as_those_of_a_generator():
    count, inputs = 1001, [f"input {number}" for number in range(400)]
    draws, other = (Draws(count=count, seed=seed) for seed in (70_040, 70_041))
    draws.draw(inputs)
    drawn = np.stack([draws.normal(name)[: count // 2] for name in inputs])
    other_drawn = np.stack([other.normal(name)[: count // 2] for name in inputs])
    by_chance = 1.0 / np.sqrt(count // 2)  # standard deviation of a correlation of independent draws

    for left, right in ((drawn, drawn), (abs(drawn), abs(drawn)), (drawn, other_drawn), (drawn[:, 1:], drawn[:, :-1])):
        correlations = np.corrcoef(left, right)[: len(left), len(left) :]
        apart = correlations[~np.eye(len(left), dtype=bool)]
        assert abs(apart.mean()) < 0.1 * by_chance
        assert apart.std() == pytest.approx(by_chance, rel=0.05)
        assert abs(apart).max() < 6.0 * by_chance
    assert np.sign(drawn).mean(axis=1).std() == pytest.approx(by_chance, rel=0.15)


def test_the_random_numbers_are_those_of_the_reference_implementation():
    # splitmix64.c with the state 1234567, its first outputs as other implementations test them
    states = np.uint64(1234567) + np.arange(1, 6, dtype=np.uint64) * GOLDEN_GAMMA

    assert mixed(states).tolist() == [
        6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
    ]  # fmt: skip


def test_draws_repeat_with_their_seed_and_differ_with_another():
    terms = resolve_rates(H100, recipe())
    first, repeated, other = (terms.sample(Draws(count=101, seed=seed)) for seed in (7, 7, 8))

    assert np.array_equal(first.linear_flop_per_s, repeated.linear_flop_per_s)
    assert not np.array_equal(first.linear_flop_per_s, other.linear_flop_per_s)


def test_the_same_input_is_drawn_alike_in_every_precision():
    draws = Draws(count=101, seed=0)
    bf16, fp8 = (resolve_rates(H100, recipe(policy=name)).sample(draws) for name in ("bf16", "fp8"))

    assert np.ptp(bf16.memory_bytes_per_s) > 0
    shared = ("memory_bytes_per_s", "other_flop_per_s", "launch_s", "model_error_ratio", "gpu_error_ratio")
    assert all(np.array_equal(getattr(bf16, name), getattr(fp8, name)) for name in shared)


def test_different_inputs_are_drawn_independently():
    drawn = resolve_rates(H100, recipe()).sample(Draws(count=4001, seed=0))

    assert abs(np.corrcoef(drawn.memory_bytes_per_s, drawn.nic_bytes_per_s)[0, 1]) < 0.06


def test_the_percentiles_of_the_draws_are_the_range_of_the_parameter():
    terms = resolve_rates(H100, recipe())
    term = terms.terms["hop_latency_s"]
    drawn = np.asarray(terms.sample(Draws(count=20_001, seed=0)).hop_latency_s)

    low, mid, high = np.quantile(drawn, (0.05, 0.5, 0.95))
    assert mid == pytest.approx(term.value, rel=0.02)
    assert np.log(high / low) / (2 * 1.64485363) == pytest.approx(term.log_sd, rel=0.03)


def test_no_draw_goes_beyond_what_is_possible():
    drawn = resolve_rates(H100, recipe()).sample(Draws(count=2001, seed=3))

    assert np.max(drawn.linear_flop_per_s) <= 989e12
    assert np.max(drawn.memory_bytes_per_s) <= 3.35e12
    for name in ("overlap_dp_ratio", "overlap_cp_ratio", "overlap_pp_ratio", "overlap_ep_ratio"):
        assert np.max(getattr(drawn, name)) <= 1
    for name in ("power_linear_w", "power_wait_w"):
        assert np.max(getattr(drawn, name)) <= 700


def test_a_measured_term_wins_over_everything_else():
    published = resolve_rates(H100, recipe())
    term = published.terms["linear_flop_per_s"]
    evidence = replace(term.evidence, id="measured:here", kind=EvidenceKind.MEASURED)
    own = replace(term, value=700e12, own_sd=0.01, rests_on=(), ceiling=float("inf"), evidence=evidence)
    measured = resolve_rates(H100, recipe(), {"linear_flop_per_s": own})

    assert measured.sample().linear_flop_per_s == 700e12
    assert measured.terms["linear_flop_per_s"].evidence.kind is EvidenceKind.MEASURED
    assert measured.terms["nic_bytes_per_s"] == published.terms["nic_bytes_per_s"]
    drawn = measured.sample(Draws(count=20_001, seed=0)).linear_flop_per_s
    assert np.std(np.log(drawn)) == pytest.approx(0.01, rel=0.03)


@pytest.mark.parametrize(("measured_limit_w", "follows"), [(None, True), (700.0, True), (500.0, False)])
def test_a_record_follows_a_lower_limit_than_the_one_it_was_measured_at(measured_limit_w, follows):
    limited = cluster(power_limit_w=500.0)
    base = resolve_rates(H100, recipe()).terms
    own = {
        name: replace(base[name], value=value, ceiling=float("inf"), measured_limit_w=measured_limit_w)
        for name, value in (("linear_flop_per_s", 600e12), ("power_linear_w", 690.0))
    }
    rates = resolve_rates(limited, recipe(), own).sample()

    assert rates.linear_flop_per_s == pytest.approx(600e12 * (clock_ratio(limited) if follows else 1.0))
    assert rates.power_linear_w == (500 if follows else 690)


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
    assert 0.6 < clock_ratio(limited) < 0.8  # just below the voltage's floor
    assert float(half.power_linear_w) == 400


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
    [("p100-pcie-16gb", "Volta"), ("mi210-64gb", "CDNA"), ("v100-sxm2-16gb", "Volta")],
)
def test_relatives_share_the_parameters_of_an_architecture_that_has_no_rows_of_its_own(gpu, row):
    terms = resolve_rates(cluster(gpu), recipe(policy="fp16")).terms

    value = shipped_parameters().find("matmul_efficiency", row).value
    assert f": {value:.3g} (" in terms["linear_flop_per_s"].evidence.what


def test_a_convolution_draws_its_own_terms_and_a_transformer_has_none_of_them():
    network = replace(recipe(), model=load_image_models()["resnet50"])

    assert "image_conv_ratio" not in resolve_rates(H100, recipe()).terms
    assert np.ndim(resolve_rates(H100, network).sample(Draws(count=11, seed=0)).image_conv_ratio) == 1


def test_what_sets_precisions_apart_is_drawn_apart_and_all_else_alike():
    draws = Draws(count=501, seed=0)
    bf16, fp8 = (resolve_rates(H100, recipe(policy=name)) for name in ("bf16", "fp8"))
    bf16_rates, fp8_rates = bf16.sample(draws), fp8.sample(draws)

    assert np.array_equal(bf16_rates.model_error_ratio, fp8_rates.model_error_ratio)
    assert abs(np.corrcoef(bf16_rates.precision_error_ratio, fp8_rates.precision_error_ratio)[0, 1]) < 0.15
    rows = [terms.terms["precision_error_ratio"].rests_on[0].row.id for terms in (bf16, fp8)]
    assert rows == ["precision_error_ratio.bf16", "precision_error_ratio.fp8"]


JITTER = shipped_parameters().families["jitter_ratio"]
TEST = Evidence(id="test", kind=EvidenceKind.GIVEN, what="made up", source="this test", date="2026-11-21")


def row(name: str, value: float = 1.0, log_sd: float = 0.1) -> Parameter:
    """A made-up row whose range of 90 % is that of `log_sd`."""
    reach = np.exp(1.64485363 * log_sd)
    return Parameter(
        id=name, value=value, low=value / reach, high=value * reach, unit="ratio", meaning="made up",
        kind=EvidenceKind.ASSUMED, source="this test", date="2026-11-21",
    )  # fmt: skip


def rate_set(*terms: Term, rows: tuple[Parameter, ...] = (), joint: Joint | None = None) -> RateSet:
    """Made-up terms on made-up rows."""
    families = {entry.family: replace(JITTER, bound="share" if entry.family == "share" else "") for entry in rows}
    parameters = Parameters(rows={entry.id: entry for entry in rows}, families=families, joint=joint)
    return RateSet(terms={term.name: term for term in terms}, parameters=parameters)


def made_up(name: str, value: float, *rests_on: Dependence, own_sd: float = 0.0, ceiling: float = np.inf) -> Term:
    return Term(name=name, value=value, own_sd=own_sd, rests_on=rests_on, ceiling=ceiling, family=JITTER, evidence=TEST)


NEAR, FAR = row("near", log_sd=0.2), row("far", log_sd=0.3)
BOTH = made_up("both", 3.0, Dependence(row=NEAR), Dependence(row=FAR, power=-2.0))


def test_a_term_moves_with_each_row_that_it_rests_on_by_its_power():
    terms = rate_set(BOTH, rows=(NEAR, FAR))
    shifts = {"near": np.log([2.0, 1.0, 2.0]), "far": np.log([1.0, 3.0, 3.0]), "elsewhere": np.log([9.0, 9.0, 9.0])}

    # 3 x 2, 3 / 3^2 and both
    assert list(terms.moved(shifts).both) == pytest.approx([6.0, 1 / 3, 2 / 3])
    assert terms.moved({"elsewhere": np.log([9.0])}).both == 3.0
    assert terms.sample().both == 3.0


def test_a_term_that_rests_on_two_rows_is_drawn_by_both():
    draws = Draws(count=20_001, seed=0)
    terms = rate_set(BOTH, made_up("near", 1.0, Dependence(row=NEAR)), made_up("far", 1.0, Dependence(row=FAR)),
                     rows=(NEAR, FAR))  # fmt: skip
    drawn = terms.sample(draws)

    assert np.asarray(drawn.both) == pytest.approx(3.0 * np.asarray(drawn.near) / np.asarray(drawn.far) ** 2)
    # sqrt(0.2^2 + (2 x 0.3)^2)
    assert BOTH.log_sd == pytest.approx(0.63246, rel=1e-4)
    assert np.std(np.log(drawn.both)) == pytest.approx(0.63246, rel=0.03)


def test_what_a_term_has_of_its_own_is_drawn_beside_its_rows_and_not_moved_with_them():
    own = made_up("own", 2.0, Dependence(row=NEAR), own_sd=0.15)
    terms = rate_set(own, made_up("near", 1.0, Dependence(row=NEAR)), rows=(NEAR,))
    drawn = terms.sample(Draws(count=20_001, seed=0))
    beside = np.log(np.asarray(drawn.own) / 2.0) - np.log(drawn.near)

    assert own.log_sd == pytest.approx(0.25)  # 0.15 and 0.2
    assert np.std(beside) == pytest.approx(0.15, rel=0.03)
    assert abs(np.corrcoef(beside, drawn.near)[0, 1]) < 0.03
    assert list(terms.moved({"near": np.log([2.0])}).own) == pytest.approx([4.0])


@pytest.mark.parametrize(
    ("value", "shift", "expected"),
    [
        (0.8, 0.1, 0.868332),  # odds of 4, times e^(0.1 / 0.2)
        (0.8, -0.1, 0.708125),
        (0.8, 1.0, 0.998318),  # odds of 4 e^5
        (0.8, 5.0, 1.0 - 3.5e-12),  # odds of 4 e^25
        (0.1, 0.1, 0.110454),  # odds of 1/9, times e^(0.1 / 0.9)
        (1.0, 0.1, 1.105171),  # what is a whole already has no room to bend: e^0.1
    ],
)
def test_a_share_bends_and_stays_below_1(value, shift, expected):
    assert float(moved(value, shift, share=True)) == pytest.approx(expected, abs=1e-6)
    assert float(moved(value, shift, share=False)) == pytest.approx(value * np.exp(shift))
    # at first as far as anything else
    assert float(moved(value, 1e-6, share=True)) / value - 1 == pytest.approx(1e-6, rel=1e-4)


def test_a_term_on_a_share_bends_as_the_share_does_whatever_it_is_a_share_of():
    share = row("share", value=0.8, log_sd=0.5)
    term = made_up("rate", 800.0, Dependence(row=share, share=True), ceiling=1000.0)
    terms = rate_set(term, rows=(share,))

    assert list(terms.moved({"share": np.array([0.1, -0.1])}).rate) == pytest.approx([868.332, 708.125])
    drawn = np.asarray(terms.sample(Draws(count=20_001, seed=0)).rate)
    assert np.all(drawn < 1000.0)
    assert np.unique(drawn).size == 20_001  # none is cut off
    assert np.median(drawn) == pytest.approx(800.0, rel=0.02)


def test_what_is_no_share_is_cut_off_at_its_ceiling():
    terms = rate_set(made_up("rate", 800.0, Dependence(row=NEAR), ceiling=1000.0), rows=(NEAR,))

    assert list(terms.moved({"near": np.log([1.1, 2.0])}).rate) == pytest.approx([880.0, 1000.0])


ALONE = row("alone", log_sd=0.05)
TOGETHER = Joint(ids=("near", "far"), factor=np.array([[0.2, 0.0], [0.15, np.sqrt(0.0675)]]))
"""Spreads of 0.2 and 0.3 with a correlation of a half: covariance 0.04, 0.03 and 0.09."""


def test_rows_that_a_fit_left_together_are_drawn_with_its_covariance_and_others_by_their_own_range():
    wide = row("near", log_sd=0.9)  # where there is a joint distribution it says more than the row's own range
    terms = rate_set(rows=(wide, FAR, ALONE), joint=TOGETHER)
    shifts = Draws(count=200_001, seed=0).shifts(terms.parameters)
    covariance = np.cov([shifts[name] for name in ("near", "far", "alone")])

    assert TOGETHER.covariance.tolist() == pytest.approx(np.array([[0.04, 0.03], [0.03, 0.09]]))
    assert covariance == pytest.approx(
        np.array([[0.04, 0.03, 0.0], [0.03, 0.09, 0.0], [0.0, 0.0, 0.0025]]), rel=0.03, abs=2e-4
    )


def test_terms_on_rows_that_err_together_err_together():
    terms = [made_up(name, 1.0, Dependence(row=on)) for name, on in (("one_rate", NEAR), ("other_rate", FAR))]
    draws = Draws(count=20_001, seed=0)
    joint, apart = (rate_set(*terms, rows=(NEAR, FAR), joint=how).sample(draws) for how in (TOGETHER, None))

    assert np.corrcoef(np.log(joint.one_rate), np.log(joint.other_rate))[0, 1] == pytest.approx(0.5, abs=0.02)
    assert abs(np.corrcoef(np.log(apart.one_rate), np.log(apart.other_rate))[0, 1]) < 0.03


def test_the_shipped_rates_of_one_gpu_err_together_as_the_fit_left_them():
    joint = shipped_parameters().joint
    assert joint is not None
    terms = resolve_rates(H100, recipe())
    straight = {
        name: term.rests_on[0].row.id
        for name, term in terms.terms.items()
        if len(term.rests_on) == 1
        and not term.rests_on[0].share
        and term.rests_on[0].row.id in joint.ids
        and not term.own_sd  # the spread of a measured surface is its own
    }
    drawn = vars(terms.sample(Draws(count=50_001, seed=0)))
    at = [joint.ids.index(row_id) for row_id in straight.values()]
    covariance = joint.covariance[np.ix_(at, at)]
    spread = np.sqrt(np.diag(covariance))
    wanted = covariance / np.outer(spread, spread)

    assert len(straight) > 10
    assert np.max(np.abs(wanted - np.diag(np.diag(wanted)))) > 0.1
    uncut = [i for i, name in enumerate(straight) if not np.any(drawn[name] == terms.terms[name].ceiling)]
    logs = np.log([drawn[name] for name in straight])
    assert np.corrcoef(logs)[np.ix_(uncut, uncut)] == pytest.approx(wanted[np.ix_(uncut, uncut)], abs=0.025)


OF_ALL_KINDS = recipe("mixtral-8x7b", "fp8", stack="tuned", software_year=2023.0)
LIMITED = cluster(power_limit_w=500.0)


@pytest.mark.parametrize("name", [entry.id for entry in shipped_parameters().rows.values() if entry.value > 0])
def test_moving_a_row_is_as_if_the_file_had_said_so(name):
    known, a_little = shipped_parameters(), 1e-5
    on = known.rows[name]
    share = known.families[on.family].bound == "share"
    changed_row = replace(on, value=float(moved(on.value, a_little, share=share)))
    from_changed_row = vars(resolve_rates(LIMITED, OF_ALL_KINDS, None, known.replaced([changed_row])).sample())
    moved_rates = vars(resolve_rates(LIMITED, OF_ALL_KINDS).moved({name: np.array([a_little])}))

    assert {term: float(np.ravel(value)[0]) for term, value in moved_rates.items()} == pytest.approx(
        from_changed_row, rel=1e-8
    )


@pytest.mark.parametrize("count", [1001, 201, 3, 1])
def test_with_every_draw_the_opposite_one_is_drawn_and_the_last_has_the_mid(count):
    drawn = Draws(count=count, seed=3).normal("price")

    half = count // 2
    assert np.array_equal(drawn[:half], -drawn[half : 2 * half])
    assert drawn[2 * half :].tolist() == [0.0]
    if half:
        assert np.mean(drawn[: 2 * half] ** 2) == pytest.approx(1.0)


@pytest.mark.parametrize("count", [100, 0])
def test_an_even_number_of_draws_has_none_at_mid_and_is_refused(count):
    with pytest.raises(ValueError, match=f"expected an odd number, found {count}"):
        Draws(count=count, seed=0)


def test_the_quantiles_of_the_draws_are_those_of_the_normal_distribution():
    drawn = Draws(count=1001, seed=0).normal("price")

    # 5th and 95th percentile: 1.6449 standard deviations
    assert np.quantile(drawn, [0.05, 0.5, 0.95]) == pytest.approx([-1.6449, 0.0, 1.6449], abs=0.01)


def test_rows_are_drawn_without_correlation_where_nothing_says_that_they_err_together():
    known = replace(shipped_parameters(), joint=None)
    shifts = Draws(count=1001, seed=0).shifts(known)
    standard = np.stack([shift / known.rows[name].log_sd for name, shift in shifts.items()])

    assert standard @ standard.T / 1001 == pytest.approx(np.eye(len(standard)), abs=1e-9)
