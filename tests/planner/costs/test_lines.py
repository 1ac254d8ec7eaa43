"""Money: lines that sum, hours that never pay back, and published figures from their own inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from planner.costs.lines import (
    DrawnLine,
    cost_tree,
    egress_usd,
    electricity_usd,
    gpu_rental_usd,
    hosts_usd,
    share_usd,
    storage_usd,
    unused_term_gpu_h,
)
from planner.costs.quantity import DataSize, Power
from planner.errors import Message
from planner.evidence import Estimate, middle
from planner.units import DAY_S, HOUR_S
from tests.planner.build import ROUNDING
from tests.planner.costs.amounts import gigabytes, kilowatt_hours

AMOUNTS = st.floats(0.0, 1e8, allow_nan=False)


def line(name, usd, children=()):
    return DrawnLine(id=name, label=Message.of(name), usd=np.asarray(usd, dtype=float), children=tuple(children))


def leaves(lines):
    for line in lines:
        if line.children:
            yield from leaves(line.children)
        else:
            yield line


@given(st.lists(nps.arrays(np.float64, 31, elements=AMOUNTS), min_size=1, max_size=6))
def test_lines_sum_to_the_total_at_low_mid_and_high(parts):
    total, lines = cost_tree([line(f"l{i}", part) for i, part in enumerate(parts)])

    for end in ("low", "mid", "high"):
        assert sum(getattr(line.usd, end) for line in lines) == pytest.approx(getattr(total, end), rel=1e-9, abs=1e-3)
    cents = 0.005 * (len(parts) + 1)
    mids = sum(middle(part) for part in parts)
    low, high = np.percentile(np.sum(parts, axis=0), [5, 95])
    assert (total.low, total.mid, total.high) == pytest.approx(
        (min(low, mids), mids, max(high, mids)), rel=1e-12, abs=cents
    )


@given(st.lists(nps.arrays(np.float64, 17, elements=AMOUNTS), min_size=2, max_size=5))
def test_a_tree_sums_at_every_level(parts):
    children = [line(f"c{i}", part) for i, part in enumerate(parts)]
    total, lines = cost_tree([line("whole", np.zeros(17), children), line("fee", np.full(17, 250.0))])

    assert sum(line.usd.mid for line in leaves(lines)) == pytest.approx(total.mid, rel=1e-9, abs=1e-3)
    assert sum(line.usd.high for line in lines[0].children) == pytest.approx(lines[0].usd.high, rel=1e-9, abs=1e-3)


def test_a_fixed_fee_stays_exact_beside_an_uncertain_line():
    hours = np.random.default_rng(1).lognormal(10.0, 0.3, 2000)

    total, lines = cost_tree([line("gpu_rental", hours * 2.0), line("setup_fee", np.full(2000, 25_000.0))])

    assert lines[1].usd.low == lines[1].usd.mid == lines[1].usd.high == 25_000.0
    assert total.high - lines[0].usd.high == pytest.approx(25_000.0)


def test_a_line_is_its_quantity_times_its_price_at_mid_and_a_share_of_it_follows():
    rng = np.random.default_rng(2)
    hours, prices = rng.lognormal(10.0, 0.4, 2001), rng.lognormal(1.0, 0.5, 2001)
    quantity, price = middle(hours), Estimate.of_draws(prices)
    rental = replace(line("gpu_rental", hours * prices), quantity=quantity, unit_price_usd=price)
    network = replace(line("network", 0.1 * hours * prices), base_usd=0.1 * rental.mid_usd)

    total, lines = cost_tree([rental, network])

    assert lines[0].usd.mid == pytest.approx(quantity * price.mid, rel=1e-6)
    assert lines[1].usd.mid == pytest.approx(0.1 * lines[0].usd.mid, abs=0.0051)
    assert total.mid == pytest.approx(lines[0].usd.mid + lines[1].usd.mid, abs=1e-6)
    assert (total.low, total.high) == pytest.approx(tuple(np.percentile(1.1 * hours * prices, [5, 95])), abs=0.02)


def test_a_range_is_widened_to_a_mid_that_lies_outside_it():
    assert Estimate.of_draws([2.0, 2.0, 3.0], mid=1.0) == Estimate(low=1.0, mid=1.0, high=2.9)


def test_lines_that_move_against_each_other_narrow_the_total():
    draws = np.linspace(0.0, 100.0, 101)

    total, lines = cost_tree([line("a", 1000 + draws), line("b", 1000 - draws)])

    # every draw is 2,000; the mids, 1,049.6 and 949.6, make 1,999.1, to which the range is widened
    assert (total.low, total.mid, total.high) == pytest.approx((1999.1, 1999.1, 2000.0), abs=0.1)
    assert lines[0].usd.high - lines[0].usd.low < 1


def ends(line):
    return line.usd.low, line.usd.mid, line.usd.high


def held(draws, price=2.0, term_h=2000.0):
    """Rental and unused hours of one contract of 2,000 hours at 2 USD, and a line that grows with the run."""
    hours = np.asarray(draws, dtype=float)
    unused = np.maximum(term_h - hours, 0.0)
    lines = [
        replace(line("gpu_rental", price * hours), block="contract", base_usd=price * middle(hours)),
        replace(
            line("minimum_term", price * unused),
            block="contract",
            base_usd=price * max(term_h - middle(hours), 0.0),
        ),
        replace(line("electricity", 0.1 * hours), base_usd=0.1 * middle(hours)),
    ]
    return hours, lines


def test_what_grows_with_a_run_within_its_term_has_its_own_range_and_the_contract_has_none():
    hours, lines = held(np.linspace(500.0, 1500.0, 1001))

    total, (rental, unused, electricity) = cost_tree(lines)

    mid = middle(
        hours
    )  # the contract is 2,000 h x 2 USD = 4,000 USD, whatever the run takes; 5 % are 550 h, 95 % 1,450
    assert ends(rental) == pytest.approx((2 * mid,) * 3, abs=0.02)
    assert ends(unused) == pytest.approx((4000 - 2 * mid,) * 3, abs=0.02)
    assert ends(electricity) == pytest.approx((55.0, 0.1 * mid, 145.0), abs=0.02)
    assert (total.low, total.mid, total.high) == pytest.approx((4055.0, 4000 + 0.1 * mid, 4145.0), abs=0.02)


def test_a_run_that_may_outlast_its_term_pays_rental_for_the_hours_beyond_it():
    _, lines = held(np.linspace(1000.0, 3000.0, 2001))

    total, (rental, unused, electricity) = cost_tree(lines)

    # 95 % are 2,900 h: 5,800 USD of GPUs, which is the 4,000 of the contract and 900 hours beyond it, and 290 of power
    assert total.high == pytest.approx(5800 + 290, abs=0.02)
    assert unused.usd.high == unused.usd.mid
    assert rental.usd.high + unused.usd.high == pytest.approx(5800, abs=0.02)
    assert electricity.usd.high == pytest.approx(290, abs=0.02)
    for end in ("low", "mid", "high"):
        assert sum(getattr(line.usd, end) for line in (rental, unused, electricity)) == pytest.approx(
            getattr(total, end)
        )


@pytest.mark.parametrize("wrong", [[-1.0, 2.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_an_amount_that_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError, match="negative or not finite"):
        cost_tree([line("gpu_rental", wrong)])


def test_a_bill_without_lines_is_refused():
    with pytest.raises(ValueError, match="needs a line"):
        cost_tree([])


def test_a_missing_part_makes_every_figure_a_lower_bound():
    total, lines = cost_tree([line("gpu_rental", [1.0, 2.0])], at_least=True)

    assert total.at_least
    assert lines[0].usd.at_least


@given(st.floats(0.0, 1e6), st.floats(0.0, 1e6), st.floats(0.0, 50.0), st.integers(1, 4096), st.floats(0.0, 9000.0))
def test_more_hours_never_cost_less(hours, more, price, gpus, term_h):
    def bill(wall_h):
        rental = gpu_rental_usd(gpus * wall_h, price)
        return sum([
            rental,
            gpu_rental_usd(unused_term_gpu_h(gpus, wall_h, term_h), price),
            hosts_usd(4.0, wall_h, 0.5),
            storage_usd(gigabytes(500.0), wall_h / 730.0, 0.02),
            share_usd(rental, 0.1),
            electricity_usd(Power.from_kw(1.0).over_hours(gpus * wall_h), 0.08),
        ])  # fmt: skip

    assert bill(hours) <= bill(hours + more) * ROUNDING


def test_one_arithmetic_serves_a_number_and_ten_thousand_layouts():
    hours = np.linspace(1.0, 1e6, 10_000)

    assert np.array_equal(gpu_rental_usd(hours, 2.5), [gpu_rental_usd(hour, 2.5) for hour in hours])


def test_a_minimum_term_bills_the_hours_that_are_not_used():
    assert unused_term_gpu_h(256, np.array([1000.0, 3000.0]), 2160.0).tolist() == [256 * 1160.0, 0.0]


def test_storage_and_egress_are_billed_in_decimal_gigabytes():
    assert storage_usd(DataSize(size_bytes=1000.0 * 2**30), 2.0, 0.023) == pytest.approx(1073.741824 * 2 * 0.023)
    assert egress_usd(gigabytes(2000.0), 0.09) == pytest.approx(180.0)


LLAMA_1_TABLE_15 = [
    # model, GPU-hours, MWh as printed, tCO2eq as printed (arXiv 2302.13971, Table 15)
    ("LLaMA-7B", 82_432, 36, 14),
    ("LLaMA-13B", 135_168, 59, 23),
    ("LLaMA-33B", 530_432, 233, 90),
    ("LLaMA-65B", 1_022_362, 449, 173),
    ("OPT-175B", 809_472, 356, 137),
    ("BLOOM-175B", 1_082_880, 475, 183),
]


@pytest.mark.parametrize(("model", "gpu_h", "mwh", "tonnes"), LLAMA_1_TABLE_15)
def test_llama_1_table_15_follows_from_400_w_pue_1_1_and_0_385_kg_per_kwh(model, gpu_h, mwh, tonnes):
    energy = Power(w=400.0).over_hours(gpu_h).times(1.1)

    assert energy.mwh == pytest.approx(mwh, abs=1.6)  # the paper cuts decimals; BLOOM's row is 1.5 MWh below its inputs
    assert energy.kwh * 0.385 == pytest.approx(tonnes * 1000, abs=600)


LLAMA_2_TABLE_2 = [
    # model, GPU-hours, W, tCO2eq (arXiv 2307.09288, Table 2)
    ("7B", 184_320, 400, 31.22),
    ("13B", 368_640, 400, 62.44),
    ("34B", 1_038_336, 350, 153.90),
    ("70B", 1_720_320, 400, 291.42),
]


@pytest.mark.parametrize(("model", "gpu_h", "watts", "tonnes"), LLAMA_2_TABLE_2)
def test_llama_2_table_2_follows_from_hours_watts_and_one_grid_factor(model, gpu_h, watts, tonnes):
    energy = Power(w=watts).over_hours(gpu_h)

    assert energy.kwh * 0.4235 == pytest.approx(tonnes * 1000, rel=2e-4)


def test_llama_2_sizes_sum_to_the_printed_total():
    assert sum(row[1] for row in LLAMA_2_TABLE_2) == 3_311_616
    assert sum(row[3] for row in LLAMA_2_TABLE_2) == pytest.approx(539, abs=0.05)


LLAMA_3_1_CARD = [
    # size, GPU-hours, tCO2eq location-based (meta-llama/llama-models models/llama3_1/MODEL_CARD.md@a9c89c471f)
    ("8B", 1_460_000, 420),
    ("70B", 7_000_000, 2_040),
    ("405B", 30_840_000, 8_930),
    ("total", 39_300_000, 11_390),
]


@pytest.mark.parametrize(("size", "gpu_h", "tonnes"), LLAMA_3_1_CARD)
def test_llama_3_1_card_follows_from_700_w_and_one_grid_factor(size, gpu_h, tonnes):
    energy = Power(w=700.0).over_hours(gpu_h)

    assert energy.kwh * 0.414 == pytest.approx(tonnes * 1000, rel=0.01)  # the card rounds to 10 t


def test_bloom_dynamic_energy_is_433_mwh_and_the_whole_50_5_tonnes():
    # Luccioni et al. 2022 (arXiv 2211.02001): 1,082,990 GPU-hours at 400 W; idle metered; 57 g/kWh; embodied 11.2 t
    dynamic = Power(w=400.0).over_hours(1_082_990)
    idle = kilowatt_hours(256_646.0)

    assert dynamic.kwh == pytest.approx(433_196)
    assert (dynamic + idle).kwh == pytest.approx(689_842)
    assert dynamic.kwh * 0.057 == pytest.approx(24_690, rel=1e-3)
    assert (dynamic + idle).kwh * 0.057 + 11_200 == pytest.approx(50_500, rel=1e-3)


def test_gpt_3_energy_is_1287_mwh_from_flop_rate_and_power():
    # Patterson et al. 2021 (arXiv 2104.10350) Table 4: 3.14e23 FLOP at 24.6 TFLOP/s on 10,000 V100, 330 W, PUE 1.10
    wall_s = 3.14e23 / (24.6e12 * 10_000)
    energy = Power(w=330.0).over_hours(10_000 * wall_s / HOUR_S).times(1.10)

    assert wall_s / DAY_S == pytest.approx(14.8, abs=0.05)
    assert energy.mwh == pytest.approx(1287, rel=1e-3)
    assert energy.kwh * 0.429 == pytest.approx(552_000, rel=2e-3)


@pytest.mark.parametrize(
    ("minutes", "usd_per_node_h", "usd"),
    [(94.3, 14.0, 22), (820.0, 14.0, 191), (8106.2, 14.0, 1891), (1493.3, 28.0, 697)],
)
def test_llm_c_costs_follow_from_minutes_and_the_price_of_a_node(minutes, usd_per_node_h, usd):
    # karpathy/llm.c script headers: 8 A100 at 14 USD/h, 8 H100 at 28 USD/h
    assert gpu_rental_usd(8 * minutes / 60.0, usd_per_node_h / 8) == pytest.approx(usd, abs=0.6)


def test_mpt_7b_costs_200_thousand_dollars_at_2_dollars_an_hour():
    # MosaicML: 440 A100-40GB for 9.5 days, "about 200k USD"
    assert gpu_rental_usd(440 * 9.5 * 24, 2.0) == pytest.approx(200_000, rel=0.01)
