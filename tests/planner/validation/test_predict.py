from dataclasses import replace

import numpy as np
import pytest

from planner.performance.evaluation import evaluate
from planner.rates.ladder import resolve_rates
from planner.rates.parameters import shipped_parameters
from planner.rates.terms import Draws
from planner.validation.defaults import Default
from planner.validation.predict import (
    PSU_EFFICIENCY,
    Prediction,
    decisive_defaults,
    predict,
    predict_prepared,
    run_rates,
)
from planner.validation.runs import PublishedRun, Rejected, parse_run
from planner.validation.setup import NO_PRICES, Prepared, prepare_run

ROW = {
    "id": "x", "model": "Llama3-8B", "family": "dense", "precision": "bf16", "gpu": "h100-sxm5-80gb",
    "n_gpus": "16", "seq_len": "8192", "global_batch_seqs": "128", "micro_batch": "1", "tp": "1", "pp": "1", "cp": "2",
    "act_ckpt": "none", "framework": "NeMo 25.04", "tokens_total": "1e12",
}  # fmt: skip
DRAWS = Draws(count=101, seed=1)


def prepared(metric: str, **cells: str) -> Prepared:
    run = parse_run(ROW | {"metric": metric} | cells)
    assert isinstance(run, PublishedRun), run
    ready = prepare_run(run)
    assert isinstance(ready, Prepared), ready
    return ready


def mid(metric: str, **cells: str) -> float:
    return predict_prepared(prepared(metric, **cells)).mid


def test_the_speeds_of_one_run_agree_with_each_other():
    step = mid("step_time_s")

    assert mid("samples_per_s") == pytest.approx(128 / step)
    assert mid("tokens_per_s_per_gpu") == pytest.approx(128 * 8192 / step / 16)
    # 51.5 GFLOP per token with the causal half of attention (published_runs.md, trap 2)
    assert mid("tflops_per_gpu") == pytest.approx(51.5e9 * 128 * 8192 / step / 16 / 1e12, rel=0.002)
    assert mid("mfu") == pytest.approx(mid("tflops_per_gpu") / 989)


def test_totals_are_steps_times_step_over_goodput():
    hours, minutes, step = mid("gpu_hours"), mid("time_to_train_min"), mid("step_time_s")

    assert hours == pytest.approx(minutes / 60 * 16)
    assert hours > 1e12 / (128 * 8192) * step * 16 / 3600


def test_energy_is_what_each_scope_meters():
    gpu = mid("energy_mwh", energy_scope="gpu")
    direct = mid("energy_mwh", energy_scope="node_dc")
    wall = mid("energy_mwh", energy_scope="node_ac")
    site = mid("energy_mwh", energy_scope="facility", pue="1.2")
    whole = mid("energy_mwh", energy_scope="accelerator_system", pue="1.0")

    assert gpu < direct < wall
    assert wall == pytest.approx(direct / PSU_EFFICIENCY)
    assert site == pytest.approx(1.2 * whole)
    # rated: hours x 700 W x PUE, nothing modelled but the hours
    assert mid("energy_mwh", energy_scope="rated", pue="1.1") == pytest.approx(mid("gpu_hours") * 700 * 1.1 / 1e6)


def test_energy_at_the_building_s_meter_takes_the_pue_of_a_plan_where_the_row_has_none():
    site = mid("energy_mwh", energy_scope="facility", pue="1.25")
    filled = predict_prepared(prepared("energy_mwh")).filled

    assert mid("energy_mwh", energy_scope="facility") == mid("energy_mwh") == pytest.approx(site)
    assert {"energy_scope: facility", "pue: 1.25"} <= set(filled)
    # a meter elsewhere has no building behind it
    assert mid("energy_mwh", energy_scope="accelerator_system") == pytest.approx(site / 1.25)
    assert not any("pue" in text for text in predict_prepared(prepared("energy_mwh", energy_scope="gpu")).filled)


def test_power_of_a_node_is_its_gpus_and_its_host():
    assert mid("avg_node_power_w", energy_scope="node_dc") > 8 * mid("avg_gpu_power_w")
    assert mid("avg_gpu_power_w", power_limit_w="300") <= 300


def test_peak_memory_grows_from_allocated_to_reserved_to_the_device():
    allocated, reserved, device = (mid("peak_mem_gib", mem_kind=kind) for kind in ("allocated", "reserved", "device"))

    assert allocated < reserved < device


def test_a_configuration_that_is_far_too_large_does_not_fit():
    large = predict_prepared(prepared("peak_mem_gib", model="Llama3-70B", n_gpus="8", cp="1", global_batch_seqs="8"))
    small = predict_prepared(prepared("peak_mem_gib", act_ckpt="full"))

    assert not large.fits
    assert large.memory_filling_ratio > 1.5
    assert small.fits


