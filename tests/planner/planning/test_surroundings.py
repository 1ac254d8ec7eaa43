"""What is taken for granted around the GPUs: watts beside them, the building, the grid."""

from dataclasses import replace

import pytest

from planner.costs.prices import OtherCosts
from planner.planning.surroundings import surrounding_assumptions
from planner.question.asked import InputValue
from reports.text.messages import word
from tests.planner.build import make_question
from tests.planner.planning.test_basis import cases

DEFAULT, GIVEN = InputValue(value=1.0, source="default"), InputValue(value=1.0, source="flag")


def assumed(**inputs: InputValue) -> dict[str, tuple[str, str | None]]:
    inputs = make_question(params="8B").inputs | inputs
    return {
        assumption.id: (word(assumption.message), assumption.input)
        for assumption in surrounding_assumptions(cases(params="8B"), inputs)
    }


def test_a_building_and_a_grid_that_nobody_named_are_assumed_with_their_figures():
    assumptions = assumed(pue=DEFAULT, grid=DEFAULT)

    assert assumptions["pue"][0].startswith("The building uses 1.25 times (1.1 to 1.5) the energy of the machines")
    assert "g CO₂e per kWh, the US average" in assumptions["grid"][0]
    assert (assumptions["pue"][1], assumptions["grid"][1]) == ("pue", "grid")


@pytest.mark.parametrize(
    ("costs", "told"),
    [
        (OtherCosts(experiments_ratio=0.5, failed_ratio=0.07), {"beside_work": "would add 57% to each"}),
        (
            OtherCosts(hosts=8.0, usd_per_host_h=1.5),
            {"beside_hosts": "The CPU machines in the bill (8) are in neither"},
        ),
        (OtherCosts(storage_usd_per_gb_month=0.02), {}),
    ],
)
def test_work_that_is_billed_but_not_in_energy_and_carbon_is_told(costs, told):
    billed = tuple(replace(case, ledger=replace(case.ledger, other_costs=costs)) for case in cases(params="8B"))
    texts = {row.id: word(row.message) for row in surrounding_assumptions(billed, make_question(params="8B").inputs)}

    assert {name for name in texts if name.startswith("beside")} == set(told)
    assert all(text in texts[name] for name, text in told.items())


def test_those_that_were_given_are_not():
    assert set(assumed(pue=GIVEN, grid=GIVEN)) == {"host_share"}
