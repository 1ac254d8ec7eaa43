"""Numbers as frameworks write them."""

from __future__ import annotations

import pytest

from planner.runlog.events import DamagedError
from planner.runlog.formats.base import amount, human_amount, mfu_of, optional, piped, rates_of


@pytest.mark.parametrize(("text", "value"), [("32.75%", 0.3275), ("32.75", 0.3275), ("0.3275", 0.3275), ("N/A", None)])
def test_an_mfu_is_a_ratio_in_percent_or_not(text, value):
    assert mfu_of(text) == (None if value is None else pytest.approx(value))


def test_suffixes_are_powers_of_a_thousand():
    assert [human_amount("x", text) for text in ("4.71K", "2M", "1B", "512")] == pytest.approx([4710, 2e6, 1e9, 512])


@pytest.mark.parametrize("text", ["nan", "-1", "0", "", "1e400", "²", "K"])
def test_what_is_no_number_above_zero_is_damaged(text):
    with pytest.raises(DamagedError):
        human_amount("x", text)
    with pytest.raises(DamagedError):
        amount("x", text)
    assert optional(text) is None


def test_thousands_have_commas_where_they_are_only_shown():
    assert optional("5,593") == 5593
    assert optional("5,5") is None


def test_pairs_stand_between_bars_and_rates_have_many_names():
    pairs = piped("lr: 1e-4 | TFLOPS_per_GPU: 401.2 | global batch size:   128 | mfu: 0.41")

    assert pairs["global batch size"] == "128"
    assert rates_of(pairs) == {"tflops_per_gpu": 401.2, "mfu_ratio": 0.41, "tokens_per_s_per_gpu": None}
    assert rates_of({"throughput(tps)": "7000", "mfu(%)": "41"})["mfu_ratio"] == pytest.approx(0.41)


def test_an_mfu_whose_name_says_percent_is_one_below_1_percent_too():
    assert rates_of({"mfu(%)": "0.95"})["mfu_ratio"] == pytest.approx(0.0095)
    assert rates_of({"mfu_percent": "1.2"})["mfu_ratio"] == pytest.approx(0.012)