def test_the_probability_of_fitting_is_that_of_the_drawn_peak_against_what_the_gpu_offers():
    sizes = [predict_prepared(prepared("peak_mem_gib", micro_batch=n, global_batch_seqs=n), DRAWS)
             for n in ("1", "2", "4", "256")]  # fmt: skip
    chances = [prediction.fits_probability for prediction in sizes]
    drawn = sizes[1].values  # of the device: what the driver shows

    assert chances == sorted(chances, reverse=True)
    assert chances[-1] < 0.01
    assert chances[1] == pytest.approx(np.mean(drawn <= 81559 / 1024 - 0.55))  # 81,559 MiB less the driver's 0.55 GiB
    assert all(prediction.fits == (prediction.fits_probability > 0.5) for prediction in sizes)


def test_the_probability_of_fitting_does_not_depend_on_the_metric_of_the_row():
    memory, speed = (predict_prepared(prepared(name), DRAWS) for name in ("peak_mem_gib", "step_time_s"))

    assert memory.fits_probability == speed.fits_probability


def test_a_range_holds_its_mid_and_is_the_draws_quantiles():
    prediction = predict_prepared(prepared("step_time_s"), DRAWS)

    assert prediction.low < prediction.mid < prediction.high
    assert prediction.values.shape == (101,)
    assert (prediction.low, prediction.high) == pytest.approx(tuple(np.quantile(prediction.values, [0.05, 0.95])))
    assert prediction.width_ratio == pytest.approx((prediction.high - prediction.low) / prediction.mid)


def test_without_draws_the_range_is_a_point():
    prediction = predict_prepared(prepared("step_time_s"))

    assert prediction.low == prediction.mid == prediction.high


def test_the_prediction_is_the_planner_s_own_evaluation():
    ready = prepared("step_time_s")
    rates = resolve_rates(ready.cluster, ready.recipe).sample()
    direct = evaluate(ready.recipe, ready.cluster, ready.layouts, rates, NO_PRICES, ready.tokens)

    assert predict_prepared(ready).mid == pytest.approx(float(direct.step_s[0]))


def test_nothing_but_the_configuration_decides():
    ready = prepared("step_time_s")
    other = replace(ready, run=replace(ready.run, id="y", tier="C", flag="odd", pair="p", series="s", group="memory"))
    predictions: list[Prediction] = [predict_prepared(ready), predict_prepared(other)]

    assert predictions[0].mid == predictions[1].mid


def test_a_rejected_row_stays_rejected_and_a_prepared_one_is_predicted():
    refused = Rejected(id="x", reason="seq_len: blank")
    ready = prepared("step_time_s")
    prediction = predict(ready)

    assert predict(refused) is refused
    assert isinstance(prediction, Prediction)
    assert prediction.mid == predict_prepared(ready).mid


def beside() -> tuple[float, float]:
    """Watts of host and network per GPU at mid."""
    ready = prepared("energy_mwh")
    rates = resolve_rates(ready.cluster, ready.recipe).sample()
    return float(rates.host_power_w), float(rates.network_power_w)


def test_each_scope_adds_one_part_to_the_one_before():
    host, network = (watts * mid("gpu_hours") / 1e6 for watts in beside())
    gpu = mid("energy_mwh", energy_scope="gpu")

    assert mid("energy_mwh", energy_scope="node_dc") == pytest.approx(gpu + host)
    assert mid("energy_mwh", energy_scope="node_ac") == pytest.approx((gpu + host) / PSU_EFFICIENCY)
    assert mid("energy_mwh", energy_scope="accelerator_system") == pytest.approx(gpu + host + network)
    assert mid("energy_mwh", energy_scope="facility", pue="1.2") == pytest.approx((gpu + host + network) * 1.2)
    assert mid("energy_mwh", pue="1.2") == mid("energy_mwh", energy_scope="facility", pue="1.2")


def test_what_is_metered_without_the_work_is_idle_gpus_and_their_hosts():
    ready = prepared("energy_mwh")
    idle_w = float(resolve_rates(ready.cluster, ready.recipe).sample().power_idle_w)

    expected = mid("gpu_hours") * (idle_w + beside()[0]) / 1e6
    assert mid("energy_mwh", energy_scope="idle") == pytest.approx(expected)


@pytest.mark.parametrize(("gpus", "in_node"), [("16", 8), ("4", 4)])
def test_a_node_s_meter_reads_the_gpus_of_one_node_and_their_host(gpus, in_node):
    gpu = mid("avg_gpu_power_w", n_gpus=gpus)
    direct = mid("avg_node_power_w", n_gpus=gpus, energy_scope="node_dc")

    assert direct == pytest.approx(in_node * (gpu + beside()[0]))
    assert mid("avg_node_power_w", n_gpus=gpus) == pytest.approx(direct / PSU_EFFICIENCY)


