"""One arithmetic: it agrees with the plain one, in any chunk, and money follows time."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.evidence import middle
from planner.parallelism.layout import Layouts
from planner.parallelism.search import FixedLayout, enumerate_layouts
from planner.performance import evaluation
from planner.performance.evaluation import UnitPrices, evaluate, flop_of, memory_of, score, step_of
from planner.performance.memory import memory_items
from planner.performance.operations import model_flop_per_token, recomputed_flop_per_token
from planner.performance.step import StepTimes, step_times
from planner.rates.ladder import resolve_rates
from planner.rates.terms import Draws
from tests.examples import examples
from tests.planner.brute_force import OneLayout
from tests.planner.build import ROUNDING, cluster, layout, layouts, mid_rates, recipe, settings_of_recipes, shape

PRICES = UnitPrices(usd_per_gpu_h=2.5, usd_per_kwh=0.08, pue=1.25, kg_co2e_per_kwh=0.37)


def number(value) -> float:
    return float(np.ravel(value)[0])


def items(parts) -> dict[str, float]:
    return {f.name: number(getattr(parts, f.name)) for f in fields(parts)}


def close(values: dict[str, float]):
    return pytest.approx(values, rel=1e-9, abs=1e-12)


LEFT_OUT = (
    "model_error_ratio", "stack_error_ratio", "gpu_error_ratio", "shape_error_ratio", "precision_error_ratio",
    "memory_error_ratio", "memory_stack_error_ratio", "memory_architecture_error_ratio", "memory_shape_error_ratio",
    "power_error_ratio", "power_stack_error_ratio", "run_error_ratio",
)  # fmt: skip
"""What the equations leave out: 1 at mid, and therefore each something else where they are held to the plain ones."""


@examples(300)
@given(settings_of_recipes())
def test_time_memory_energy_and_cost_are_those_of_the_plain_arithmetic(setting):
    training, where, machine = setting
    rates = mid_rates(training, machine).replaced(**{name: 1.01 + i / 100 for i, name in enumerate(LEFT_OUT)})
    ours = evaluate(training, machine, Layouts.of(where), rates, PRICES, tokens=1e9)
    plain = OneLayout(training, machine, where, rates)
    figures = {
        "step_s": ours.step_s,
        "wall_s": ours.wall_s,
        "gpu_power_w": ours.gpu_power_w,
        "energy_kwh": ours.energy.total / 3.6e6,
        "cost_usd": ours.cost_usd,
        "carbon_kg": ours.carbon_kg,
    }

    assert items(ours.step) == close(plain.step())
    assert items(ours.memory) == close(plain.memory())
    assert {name: number(value) for name, value in figures.items()} == close(plain.run(PRICES, 1e9))


BIG = recipe("llama-3.1-8b")
MANY = enumerate_layouts(BIG, cluster(), FixedLayout(), gpus_between=(8, 256))


@pytest.mark.parametrize("chunk", [1, 7, 100, 10**9])
def test_the_answer_is_the_same_in_chunks_of_any_size(chunk, monkeypatch):
    at = enumerate_layouts(BIG, cluster(), FixedLayout(tp=8), gpus=64)
    rates = mid_rates(BIG, cluster())
    whole = score(BIG, cluster(), at, rates, PRICES, 1e9)
    monkeypatch.setattr(evaluation, "CHUNK", chunk)
    parts = score(BIG, cluster(), at, rates, PRICES, 1e9)

    assert len(at) > 100
    assert at.ckpt_modes == 5
    for item in fields(whole):
        assert np.array_equal(getattr(parts, item.name), getattr(whole, item.name))


def test_a_layout_s_figures_do_not_depend_on_its_neighbours():
    rates = mid_rates(BIG, cluster())
    together = score(BIG, cluster(), MANY, rates, PRICES, 1e9)
    backwards = score(BIG, cluster(), MANY.take(slice(None, None, -1)), rates, PRICES, 1e9)

    assert np.array_equal(together.step_s, backwards.step_s[::-1])
    assert np.array_equal(together.memory_bytes, backwards.memory_bytes[::-1])
    assert MANY.ckpt_modes == 5  # what checkpointing does not change was worked out once for all of them together


def test_what_does_not_fit_has_no_time_though_another_kind_of_checkpointing_fits():
    rates = mid_rates(BIG, cluster())
    whole = score(BIG, cluster(), MANY, rates, PRICES, 1e9)
    most_bytes = float(np.median(whole.memory_bytes))
    fitting = score(BIG, cluster(), MANY, rates, PRICES, 1e9, most_bytes)

    fits = whole.memory_bytes <= most_bytes
    assert np.array_equal(np.isfinite(fitting.step_s), fits)
    assert np.array_equal(fitting.wall_s[fits], whole.wall_s[fits])
    assert np.array_equal(fitting.memory_bytes, whole.memory_bytes)


def test_no_layouts_give_no_figures():
    nothing = score(BIG, cluster(), MANY.take(slice(0, 0)), mid_rates(BIG, cluster()), PRICES, 1e9)

    assert [len(getattr(nothing, f.name)) for f in fields(nothing)] == [0, 0, 0, 0, 0]


@given(settings_of_recipes(), st.floats(1e6, 1e12), st.floats(1, 10))
def test_more_tokens_never_take_less_time_money_energy_or_carbon(setting, tokens, factor):
    training, where, machine = setting
    rates = mid_rates(training, machine)
    short, long = (evaluate(training, machine, Layouts.of(where), rates, PRICES, t) for t in (tokens, factor * tokens))

    for name in ("wall_s", "gpu_h", "cost_usd", "carbon_kg"):
        assert number(getattr(short, name)) <= number(getattr(long, name)) * ROUNDING
    assert number(short.energy.total) <= number(long.energy.total) * ROUNDING


@given(settings_of_recipes(), st.sampled_from(("usd_per_gpu_h", "usd_per_kwh", "pue")), st.floats(1, 3))
def test_dearer_inputs_never_make_a_run_cheaper(setting, name, factor):
    training, where, machine = setting
    rates = mid_rates(training, machine)
    dearer = replace(PRICES, **{name: factor * getattr(PRICES, name)})
    cheap, dear = (
        number(evaluate(training, machine, Layouts.of(where), rates, p, 1e9).cost_usd) for p in (PRICES, dearer)
    )

    assert cheap <= dear * ROUNDING


def test_gpu_hours_are_gpus_times_wall_hours_and_rental_is_their_price():
    rented = UnitPrices(usd_per_gpu_h=2.0, usd_per_kwh=None, pue=1.2, kg_co2e_per_kwh=0.4)
    evaluated = evaluate(BIG, cluster(), layouts(dp=64, zero=1, grad_accum=4), mid_rates(BIG, cluster()), rented, 1e12)

    hours = number(evaluated.wall_s) / 3600
    assert number(evaluated.gpu_h) == pytest.approx(64 * hours)
    assert number(evaluated.cost_usd) == pytest.approx(64 * hours * 2.0)
    assert number(evaluated.busy_s) / number(evaluated.wall_s) == pytest.approx(number(evaluated.goodput_ratio))
    # tokens per second and GPU are steady state: goodput is not in them
    assert number(evaluated.tokens_per_s_per_gpu) * 64 * number(evaluated.busy_s) == pytest.approx(1e12, rel=1e-4)
    assert number(evaluated.carbon_kg) == pytest.approx(number(evaluated.energy.total) / 3.6e6 * 0.4)


def test_where_no_gpu_price_is_known_electricity_is_what_is_left():
    unknown = UnitPrices(usd_per_gpu_h=None, usd_per_kwh=0.1, pue=1.2, kg_co2e_per_kwh=0.4)
    evaluated = evaluate(BIG, cluster(), layouts(dp=8, zero=1, grad_accum=32), mid_rates(BIG, cluster()), unknown, 1e10)

    assert number(evaluated.cost_usd) == pytest.approx(number(evaluated.energy.total) / 3.6e6 * 0.1)


def test_a_run_takes_whole_steps():
    rates = mid_rates(BIG, cluster())
    per_step = 256 * 4096
    one_step, two_steps = (
        evaluate(BIG, cluster(), layouts(dp=8, zero=1, grad_accum=32), rates, PRICES, tokens)
        for tokens in (per_step, per_step + 1)
    )

    assert number(two_steps.busy_s) == pytest.approx(2 * number(one_step.busy_s))


def test_a_whole_run_takes_longer_than_its_steady_steps_by_an_error_of_its_own():
    at, rates = layouts(dp=8, zero=1, grad_accum=32), mid_rates(BIG, cluster())
    plain, off = (
        evaluate(BIG, cluster(), at, rates.replaced(run_error_ratio=error), PRICES, 1e10) for error in (1.0, 1.3)
    )

    for name in ("busy_s", "wall_s", "gpu_h", "cost_usd", "carbon_kg"):
        assert number(getattr(off, name)) == pytest.approx(1.3 * number(getattr(plain, name)))
    assert number(off.energy.total) == pytest.approx(1.3 * number(plain.energy.total))
    # what is measured in steps stays as it is
    for name in ("step_s", "tokens_per_s_per_gpu", "gpu_power_w", "goodput_ratio", "memory_bytes"):
        assert number(getattr(off, name)) == number(getattr(plain, name))


def test_mfu_is_model_flop_over_time():
    evaluated = evaluate(BIG, cluster(), layouts(dp=8, zero=1, grad_accum=32), mid_rates(BIG, cluster()), PRICES, 1e10)

    flop = model_flop_per_token(BIG.model, 4096)
    assert flop_of(BIG) == flop
    assert number(evaluated.model_flop_per_s_per_gpu) == pytest.approx(256 * 4096 * flop / 8 / number(evaluated.step_s))


def test_transformers_take_the_transformer_s_equations():
    at, rates = layouts(tp=2, dp=4, zero=1), mid_rates(BIG, cluster())

    step = step_of(BIG, cluster(), at, memory_of(BIG, at, rates).total, rates)

    assert items(step) == items(step_times(BIG, cluster(), at, rates))
    assert items(memory_of(BIG, at, rates)) == items(memory_items(BIG, at, rates))
    assert tuple(items(step)) == tuple(f.name for f in fields(StepTimes))


@pytest.mark.parametrize("gpu", ["a100-sxm4-80gb", "h100-sxm5-80gb"])
def test_fewer_bits_never_take_longer_for_the_same_layout_of_a_large_model(gpu):
    large = shape(layers=32, hidden=8192, heads=64, kv_heads=8, head_dim=128, ffn_hidden=28672)
    machine = cluster(gpu)
    where = Layouts.of(layout(tp=8, dp=8, zero=1, grad_accum=4))
    known = [name for name in ("fp32", "tf32", "bf16", "fp8") if name in machine.gpu.peak_flop_per_s]
    taken = []
    for name in known:
        training = recipe(large, name, global_batch=32)
        taken.append(number(evaluate(training, machine, where, mid_rates(training, machine), PRICES, 1e10).step_s))

    assert taken == sorted(taken, reverse=True)


@pytest.mark.parametrize("method", ["pretrain", "lora", "qlora"])
def test_no_luck_of_a_draw_runs_faster_than_the_peak(method):
    training, machine = recipe("llama-3.1-8b", "fp32", method=method, global_batch=8), cluster()
    rates = mid_rates(training, machine).replaced(model_error_ratio=np.array([0.01, 1.0]))
    evaluated = evaluate(training, machine, layouts(dp=8), rates, PRICES, tokens=1e9)
    mfu = np.asarray(evaluated.model_flop_per_s_per_gpu) / machine.gpu.peak_flop_per_s["fp32"]

    assert mfu[0] == pytest.approx(1.0)
    assert mfu[1] < 0.95
    assert sum(getattr(evaluated.step, f.name) for f in fields(StepTimes)) == pytest.approx(
        np.asarray(evaluated.step_s)
    )


def test_what_checkpointing_does_again_counts_towards_the_peak():
    training, machine = recipe("llama-3.1-8b", "fp32", global_batch=8), cluster()
    rates = mid_rates(training, machine).replaced(model_error_ratio=np.array([0.01]))
    evaluated = evaluate(training, machine, layouts(dp=8, act_ckpt="full"), rates, PRICES, tokens=1e9)
    recomputed_ratio = recomputed_flop_per_token(training, "full") / flop_of(training)
    mfu = np.asarray(evaluated.model_flop_per_s_per_gpu) / machine.gpu.peak_flop_per_s["fp32"]

    assert mfu[0] * (1 + recomputed_ratio) == pytest.approx(1.0)
    assert 0.3 < recomputed_ratio < 0.34  # a third of the layers' work, none of the output layer
    every_fourth = layouts(dp=8, act_ckpt="every-4")
    fourth = evaluate(training, machine, every_fourth, rates, PRICES, tokens=1e9).model_flop_per_s_per_gpu
    assert np.asarray(fourth)[0] / machine.gpu.peak_flop_per_s["fp32"] * (1 + recomputed_ratio / 4) == pytest.approx(
        1.0
    )


@examples(60)
@given(settings_of_recipes())
def test_draws_of_a_step_lie_about_the_step_at_mid_and_keep_their_width(setting):
    training, where, machine = setting
    rates = resolve_rates(machine, training)
    at, draws = Layouts.of(where), Draws(count=101, seed=2)
    mid, drawn = (evaluate(training, machine, at, rates.sample(of), PRICES, tokens=1e9) for of in (None, draws))
    memory_bytes = memory_of(training, at, rates.sample(draws)).total
    as_drawn = np.log(step_of(training, machine, at, memory_bytes, rates.sample(draws)).total)
    least_s = float(np.min(drawn.step_s))

    assert float(drawn.step_s[-1] / number(mid.step_s)) == pytest.approx(np.exp(as_drawn[-1] - np.mean(as_drawn)))
    if np.sum(drawn.step_s <= least_s * 1.0001) == 1:  # none was stretched to the dense peak
        assert middle(drawn.step_s) == pytest.approx(number(mid.step_s), rel=1e-9)
        assert np.std(np.log(drawn.step_s)) == pytest.approx(np.std(as_drawn), rel=1e-9)


@examples(40)
@given(settings_of_recipes())
def test_a_column_of_layouts_meets_every_draw_as_each_does_alone(setting):
    training, where, machine = setting
    several = Layouts.of(*[where, replace(where, micro_batch=2 * where.micro_batch)] * 10)
    drawn = resolve_rates(machine, training).sample(Draws(count=11, seed=1))
    needed = memory_of(training, several.column, drawn).total
    steps_s = step_of(training, machine, several.column, needed, drawn).total

    for row in (0, 1, 19):
        at = several.only(row)
        alone = memory_of(training, at, drawn).total
        assert np.broadcast_to(needed, (20, 11))[row] == pytest.approx(np.broadcast_to(alone, 11), rel=1e-12)
        assert np.broadcast_to(steps_s, (20, 11))[row] == pytest.approx(
            step_of(training, machine, at, alone, drawn).total
        )


@examples(40)
@given(settings_of_recipes())
def test_each_layout_of_a_column_is_evaluated_as_it_is_alone(setting):
    training, where, machine = setting
    several = Layouts.of(where, replace(where, micro_batch=2 * where.micro_batch))
    drawn = resolve_rates(machine, training).sample(Draws(count=11, seed=1))
    together = evaluate(training, machine, several.column, drawn, PRICES, tokens=1e9)

    for row in (0, 1):
        ours, alone = together.of_row(row), evaluate(training, machine, several.only(row), drawn, PRICES, tokens=1e9)
        for name in ("step_s", "memory_bytes", "wall_s", "gpu_power_w", "cost_usd", "carbon_kg", "goodput_ratio"):
            assert np.ravel(getattr(ours, name)) == pytest.approx(np.ravel(getattr(alone, name)), rel=1e-12)
        assert items(ours.step) == close(items(alone.step))
        assert items(ours.memory) == close(items(alone.memory))
        assert items(ours.energy) == close(items(alone.energy))


def test_rates_that_are_moved_and_not_drawn_have_no_middle():
    rates = resolve_rates(cluster(), recipe())
    moved = rates.moved({"launch_s.tuned": np.array([0.0, 3.0, -3.0])})
    at = layouts(tp=8)
    mid, steps = (evaluate(recipe(), cluster(), at, of, PRICES, tokens=1e9).step_s for of in (rates.sample(), moved))

    assert moved.centre is None
    assert steps[0] == pytest.approx(number(mid), rel=1e-12)
