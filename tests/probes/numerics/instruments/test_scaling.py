"""Loss scaling where the answer is known: a gradient of 1 overflows FP16 at 2^16, above 65,504, and not below."""

from __future__ import annotations

import math
import time

import pytest

torch = pytest.importorskip("torch")

from probes.numerics.instruments.scaling import (  # noqa: E402 - it needs torch
    POWERS,
    StaticScaler,
    dynamic_scale,
    known_limit,
    loss_scaling,
    next_power,
    poisson_tail,
    static_scale,
    summarised,
    trains,
)
from probes.numerics.instruments.time import TimeBudget  # noqa: E402
from probes.numerics.lowering.recipes import lower_by_id  # noqa: E402
from probes.numerics.tasks.interface import Job, Task  # noqa: E402
from probes.numerics.training import Run, ScaleStep  # noqa: E402
from tests.probes.numerics.planted import PLACE, ample, keep_nothing, task_of  # noqa: E402


@pytest.mark.parametrize(("gradient", "limit"), [(1.0, 15), (256.0, 7), (2.0**-8, 23)])
def test_a_known_gradient_overflows_at_the_scale_that_it_must(gradient, limit):
    run = Run(task_of(gradient), 0, PLACE)
    start = run.state()

    rows = {power: static_scale(run, start, power, lower_by_id("fp16")) for power in (8, limit, limit + 1)}

    assert not rows[limit].overflows
    assert rows[limit + 1].overflows
    assert rows[limit + 1].skipped == rows[limit + 1].steps
    assert rows[limit + 1].loss is None
    assert rows[8].overflows == (limit < 8)


def test_the_whole_instrument_finds_the_limit_and_names_nothing_cut():
    answer = loss_scaling(task_of(1.0), PLACE, ample(), keep_nothing)

    assert (answer["largest_without_overflow_log2"], answer["smallest_with_overflow_log2"]) == (15, 16)
    assert [row["scale_log2"] for row in answer["static"]] == list(POWERS)
    assert (answer["mode"], answer["cut_short"]) == ("real", [])
    default_run = answer["dynamic"][0]
    assert default_run["skipped"] == 1  # 2^16 to 2^15
    assert default_run["overflow_steps"] == (0,)
    assert default_run["path"] == ((0, 16.0), (1, 15.0))
    assert default_run["steady_skipped_step_ratio"] == pytest.approx(1 / 2001)
    assert default_run["steady_basis"] == "arithmetic"
    assert answer["trains"] is True
    assert (answer["warm_steps"] > 0, answer["largest_without_overflow_warm_log2"]) == (True, 15)


def test_a_model_whose_inputs_fp16_cannot_hold_is_said_not_to_train():
    def make(_seed: int, _size: str, _device: object) -> Job:
        model = torch.nn.Linear(4, 1)
        return Job(
            model=model, batch=lambda _step: torch.full((8, 4), 1e5),  # FP16 ends at 65,504
            loss=lambda network, x: network(x).float().square().mean(),
            optimizer=lambda parameters: torch.optim.SGD(parameters, lr=1e-12),
        )  # fmt: skip

    task = Task(id="huge", what="huge inputs", metrics=("loss",), make=make, steps={"small": 50})

    answer = loss_scaling(task, PLACE, ample(), keep_nothing)

    default_run = answer["dynamic"][0]
    assert answer["trains"] is False
    assert answer["largest_without_overflow_log2"] is None
    assert default_run["skipped"] == default_run["steps"] > 0
    assert (default_run["steady_skipped_step_ratio"], default_run["steady_basis"]) == (None, None)


def test_dynamic_scaling_backs_off_grows_and_is_cut_back_again():
    dynamic = dynamic_scale(Run(task_of(1.0), 0, PLACE), "short", 100, ample())

    # from 2^24 nine steps down to 2^15, then up after ten steps, back at once, and so on
    assert dynamic.growth_interval == 10
    assert dynamic.overflow_steps[:9] == tuple(range(9))
    assert dynamic.path[9] == (9, 15.0)
    assert dynamic.path[10:12] == ((19, 16.0), (20, 15.0))
    assert dynamic.settled_skipped_step_ratio == pytest.approx(dynamic.steady_skipped_step_ratio, abs=0.02)  # 1 in 11


def test_without_time_everything_is_named_as_cut_short():
    answer = loss_scaling(task_of(1.0), PLACE, TimeBudget(end_s=time.monotonic() - 1.0), keep_nothing)

    assert answer["static"] == []
    assert "41 of 41 static scales missing" in answer["cut_short"]
    assert "the largest scale after some training was not looked for" in answer["cut_short"]
    assert any(text.startswith("dynamic scaling (usual): ") for text in answer["cut_short"])
    assert answer["largest_without_overflow_log2"] is None


