"""What is taken for granted around the GPUs: watts beside them, the building, the grid."""

from planner.planning.around import around
from planner.question.asked import InputValue
from reports.text.messages import word
from tests.planner.planning.test_basis import cases, question

DEFAULT, GIVEN = InputValue(value=1.0, source="default"), InputValue(value=1.0, source="flag")


def said(**inputs: InputValue) -> dict[str, tuple[str, str | None]]:
    inputs = question(params="8B").inputs | inputs
    return {one.id: (word(one.message), one.input) for one in around(cases(params="8B"), inputs)}


def test_a_building_and_a_grid_that_nobody_named_are_assumed_with_their_figures():
    found = said(pue=DEFAULT, grid=DEFAULT)

    assert found["pue"][0].startswith("The building takes 1.25 times (1.1 to 1.5) the energy of the machines")
    assert "g CO₂e per kWh, the US average" in found["grid"][0]
    assert (found["pue"][1], found["grid"][1]) == ("pue", "grid")


def test_those_that_were_given_are_not():
    assert set(said(pue=GIVEN, grid=GIVEN)) == {"host_share"}
