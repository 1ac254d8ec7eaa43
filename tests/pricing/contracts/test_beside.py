"""beside.toml: only what is stated is charged."""

from __future__ import annotations

import pytest

from planner.costs.prices import OtherCosts
from planner.errors import InputFileError
from pricing.contracts.beside import read_beside


@pytest.fixture
def beside(tmp_path):
    def read(text):
        path = tmp_path / "beside.toml"
        path.write_text(text, encoding="utf-8")
        return read_beside(path)

    return read


def test_an_empty_file_charges_nothing(beside):
    assert beside("") == OtherCosts()


def test_a_full_file_is_read(beside):
    costs = beside(
        "[storage]\nusd_per_gb_month = 0.023\ncheckpoints_kept = 5\ndata = '40TB'\nmonths_after = 12\n"
        "[egress]\nusd_per_gb = 0.09\ndata = '500GiB'\n[network]\nratio = 0.05\n"
        "[hosts]\ncount = 8\nusd_per_h = 1.5\n[experiments]\nratio = 1.2\n[failed]\nratio = 0.07\n"
    )

    assert costs.data.gb == pytest.approx(40_000)
    assert costs.egress.gb == pytest.approx(536.870912)
    assert (costs.hosts, costs.usd_per_host_h, costs.experiments_ratio) == (8, 1.5, 1.2)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[hosts]\ncount = 8\n", "hosts.usd_per_h: expected a value, since hosts.count is stated"),
        ("[egress]\nusd_per_gb = 0.09\n", "egress.data: expected a value"),
        ("[storage]\ncheckpoints_kept = 3\n", "storage.usd_per_gb_month: expected a price"),
        ("[storage]\nmonths_after = 12\n", "storage.usd_per_gb_month: expected a price, since storage.months_after"),
        ("[storage]\nusd_per_gb_month = 0.02\n", "storage.data: expected a size, or storage.checkpoints_kept, since"),
        ("[failed]\nratio = -1\n", "failed.ratio: expected a number from 0 to 10"),
        ("[eggress]\nusd_per_gb = 1\n", "eggress.usd_per_gb: unknown key"),
    ],
)
def test_half_a_line_and_wrong_keys_are_named(beside, text, problem):
    with pytest.raises(InputFileError) as caught:
        beside(text)

    assert problem in caught.value.message


def test_a_size_needs_a_unit(beside):
    with pytest.raises(InputFileError, match=r"storage\.data: expected a number with a unit, found `40`"):
        beside("[storage]\nusd_per_gb_month = 0.02\ndata = 40\n")


def test_a_size_with_a_decimal_comma_is_no_larger_size(beside):
    with pytest.raises(InputFileError, match=r"storage\.data: expected a number with a unit, found `1,5TB`") as caught:
        beside("[storage]\nusd_per_gb_month = 0.02\ndata = '1,5TB'\n")

    assert caught.value.hint == "write 1.5TB"
