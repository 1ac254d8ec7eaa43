"""The hierarchical model on invented teams: what all share, what each has of its own, and what a new one would draw."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from planner.calibration.design import Design, model_ids
from planner.calibration.hierarchy import Hierarchy, in_coordinate, robust_weight
from planner.calibration.linear import linearize
from planner.calibration.spreads import deviation_groups, joint_ids, spread, with_spreads
from planner.evidence import EvidenceKind
from planner.rates.parameters import Parameter, Parameters, shipped_parameters
from tests.planner.calibration.own_runs import observation, team


def before_any_fit() -> Parameters:
    shipped = shipped_parameters()
    return replace(shipped.replaced(row.before_fit for row in shipped.rows.values()), joint=None)


def hierarchy(rows, **spreads: float) -> Hierarchy:
    shipped = with_spreads(replace(shipped_parameters(), joint=None), spreads)
    priors = shipped.replaced(replace(row, prior=None) for row in shipped.rows.values())  # that is where they start
    return Hierarchy(Design(rows, linearize(rows, shipped, model_ids(shipped)), shipped), shipped, priors)


def of(name: str, factor: float, count: int = 3):
    return [
        observation(
            factor,
            lineage=name,
            id=f"{name}-{number}",
            n_gpus=str(8 * 2**number),
            global_batch_seqs=str(64 * 2**number),
        )
        for number in range(count)
    ]


def parameter(value: float, low: float, high: float) -> Parameter:
    return Parameter(
        id="x", value=value, low=low, high=high, unit="ratio", meaning="", kind=EvidenceKind.ASSUMED, source="",
        date="2026-11-21",
    )  # fmt: skip


def test_the_joint_rows_are_the_fitted_ones_and_the_precisions():
    ids = joint_ids(shipped_parameters())

    assert "product_rate_ratio" in ids
    assert "precision_error_ratio.fp8" in ids
    assert "model_error_ratio" not in ids  # of single rows
    assert len(ids) == len(set(ids))


def test_a_lineage_moves_the_rows_of_a_family_together_and_precisions_apart():
    groups = deviation_groups(shipped_parameters())

    assert set(groups["fusion_ratio.tuned"]) == {
        f"fusion_ratio.{stack}" for stack in ("tuned", "classic", "fsdp-compile", "eager")
    }
    assert groups["precision_error_ratio.fp8"] == ["precision_error_ratio.fp8"]


def test_a_spread_is_replaced_where_it_stands():
    changed = with_spreads(shipped_parameters(), {"fusion_ratio.tuned": 0.2, "model_error_ratio": 0.15})

    assert changed.rows["fusion_ratio.tuned"].lineage_sd == 0.2
    assert changed.rows["fusion_ratio.tuned"].high == shipped_parameters().rows["fusion_ratio.tuned"].high
    assert changed.rows["model_error_ratio"].high == pytest.approx(math.exp(1.64485363 * 0.15))
    assert spread(changed, "model_error_ratio") == pytest.approx(0.15)


def test_a_prior_is_seen_from_where_the_value_stands_now():
    centre, sd = in_coordinate(parameter(2.0, 1.0, 4.0), 1.0, share=False)

    assert centre == pytest.approx(math.log(2.0))
    assert sd == pytest.approx(math.log(4.0) / (2 * 1.64485363))
    # odds of 0.8 are 4, of 0.5 are 1: the way between them, in the coordinate of 0.5 whose slope is 1 - 0.5
    assert in_coordinate(parameter(0.8, 0.7, 0.9), 0.5, share=True)[0] == pytest.approx(math.log(4.0) * 0.5)


def test_rows_far_off_count_less():
    weight = robust_weight(np.array([0.0, 0.1, 1.0]), np.full(3, 0.1))

    # (5 + 1) / (5 + z^2) at z = 0, 1 and 10
    assert weight.tolist() == pytest.approx([1.2, 1.0, 6.0 / 105.0])


def test_teams_that_are_all_slower_move_the_population():
    rows = [row for name in "abcdef" for row in of(name, 0.8)]

    model = hierarchy(rows)
    population = model.population()

    speed = model.design.slopes @ population.shift
    assert speed.mean() < -0.05  # predictions of speed fall


def test_one_team_that_is_slower_moves_the_population_less_than_six():
    lone = hierarchy([row for name in "abcdef" for row in of(name, 0.8 if name == "a" else 1.0)])
    all_of_them = hierarchy([row for name in "abcdef" for row in of(name, 0.8)])

    moves = [-(model.design.slopes @ model.population().shift).mean() for model in (lone, all_of_them)]

    assert 0.0 < moves[0] < 0.4 * moves[1]


def test_a_large_table_does_not_outvote_small_ones_in_proportion_to_its_rows():
    small = of("small", 1.0, count=3)
    table = [
        observation(0.8, lineage="table", id=f"t{n}", n_gpus="8", global_batch_seqs=str(8 * (n + 1))) for n in range(24)
    ]

    model = hierarchy(small + table)

    weights = {name: model.design.weight[rows].sum() for name, rows in model.design.lineages.items()}
    # n to the power 0.6: 24^0.6 = 6.73 and 3^0.6 = 1.93
    assert weights["table"] == pytest.approx(24**0.6)
    assert weights["small"] == pytest.approx(3**0.6)


def test_repeats_of_a_configuration_weigh_as_one_row():
    rows = [observation(1.0, lineage="a", id=f"r{n}", series="s") for n in range(4)]

    assert hierarchy(rows).design.weight.sum() == pytest.approx(1.0)


def test_leaving_a_lineage_out_is_as_if_it_had_never_been_there():
    mine, others = of("mine", 0.6), [row for name in "abc" for row in of(name, 1.0)]

    left_out = hierarchy(mine + others).population(without="mine")
    without = hierarchy(others).population()

    assert left_out.shift == pytest.approx(without.shift)
    assert left_out.covariance == pytest.approx(without.covariance)


def test_a_new_lineage_is_less_certain_than_the_population():
    model = hierarchy([row for name in "abc" for row in of(name, 1.0)])
    population = model.population()

    added = model.of_new_lineage(population) - population.covariance

    variance = [spread(model.parameters, holder) ** 2 for holder in model.design.groups]
    assert np.diag(added) == pytest.approx(model.design.moved_together**2 @ variance)
    assert np.linalg.eigvalsh(model.of_new_lineage(population)).min() > 0


def test_rows_of_one_lineage_share_their_error_and_of_one_gpu_more_of_it():
    first = observation(lineage="a", id="1")
    twin = observation(lineage="a", id="2", n_gpus="16", global_batch_seqs="128")
    elsewhere = observation(lineage="a", id="3", gpu="a100-sxm4-80gb")
    model = hierarchy([first, twin, elsewhere])

    _, shared = model.expected(np.arange(3), model.population())

    assert shared[0, 1] > shared[0, 2] > 0.0


def test_a_default_that_decides_widens_what_is_left_out_of_the_row():
    stated = observation(id="stated")
    unstated = observation(id="unstated", act_ckpt="", attention="")
    model = hierarchy([stated, unstated])

    more = model.own_sd[1] ** 2 - model.own_sd[0] ** 2

    assert more == pytest.approx(2 * spread(shipped_parameters(), "default_error_ratio") ** 2, rel=1e-6)


def test_names_of_lineages_decide_nothing():
    rows = of("a", 0.9) + of("b", 1.1)
    renamed = [replace(row, lineage={"a": "zeta", "b": "alpha"}[row.lineage]) for row in rows]

    assert hierarchy(rows).population().shift == pytest.approx(hierarchy(renamed).population().shift)


def test_a_team_helper_makes_runs_a_known_factor_away():
    assert [round(float(x), 6) for x in np.exp(-hierarchy(team([0.5, 2.0])).design.residual)] == [0.5, 2.0]
