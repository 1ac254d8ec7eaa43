"""The parameters: plausible, sourced, found by the most specific name."""

from __future__ import annotations

import ast
import math
import re
from dataclasses import replace
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import pytest

from planner.answer.plan import MEMORY_ITEMS, STEP_ITEMS
from planner.calibration.spreads import deviation_groups
from planner.errors import InputFileError
from planner.evidence import Z90
from planner.measured.device import MeasuredRates
from planner.rates.conditions import CONDITIONS
from planner.rates.ladder import QUALIFIERS, TERM_BUILDERS
from planner.rates.parameters import Figure, Joint, read_joint, read_parameters, shipped_parameters
from planner.rows import CATALOG

RECORD_RATES = set(MeasuredRates.__dataclass_fields__)
"""Of a measurement record: `planner/measured` calls those `rates` too."""
SHIPPED = shipped_parameters()
ROWS = tuple(SHIPPED.rows.values())
FAMILIES = tuple(SHIPPED.families.values())


def test_every_parameter_lies_in_its_range_and_says_where_it_comes_from():
    for row in ROWS:
        assert row.low <= row.value <= row.high, row.id
        assert len(row.source) > 5, row.id
        assert len(row.meaning) > 5, row.id
        assert re.fullmatch(r"20\d\d(-\d\d-\d\d)?", row.date), row.id


def test_no_ratio_hides_a_slip_of_units():
    for row in (row for row in ROWS if row.unit == "ratio"):
        assert 0 <= row.value <= 3, row.id
        # Winograd's transforms save products: only convolutions can beat the rate of matrix products
        if re.search("efficiency|bandwidth|overlap|power_", row.id) and not row.id.startswith("conv_"):
            assert row.value <= 1, row.id


def test_an_id_that_stands_twice_is_an_error_with_its_line(tmp_path):
    lines = (CATALOG / "parameters.csv").read_text(encoding="utf-8").splitlines()
    twice = tmp_path / "twice.csv"
    twice.write_text("\n".join([*lines[:3], lines[1]]), encoding="utf-8")

    with pytest.raises(InputFileError, match=re.escape("twice.csv:4: id: expected an id that no other line has")):
        read_parameters(twice)


def test_a_family_declares_only_words_that_the_ladder_knows():
    for family in FAMILIES:
        assert set(family.by) <= {*QUALIFIERS, "arch"}, family.name
        assert family.limit in TERM_BUILDERS, family.name
        assert family.when in CONDITIONS, family.name
        assert family.label, family.name


def test_every_term_says_which_figures_and_items_rest_on_it():
    items = {
        "step_s": STEP_ITEMS, "memory_gib": MEMORY_ITEMS, "energy_items_mwh": ("gpu", "host", "network"),
    }  # fmt: skip

    for family in (family for family in FAMILIES if family.terms):
        assert family.used_in, family.name
        for name in family.used_in:
            figure, _, item = name.partition(".")
            assert not item or item in items[figure], family.name


@pytest.mark.parametrize(
    ("family", "figure"),
    [
        ("fusion_ratio", Figure.TIME),
        ("power_wait", Figure.POWER),
        ("context_gib", Figure.MEMORY),
        ("standstill_ratio", Figure.RUN),
        ("moe_progress", None),  # it enters other terms
    ],
)
def test_a_family_is_about_the_figure_that_its_row_names(family, figure):
    assert SHIPPED.families[family].figure is figure


def test_what_a_team_has_of_its_own_is_about_a_figure():
    assert {SHIPPED.families[SHIPPED.rows[name].family].figure for name in deviation_groups(SHIPPED)} == set(Figure)


def test_the_overlaps_of_communication_are_told_of_as_what_is_hidden():
    assert {family.name for family in FAMILIES if family.told_as == "hidden"} == {
        f"overlap_{axis}_ratio" for axis in ("dp", "tp", "cp", "pp", "ep")
    }


OF_RATES = {
    "terms", "parameters", "sample", "moved", "replaced", "repeated", "drawn", "centre", "surface", "power",
    "without_surfaces",
}  # fmt: skip
"""What `Rates` and `RateSet` have beside terms."""