def test_where_autocast_reaches_nothing_no_scale_is_tried():
    def make(_seed: int, _size: str, _device: object) -> Job:
        def loss(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu", enabled=False):
                return model(x).square().mean()

        return Job(
            model=torch.nn.Linear(4, 1), batch=lambda _step: torch.ones(2, 4), loss=loss,
            optimizer=lambda p: torch.optim.SGD(p, lr=0.1),
        )  # fmt: skip

    task = Task(id="off", what="off", metrics=("loss",), make=make, steps={"small": 9, "large": 9})
    answer = loss_scaling(task, PLACE, ample(), keep_nothing)

    assert "no matrix product ran in float16" in answer["why_not_applied"]
    assert (answer["static"], answer["dynamic"], answer["largest_without_overflow_log2"]) == ([], [], None)
    assert (answer["trains"], answer["cut_short"]) == (None, [])


def test_a_single_overflow_at_a_high_scale_does_not_show_that_a_model_cannot_be_trained():
    high = {"steps": 1, "skipped": 1, "path": [[0, 16.0]]}
    lowest = {"steps": 2, "skipped": 2, "scale_log2": 0}

    assert trains([], [high]) is None
    assert trains([lowest], [high]) is False
    assert trains([], [high | {"steps": 40, "skipped": 40, "path": [[0, 16.0], [39, -23.0]]}]) is False
    assert trains([lowest], [high | {"steps": 2}]) is True
    assert trains([], []) is None


def test_the_largest_scale_that_was_tried_is_no_limit_until_the_next_one_overflows():
    at_first = {"largest_without_overflow_log2": 16, "smallest_with_overflow_log2": 17}

    assert known_limit(at_first | {"largest_without_overflow_warm_log2": 18}) == 16
    assert known_limit(at_first | {"largest_without_overflow_warm_log2": 14}) == 14
    assert known_limit(at_first | {"smallest_with_overflow_log2": 40}) is None
    assert known_limit({}) is None


def test_scales_are_tried_from_the_ends_to_where_overflow_begins_and_then_everywhere():
    tried: dict[int, bool] = {}
    order = []
    while (power := next_power(tried)) is not None:
        order.append(power)
        tried[power] = power > 16

    assert order[:2] == [0, 40]
    assert {16, 17} <= set(order[:8])
    assert sorted(order) == list(POWERS)


def test_a_static_scale_stays_whatever_happens():
    run = Run(task_of(1.0), 0, PLACE)
    run.lower(lower_by_id("fp16"))
    run.scaler = StaticScaler("cpu", 2.0**20)
    for _ in range(3):
        run.one_step()

    assert run.scaler.get_scale() == 2.0**20


def test_a_model_that_gives_nan_alone_skips_every_step_and_halves_the_scale_to_nothing():
    steps = [ScaleStep(scale=2.0 ** (16 - step) if step < 160 else 0.0, skipped=True) for step in range(170)]

    dynamic = summarised("usual", steps, 2000, complete=True)

    assert dynamic.skipped_step_ratio == 1.0
    assert dynamic.settled_skipped_step_ratio is None
    assert (dynamic.steady_skipped_step_ratio, dynamic.steady_basis) == (None, None)
    assert dynamic.path[-1] == (160, -149.0)


def test_skips_before_the_first_step_do_not_count_as_settled():
    steps = [ScaleStep(scale=2.0**power, skipped=power > 14) for power in (16, 15, 14, 14, 14, 15, 14, 14)]

    dynamic = summarised("usual", steps, 2000, complete=True)

    assert dynamic.skipped_step_ratio == 3 / 8
    assert dynamic.settled_skipped_step_ratio == 1 / 6
    assert dynamic.path == ((0, 16.0), (1, 15.0), (2, 14.0), (5, 15.0), (6, 14.0))


@pytest.mark.parametrize(
    ("lost", "ratio", "basis"),
    [((), 1 / 2001, "arithmetic"), ((5, 90, 180), 1 / 2001, "arithmetic"), ((350,), 1 / 2001, "arithmetic"),
     ((210, 260, 300, 390), 4 / 200, "measured")],
)  # fmt: skip
def test_a_steady_share_is_measured_where_the_second_half_skips_clearly_more_than_arithmetic_says(lost, ratio, basis):
    steps = [ScaleStep(scale=1024.0, skipped=number in lost) for number in range(400)]

    dynamic = summarised("usual", steps, 2000, complete=True)

    # 200 steps at 1 in 2,001: 0.1 skips expected; one happens in 9.5 % of such runs, four in 4 of a million
    assert (dynamic.steady_skipped_step_ratio, dynamic.steady_basis) == (pytest.approx(ratio), basis)


def test_the_poisson_tail_is_that_of_the_table():
    assert poisson_tail(0, 0.1) == 1.0
    assert poisson_tail(1, 0.1) == pytest.approx(1.0 - math.exp(-0.1))
    assert poisson_tail(3, 2.0) == pytest.approx(0.3233, abs=1e-4)  # Abramowitz and Stegun, table 26.7
