"""The machines of a published run, and where its energy was metered."""

import pytest

from planner.rates.parameters import shipped_parameters
from planner.validation.defaults import Filled
from planner.validation.machine import cluster_of, note_meter, pue_of, scope_of
from planner.validation.model import CannotPredictError
from planner.validation.runs import PublishedRun


def run(**more: object) -> PublishedRun:
    return PublishedRun(**({"id": "x", "metric": "energy_mwh", "gpu": "b200-sxm-180gb"} | more))  # type: ignore[arg-type]


def filled_of(published: PublishedRun) -> list[str]:
    filled = Filled()
    note_meter(published, filled)
    return [default.text for default in filled]


def test_a_limit_that_leaves_nothing_to_train_with_is_refused_and_a_higher_one_is_kept():
    kept = cluster_of(run(power_limit_w=600.0), Filled(), shipped_parameters())

    assert kept.power_limit_w == 600.0
    with pytest.raises(CannotPredictError, match=r"50 is below the 18\d W that NVIDIA B200"):
        cluster_of(run(power_limit_w=50.0), Filled(), shipped_parameters())


@pytest.mark.parametrize(
    ("cells", "scope", "pue", "noted"),
    [
        ({}, "facility", 1.25, ["energy_scope: facility", "pue: 1.25"]),
        ({"energy_scope": "facility"}, "facility", 1.25, ["pue: 1.25"]),
        ({"energy_scope": "facility", "pue": 1.1}, "facility", 1.1, []),
        ({"energy_scope": "gpu"}, "gpu", 1.0, []),
        ({"energy_scope": "rated", "pue": 1.2}, "rated", 1.2, []),
        ({"metric": "gpu_hours"}, "facility", 1.25, []),  # of which no equation reads the meter
    ],
)
def test_energy_of_which_a_row_says_no_more_is_metered_at_the_building(cells, scope, pue, noted):
    published = run(**cells)

    assert (scope_of(published), pue_of(published), filled_of(published)) == (scope, pue, noted)