def test_the_equations_read_the_terms_that_the_file_declares_and_no_others():
    declared = {term for family in FAMILIES for term in family.terms}
    read = set()
    for path in sorted((CATALOG.parent).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("rates", "case.mid", "known.rates"):
                read.add(node.attr)

    assert read - OF_RATES - declared - RECORD_RATES == set()
    assert declared - read == set()


def test_no_family_of_the_file_is_split_by_another():
    order = [row.family for row in ROWS]

    assert len([1 for before, after in pairwise(order) if before != after]) + 1 == len(FAMILIES)


def test_a_fitted_row_shows_its_prior_and_the_runs_that_moved_it():
    row = SHIPPED.rows["nic_latency_s"]

    assert row.before_fit.value == 3.0e-5  # interconnect.csv: 65 to 75 us on 2x p5 for an all-reduce of two phases
    assert row.before_fit.fitted_rows is None
    assert row.origin.startswith(f"fitted to {row.fitted_rows:,} runs; prior: ")


def test_replacing_and_leaving_out_rows_makes_another_set():
    changed = SHIPPED.replaced([replace(SHIPPED.rows["jitter_ratio"], value=0.5)])

    assert changed.find("jitter_ratio").value == 0.5
    assert SHIPPED.find("jitter_ratio").value < 0.1
    assert "jitter_ratio" not in SHIPPED.without(["jitter_ratio"]).rows


def test_the_range_of_90_percent_gives_the_spread_of_the_logarithm():
    row = SHIPPED.find("hop_latency_s")

    assert math.exp(2 * Z90 * row.log_sd) == pytest.approx(row.high / row.low)
    assert NormalDist().inv_cdf(0.95) == pytest.approx(Z90, rel=1e-12)


def test_where_the_low_end_is_nothing_the_upper_half_gives_the_spread():
    row = SHIPPED.find("evaluation_ratio")

    assert row.low == 0
    assert row.value * math.exp(Z90 * row.log_sd) == pytest.approx(row.high)


def test_the_most_specific_row_is_found():
    assert SHIPPED.find("matmul_efficiency", "fp8", "CDNA3").id == "matmul_efficiency.fp8.CDNA3"
    assert SHIPPED.find("matmul_efficiency", "fp32", "CDNA").id.startswith("matmul_efficiency.")
    assert SHIPPED.find("fusion_ratio", "eager").id == "fusion_ratio.eager"
    assert SHIPPED.find("kernel_s", "no such qualifier").id == "kernel_s"


def test_a_missing_row_is_named():
    with pytest.raises(KeyError, match="no_such_parameter"):
        SHIPPED.find("no_such_parameter", "Hopper")


def test_the_joint_distribution_of_the_fit_names_rows_of_the_file_once_and_agrees_with_their_ranges():
    joint = SHIPPED.joint
    assert joint is not None

    assert set(joint.ids) <= set(SHIPPED.rows)
    assert len(set(joint.ids)) == len(joint.ids)
    spreads = dict(zip(joint.ids, np.sqrt(np.diag(joint.covariance)), strict=True))
    # the range of a share bends with it; all other ranges say the same as the joint distribution
    straight = [
        SHIPPED.rows[name] for name in joint.ids if SHIPPED.families[SHIPPED.rows[name].family].bound != "share"
    ]
    assert len(straight) > 40
    assert {row.id: row.log_sd for row in straight} == pytest.approx(
        {row.id: spreads[row.id] for row in straight}, rel=0.02
    )
    assert all(np.triu(joint.factor, 1).ravel() == 0)


def test_a_joint_distribution_is_read_line_by_line_from_its_lower_triangle(tmp_path):
    path = tmp_path / "posterior.csv"
    path.write_text("id,factor\nnear,0.2\nfar,0.15 0.26\n", encoding="utf-8")
    joint = read_joint(path)

    assert joint.ids == ("near", "far")
    assert joint.factor.tolist() == [[0.2, 0.0], [0.15, 0.26]]
    # 0.2^2, 0.2 x 0.15 and 0.15^2 + 0.26^2
    assert joint.covariance == pytest.approx(np.array([[0.04, 0.03], [0.03, 0.0901]]))


@pytest.mark.parametrize("factor", ["0.15", "0.15 0.26 0.1", "0.15 wide", ""])
def test_a_line_of_a_joint_distribution_of_another_length_is_refused_by_its_line(tmp_path, factor):
    path = tmp_path / "posterior.csv"
    path.write_text(f"id,factor\nnear,0.2\nfar,{factor}\n", encoding="utf-8")

    with pytest.raises(InputFileError, match=r"posterior.csv:3: factor"):
        read_joint(path)


def test_sets_of_rows_keep_their_joint_distribution_when_rows_are_replaced():
    joint = Joint(ids=("jitter_ratio",), factor=np.array([[0.1]]))
    known = replace(SHIPPED, joint=joint)

    assert known.replaced([replace(SHIPPED.rows["jitter_ratio"], value=0.5)]).joint is joint


def test_a_family_says_how_one_lineage_differs_and_to_what_it_is_fitted_in_known_words():
    for family in FAMILIES:
        assert family.deviates in ("", "together", "apart"), family.name
        assert family.fitted_to in (None, *Figure), family.name
        rows = [row for row in ROWS if row.family == family.name]
        assert all(row.lineage_sd is None or row.lineage_sd >= 0 for row in rows), family.name
        # a spread between lineages stands only where lineages differ
        assert family.deviates or all(row.lineage_sd is None for row in rows), family.name
