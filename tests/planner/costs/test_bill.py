"""The bill of a run: every line visible, and together the total to the cent."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.costs.bill import BillPrices, RunDraws, run_bill, total_draws_usd
from planner.costs.prices import GpuPrice, Ledger, OtherCosts, OwnedPrice, Quote
from planner.errors import Message
from planner.evidence import Estimate, Evidence, EvidenceKind
from tests.planner.build import ROUNDING
from tests.planner.costs.amounts import gigabytes, kilowatt_hours

PRICE = GpuPrice(
    gpu="h100-sxm5-80gb",
    usd_per_gpu_h=Estimate.exactly(2.0),
    basis=Message.of("price.basis.given"),
    evidence=(Evidence(id="price:given", kind=EvidenceKind.GIVEN, what="2 USD", source="--price"),),
)
OTHER_COSTS = OtherCosts(
    storage_usd_per_gb_month=0.023,
    checkpoints_kept=5,
    data=gigabytes(40_000),
    months_after=12,
    egress_usd_per_gb=0.09,
    egress=gigabytes(500),
    network_ratio=0.05,
    hosts=8,
    usd_per_host_h=1.5,
    experiments_ratio=1.2,
    failed_ratio=0.07,
)
QUOTE = Quote(vendor="Acme", price=PRICE, minimum_term_h=2160.0, minimum_gpus=256, setup_fee_usd=25_000.0)


def run_of(hours, gpus=256, **changes):
    gpu_h = gpus * np.atleast_1d(np.asarray(hours, dtype=float))
    draws = RunDraws(gpus=gpus, gpu_h=gpu_h, usd_per_gpu_h=np.full(gpu_h.shape, 2.0))
    return replace(draws, checkpoint=gigabytes(1_000), **changes)


def bill(run, price=PRICE, usd_per_kwh=None, **booked):
    """The bill with these lines on."""
    return run_bill(run, BillPrices(gpu=price, usd_per_kwh=usd_per_kwh, ledger=Ledger(**booked)))


def by_id(lines):
    return {line.id: line.usd.mid for line in lines}


def test_without_more_a_bill_is_the_gpu_line():
    total, lines = bill(run_of(1000.0), PRICE)

    assert [line.id for line in lines] == ["gpu_rental"]
    assert total.mid == lines[0].usd.mid == 512_000.0
    assert (lines[0].quantity, lines[0].unit, lines[0].evidence_ids) == (256_000.0, "GPU-hour", ("price:given",))


def test_every_line_beside_the_gpus_is_visible_and_written_out():
    total, lines = bill(run_of(730.0), PRICE, other_costs=OTHER_COSTS)

    gpu = 256 * 730 * 2.0
    assert by_id(lines) == pytest.approx({
        "gpu_rental": gpu,
        "network": 0.05 * gpu,
        "storage": 45_000 * 13 * 0.023,  # 5 TB of checkpoints and 40 TB of data, for the run's month and 12 more
        "egress": 45.0,
        "cpu_hosts": 8 * 730 * 1.5,
        "failed_work": 0.07 * gpu,
        "experiments": 1.2 * gpu,
    })  # fmt: skip
    assert total.mid == pytest.approx(sum(by_id(lines).values()))


def test_storage_says_what_grows_with_the_run_and_what_does_not():
    _, lines = bill(run_of(730.0), PRICE, other_costs=OTHER_COSTS)
    (storage,) = (line for line in lines if line.id == "storage")

    assert {part.id: (part.quantity, part.usd.mid) for part in storage.children} == {
        "storage_run": (45_000.0, 45_000 * 0.023),
        "storage_after": (45_000.0 * 12, 45_000 * 12 * 0.023),
    }
    _, lines = bill(run_of(730.0), PRICE, other_costs=replace(OTHER_COSTS, months_after=0.0))
    assert next((line.quantity, line.children) for line in lines if line.id == "storage") == (45_000.0, ())


def test_what_is_not_stated_has_no_line():
    _, lines = bill(run_of(730.0), PRICE, other_costs=OtherCosts(failed_ratio=0.1))

    assert list(by_id(lines)) == ["gpu_rental", "failed_work"]


def test_an_offer_bills_its_minimum_term_size_and_fee():
    _, lines = bill(run_of(1000.0, gpus=128), PRICE, quote=QUOTE)

    assert by_id(lines) == {
        "gpu_rental": 128 * 1000 * 2.0,
        "minimum_term": (256 * 2160 - 128 * 1000) * 2.0,
        "setup_fee": 25_000.0,
    }


def test_a_run_that_fills_its_term_pays_no_minimum():
    _, lines = bill(run_of(3000.0), PRICE, quote=QUOTE)

    assert "minimum_term" not in by_id(lines)


@pytest.mark.parametrize("gpus", [24, 128, 256])
def test_a_run_within_the_minimum_in_nearly_all_draws_costs_the_contract_exactly(gpus):
    hours = np.exp(np.linspace(np.log(200.0), np.log(2000.0), 101))
    hours[-2:] = 2300.0  # the few that end after the term are beyond the 95th percentile
    total, lines = bill(run_of(hours, gpus=gpus), PRICE, quote=QUOTE)
    contract_h = 256 * 2160

    assert sum(line.quantity for line in lines if line.unit == "GPU-hour") == pytest.approx(contract_h, rel=1e-12)
    assert (total.low, total.mid, total.high) == pytest.approx((contract_h * 2.0 + 25_000.0,) * 3, rel=1e-12)


def test_a_run_that_is_longer_than_the_term_at_mid_still_pays_for_the_gpus_of_the_minimum():
    hours = np.array([2500.0, 3000.0, 3600.0])
    _, lines = bill(run_of(hours, gpus=128), PRICE, quote=QUOTE)

    assert by_id(lines)["minimum_term"] == pytest.approx((256 - 128) * 3000.0 * 2.0)


def test_gpus_of_a_minimum_beyond_the_term_widen_both_lines_by_their_part_of_the_gpus():
    hours = np.linspace(3000.0, 5000.0, 1001)

    _, lines = bill(run_of(hours, gpus=64), quote=QUOTE)

    used, unused = (next(line.usd for line in lines if line.id == name) for name in ("gpu_rental", "minimum_term"))
    # 64 of 256 GPUs are the run's; the 95th percentile is 4,900 h at 2 USD
    assert used.high == pytest.approx(64 * 4900 * 2, rel=1e-6)
    assert unused.high == pytest.approx(192 * 4900 * 2, rel=1e-6)


WORK = OtherCosts(failed_ratio=0.25, experiments_ratio=0.75)


def test_work_beside_the_run_takes_unused_hours_of_the_minimum_before_it_costs_more():
    run = run_of(400.0, gpus=128)
    total, lines = bill(run, quote=QUOTE, other_costs=WORK)
    contract_h = 256 * 2160

    assert by_id(lines) == {
        "gpu_rental": 128 * 400 * 2.0,
        "minimum_term": (contract_h - 2 * 128 * 400) * 2.0,  # as much work as the run itself
        "setup_fee": 25_000.0,
        "failed_work": 0.25 * 128 * 400 * 2.0,
        "experiments": 0.75 * 128 * 400 * 2.0,
    }
    assert total.mid == bill(run, quote=QUOTE)[0].mid


def test_work_beyond_the_minimum_costs_its_hours():
    run = run_of(2000.0)
    total, lines = bill(run, quote=QUOTE, other_costs=WORK)

    assert "minimum_term" not in by_id(lines)
    assert total.mid == 2 * 256 * 2000 * 2.0 + 25_000.0


@pytest.mark.parametrize("gpus", [24, 128])
def test_the_range_of_work_within_the_minimum_moves_no_total(gpus):
    hours = np.exp(np.linspace(np.log(200.0), np.log(1000.0), 101))
    total, lines = bill(run_of(hours, gpus=gpus), quote=QUOTE, other_costs=WORK)
    contract_usd = 256 * 2160 * 2.0 + 25_000.0

    assert (total.low, total.mid, total.high) == pytest.approx((contract_usd,) * 3, abs=0.05)
    assert all(line.usd.low == pytest.approx(line.usd.high, abs=0.05) for line in lines)


def test_of_work_within_the_minimum_electricity_alone_is_paid_on_top():
    alone, _ = bill(apart(), usd_per_kwh=Estimate.exactly(0.08), quote=QUOTE)
    total, lines = bill(apart(), usd_per_kwh=Estimate.exactly(0.08), quote=QUOTE, other_costs=WORK)

    assert by_id(lines)["minimum_term"] == (256 * 2160 - 2 * 256_000) * 2.0
    assert total.mid == pytest.approx(alone.mid + 20_000.0)


def apart(hours=1000.0, kwh=250_000.0, usd=0.08):
    """A run whose electricity is paid apart."""
    return run_of(hours, energy=kilowatt_hours(np.array([kwh])), usd_per_kwh=np.array([usd]))


def test_electricity_is_a_line_only_where_it_is_paid_apart():
    _, lines = bill(apart(), PRICE, Estimate.exactly(0.08))

    assert by_id(lines)["electricity"] == pytest.approx(20_000.0)
    assert (lines[1].quantity, lines[1].unit) == (pytest.approx(250_000.0), "kWh")


@pytest.mark.parametrize("apart_too", [False, True])
def test_every_line_without_lines_of_its_own_is_a_quantity_at_a_price_to_the_cent_and_totals_are_their_sums(apart_too):
    rng = np.random.default_rng(3)
    run = replace(run_of(500.0 / 3 * rng.lognormal(0.0, 0.2, 301)), usd_per_gpu_h=rng.lognormal(0.7, 0.3, 301))
    usd_per_kwh = Estimate.exactly(0.0837) if apart_too else None
    if apart_too:
        energy = kilowatt_hours(np.full(301, 473_233.7521))
        run = replace(run, energy=energy, usd_per_kwh=np.full(301, 0.0837))

    total, lines = bill(run, PRICE, usd_per_kwh, other_costs=OTHER_COSTS, quote=QUOTE)

    assert {"network", "storage", "failed_work", "setup_fee", "minimum_term"} <= set(by_id(lines))
    for line in leaves(lines):
        product = Decimal(repr(line.quantity)) * Decimal(repr(line.unit_price_usd.mid))
        assert Decimal(repr(line.usd.mid)) == product.quantize(Decimal("0.01"), ROUND_HALF_UP), line.id
    for end in ("low", "mid", "high"):
        cents = [Decimal(repr(getattr(line.usd, end))) for line in leaves(lines)]
        assert sum(cents) == Decimal(repr(getattr(total, end)))
        assert all(amount == amount.quantize(Decimal("0.01")) for amount in cents)


def test_electricity_is_what_a_reader_multiplies():
    _, lines = bill(apart(kwh=4_732.337521, usd=0.0837), PRICE, Estimate.exactly(0.0837))

    assert (lines[1].quantity, lines[1].usd.mid) == (4_732.338, 396.10)  # 4,732.338 x 0.0837 = 396.0967


def test_a_fee_is_one_lump_sum_and_the_network_a_price_per_hour():
    _, lines = bill(run_of(1000.0), PRICE, other_costs=OtherCosts(network_ratio=0.05), quote=QUOTE)
    bought = {line.id: (line.quantity, line.unit, line.unit_price_usd.mid) for line in lines}

    assert bought["setup_fee"] == (1.0, "lump sum", 25_000.0)
    assert bought["network"] == (256_000.0, "GPU-hour", 0.1)


def test_work_besides_the_run_takes_electricity_too_where_that_is_paid_apart():
    _, lines = bill(apart(), PRICE, other_costs=OtherCosts(experiments_ratio=0.5, failed_ratio=0.1, network_ratio=0.05))

    worked = 256_000 * 2.0 + 20_000.0
    assert by_id(lines)["experiments"] == pytest.approx(0.5 * worked)
    assert by_id(lines)["failed_work"] == pytest.approx(0.1 * worked)
    assert by_id(lines)["network"] == pytest.approx(0.05 * 512_000)  # a share of the GPU line


OWN_ITEMS = {"server": 0.9, "network": 0.2, "storage": 0.0, "financing": 0.0, "housing": 0.3, "electricity": 0.1,
             "staff": 0.5}  # fmt: skip
OWNED = OwnedPrice(
    price=replace(PRICE, usd_per_gpu_h=Estimate(low=1.6, mid=2.0, high=2.6)),
    items_usd_per_gpu_h=OWN_ITEMS,
    break_even_utilisation_ratio=0.5,
    rental_usd_per_gpu_h=3.0,
    busy_usd_per_gpu_h=Estimate(low=0.05, mid=0.08, high=0.11),
)


def test_a_plan_bills_own_machines_without_the_energy_that_it_knows_itself():
    assert OWNED.without_energy.usd_per_gpu_h == Estimate(low=1.6 - 0.05, mid=2.0 - 0.08, high=2.6 - 0.11)
    assert sum(OWNED.idle_items_usd_per_gpu_h.values()) == pytest.approx(1.92)


def test_own_machines_show_their_items_within_the_gpu_line_and_their_energy_beside_it():
    run = replace(apart(), usd_per_gpu_h=np.array([1.92]))

    total, lines = bill(run, OWNED.without_energy, owned=OWNED)

    assert [line.id for line in lines] == ["gpu_owned", "electricity"]
    assert by_id(lines[0].children) == pytest.approx({
        "owned_server": 0.9 * 256_000,
        "owned_network": 0.2 * 256_000,
        "owned_housing": 0.3 * 256_000,
        "owned_electricity": 0.02 * 256_000,  # of hours without work
        "owned_staff": 0.5 * 256_000,
    })  # fmt: skip
    assert total.mid == pytest.approx(1.92 * 256_000 + 20_000)


def leaves(lines):
    for line in lines:
        yield from leaves(line.children) if line.children else (line,)


@pytest.mark.parametrize(
    ("price", "booked"),
    [
        (PRICE, {"other_costs": OTHER_COSTS, "quote": QUOTE}),
        (OWNED.without_energy, {"owned": OWNED, "other_costs": OTHER_COSTS}),
    ],
)
def test_a_line_with_a_quantity_and_a_price_is_their_product(price, booked):
    run = run_of(730.0)
    run = replace(run, usd_per_gpu_h=np.full(run.gpu_h.shape, price.usd_per_gpu_h.mid))

    _, lines = bill(run, price, **booked)

    priced = [line for line in leaves(lines) if line.unit_price_usd is not None]
    assert len(priced) > 5
    for line in priced:
        assert line.usd.mid == pytest.approx(line.quantity * line.unit_price_usd.mid), line.id


def test_a_bill_over_layouts_is_the_bill_of_each():
    gpus, hours = np.array([64.0, 256.0, 1024.0]), np.array([3000.0, 800.0, 210.0])
    run = RunDraws(gpus=gpus, gpu_h=gpus * hours, usd_per_gpu_h=np.full(3, 2.0), checkpoint=gigabytes(1_000))
    prices = BillPrices(gpu=PRICE, ledger=Ledger(other_costs=OTHER_COSTS, quote=QUOTE))

    totals = total_draws_usd(run, prices)

    for at in range(3):
        alone = replace(run_of(hours[at], gpus=int(gpus[at])))
        assert totals[at] == pytest.approx(run_bill(alone, prices)[0].mid)


def test_where_nothing_is_known_there_is_no_total_rather_than_0():
    nothing = GpuPrice(gpu="x", usd_per_gpu_h=None, basis=Message.of("price.basis.none"), evidence=())

    assert bill(replace(run_of(1000.0), usd_per_gpu_h=None), nothing) == (None, ())


def test_without_a_price_of_the_gpus_what_else_is_known_is_no_total():
    nothing = GpuPrice(gpu="x", usd_per_gpu_h=None, basis=Message.of("price.basis.none"), evidence=())
    run = replace(run_of(1000.0), usd_per_gpu_h=None)

    assert bill(run, nothing, other_costs=OTHER_COSTS) == (None, ())


def test_a_price_that_is_itself_a_lower_bound_makes_the_bill_one():
    bound = replace(PRICE, usd_per_gpu_h=Estimate(low=1.0, mid=2.0, high=3.0, at_least=True))

    assert bill(run_of(10.0), bound)[0].at_least


@given(st.integers(0, 2**32 - 1), st.floats(1.0, 5000.0), st.floats(0.0, 0.6))
def test_a_bill_of_uncertain_draws_sums_at_low_mid_and_high(seed, hours, spread):
    rng = np.random.default_rng(seed)
    run = run_of(hours * rng.lognormal(0.0, spread, 200))
    run = replace(run, usd_per_gpu_h=rng.lognormal(0.7, 0.3, 200))

    total, lines = bill(run, PRICE, other_costs=OTHER_COSTS, quote=QUOTE)

    for end in ("low", "mid", "high"):
        assert abs(sum(getattr(line.usd, end) for line in lines) - getattr(total, end)) < 0.005


@given(st.floats(1.0, 5000.0), st.floats(0.0, 5000.0))
def test_more_hours_never_cost_less_whatever_lines_are_on(hours, more):
    less = bill(run_of(hours), PRICE, other_costs=OTHER_COSTS, quote=QUOTE)[0]
    longer = bill(run_of(hours + more), PRICE, other_costs=OTHER_COSTS, quote=QUOTE)[0]

    assert less.mid <= longer.mid * ROUNDING