def test_memory_is_what_the_source_s_counter_counts_in_gib():
    ready = prepared("peak_mem_gib")
    rates = resolve_rates(ready.cluster, ready.recipe).sample()
    items = evaluate(ready.recipe, ready.cluster, ready.layouts, rates, NO_PRICES, ready.tokens).memory
    prediction = predict_prepared(ready)

    for kind, taken in (("allocated", items.allocated), ("reserved", items.reserved), ("device", items.total)):
        assert mid("peak_mem_gib", mem_kind=kind) == pytest.approx(float(taken[0]) / 1024**3)
    assert prediction.memory_gib == pytest.approx(float(items.total[0]) / 1024**3)
    # 81 559 MiB: driver
    assert prediction.memory_filling_ratio == pytest.approx(prediction.memory_gib / (81559 / 1024))


STATED = {"attention": "flash", "zero_or_fsdp_stage": "zero-1", "n_layers": "32", "hidden": "4096", "n_heads": "32"}
"""What `ROW` leaves to defaults that decide."""


LARGE = {
    "framework": "torchtitan", "n_gpus": "4", "cp": "1", "seq_len": "2048", "micro_batch": "32", "act_ckpt": "full",
    "global_batch_seqs": "128",
}  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "defaults"),
    [
        (STATED, 0),
        (STATED | {"attention": ""}, 1),
        (STATED | {"attention": "", "zero_or_fsdp_stage": ""}, 2),
        (STATED | {"act_ckpt": "", "attention": ""}, 2),
        (STATED | {"tp": "", "pp": "", "cp": ""}, 1),
        (STATED | {"tp": "", "micro_batch": ""}, 1),
        (STATED | {"pp": ""}, 1),
        (STATED | {"micro_batch": ""}, 0),
        (STATED | LARGE, 0),
        (STATED | LARGE | {"act_ckpt": ""}, 1),  # torchtitan's default does not fit and is taken for full: one default
        (STATED | {"n_layers": "", "model": "our own", "params_total": "8e9"}, 1),
        (STATED | {"hidden": ""}, 0),  # looked up in the catalogue, not guessed
        (STATED | {"gpus_per_node": "", "network": ""}, 0),  # neither decides
    ],
)
def test_inputs_that_decide_are_counted_where_a_default_stands_in_for_them(cells, defaults):
    assert decisive_defaults(prepared("step_time_s", **cells)) == defaults


def test_every_default_that_decides_widens_what_is_left_out_of_time_and_memory_and_nothing_else():
    time_sd, memory_sd = (
        shipped_parameters().find(name).log_sd for name in ("default_error_ratio", "memory_default_error_ratio")
    )
    stated, guessed = (
        run_rates(prepared("step_time_s", **cells)).terms
        for cells in (STATED, STATED | {"attention": "", "zero_or_fsdp_stage": ""})
    )

    assert 0 < time_sd < 0.5
    assert 0 < memory_sd < 0.5
    assert stated["model_error_ratio"].own_sd == stated["memory_error_ratio"].own_sd == 0
    # two defaults: independent, so that their squares add
    assert guessed["model_error_ratio"].own_sd == pytest.approx(2**0.5 * time_sd)
    assert guessed["memory_error_ratio"].own_sd == pytest.approx(2**0.5 * memory_sd)
    others = set(stated) - {"model_error_ratio", "memory_error_ratio"}
    assert all(guessed[name].own_sd == stated[name].own_sd for name in others)
    assert guessed["model_error_ratio"].value == stated["model_error_ratio"].value


@pytest.mark.parametrize("metric", ["step_time_s", "peak_mem_gib"])
def test_a_prediction_ranges_wider_with_every_default_that_decides(metric):
    many = Draws(count=2001, seed=1)
    stated = prepared(metric, **STATED)
    widths = []
    for names in ((), ("attention",), ("attention", "zero", "grad_accum", "act_ckpt")):
        extra = (Default(inputs=(name,), taken="any") for name in names)
        run = replace(stated, filled=(*stated.filled, *extra))
        widths.append(predict_prepared(run, many).width_ratio)

    assert widths[0] < widths[1] < widths[2]
    flash = (Default(inputs=("attention",), taken="flash"),)
    assert predict_prepared(stated).mid == predict_prepared(replace(stated, filled=flash)).mid


def test_a_run_is_predicted_by_the_parameters_of_its_lineage():
    run = prepared("step_time_s", **STATED)
    known = shipped_parameters()
    slower = known.replaced([replace(known.rows["stack_error_ratio"], value=1.25)])
    shipped, own = (predict(run, None, parameters) for parameters in (None, slower))

    assert isinstance(shipped, Prediction)
    assert isinstance(own, Prediction)
    assert own.mid == pytest.approx(1.25 * shipped.mid)
