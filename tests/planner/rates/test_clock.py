import pytest

from planner.hardware.catalogue import find_gpu
from planner.rates.clock import idle_w, least_limit_w


@pytest.mark.parametrize(
    ("gpu", "least_w"),
    [
        ("h100-sxm5-80gb", 200),  # gpus.csv, power_limit_min_w
        ("b200-sxm-180gb", 180),  # 13 % of 1000 W idle, and a twentieth to work with
        ("l40s", 63),  # of 350 W
    ],
)
def test_the_least_limit_is_the_driver_s_or_what_leaves_a_board_something_to_work_with(gpu, least_w):
    assert least_limit_w(find_gpu(gpu)) == pytest.approx(least_w, abs=2)  # the idle share is fitted
    assert least_limit_w(find_gpu(gpu)) % 1 == 0


def test_no_least_limit_lies_below_what_a_board_draws_idle():
    assert idle_w(find_gpu("b200-sxm-180gb")) == pytest.approx(130, abs=3)
