"""A real document of `mpplan numerics`, in findings and in short."""

from __future__ import annotations

from copy import deepcopy

import pytest

from mpplan.ui.schema import check_schema
from planner.safety.document import MOST_LAYERS, NUMERICS_SCHEMA, findings_of, shown_of, tasks_shown
from tests.planner.safety.recorded import document

DOCUMENT = document()


def test_the_document_is_what_the_command_prints():
    check_schema(deepcopy(DOCUMENT), NUMERICS_SCHEMA, "numerics.json")


def test_findings_are_those_that_the_record_of_the_same_run_has():
    rows = {row.probe_id: row for row in findings_of(DOCUMENT, "numerics.json")}

    fp8 = rows["numerics/char-lm/parity/fp8"]
    assert (fp8.precision, fp8.figures.emulated, fp8.figures.baseline, fp8.figures.metric) == (
        "fp8",
        True,
        "fp32",
        "loss",
    )
    scaled = rows["numerics/char-lm/loss-scaling/fp16"].figures
    # one overflow for each 2,000 steps that the scale grows after: 1 / 2,001
    assert scaled.steady_skipped_step_ratio == pytest.approx(1 / 2001, rel=1e-9)


def test_the_first_task_is_shown_with_its_scale_its_pairs_and_its_most_sensitive_layers():
    shown = shown_of(DOCUMENT, "numerics.json")

    assert shown is not None
    assert (shown.task, shown.device_kind, shown.scale_precision) == ("char-lm", "cpu", "fp16")
    assert shown.scale_path is not None
    assert shown.scale_stress is not None
    assert (shown.scale_path.name, shown.scale_path.skipped, shown.scale_path.growth_interval) == ("usual", 0, 2000)
    assert (shown.scale_stress.name, shown.scale_stress.skipped) == ("short", 13)
    assert [(pair.task, pair.precision) for pair in shown.pairs] == [
        *(("char-lm", precision) for precision in ("bf16", "fp16", "fp8", "nvfp4")),
        *(("masked-lm", precision) for precision in ("bf16", "fp8", "nvfp4")),
    ]
    # in the document's order, and no other
    rows = DOCUMENT["sensitivity"][0]["layers"]
    assert [layer.name for layer in shown.layers] == [row["layers"][0] for row in rows[:MOST_LAYERS]]


def test_every_task_is_shown_in_the_documents_order_with_its_own_figures():
    tasks = tasks_shown(DOCUMENT, "x")

    assert [task.task for task in tasks] == ["char-lm", "masked-lm"]
    assert tasks[0] == shown_of(DOCUMENT, "x")
    assert tasks[1].pairs[0].task == "masked-lm"
    assert tasks[1].magnitudes != tasks[0].magnitudes


def test_where_only_the_stress_test_was_run_it_is_the_path():
    changed = deepcopy(DOCUMENT)
    changed["loss_scaling"][0]["dynamic"][0]["steps"] = 0
    shown = shown_of(changed, "x")

    assert shown is not None
    assert shown.scale_path is not None
    assert (shown.scale_path.name, shown.scale_stress) == ("short", None)


def test_what_a_scale_for_each_layer_still_loses_is_the_share_of_all_their_values_that_are_not_zero():
    shown = shown_of(DOCUMENT, "x")
    layers = [layer["tensors"]["gradients"] for layer in DOCUMENT["histograms"][0]["layers"]]
    nonzero = [row["values"] * (1.0 - row["zeros_ratio"]) for row in layers]
    lost = sum(n * row["formats"]["e4m3"]["flushed_at_best_ratio"] for n, row in zip(nonzero, layers, strict=True))

    assert shown is not None
    (e4m3,) = [form for form in shown.magnitudes[2].formats if form.format == "e4m3"]
    assert e4m3.flushed_scaled_ratio == pytest.approx(lost / sum(nonzero))
    assert e4m3.flushed_scaled_ratio < 0.1 < e4m3.flushed_ratio


def test_a_layer_that_is_kept_high_is_shown_and_marked_wherever_it_stands():
    changed = deepcopy(DOCUMENT)
    kept = changed["sensitivity"][0]["layers"][-1]["layers"]
    changed["policy"][0]["keep_high"] = kept
    shown = shown_of(changed, "x")

    assert shown is not None
    assert [(row.name, row.kept_high) for row in shown.layers][-1] == (kept[0], True)
    assert [row.kept_high for row in shown.layers].count(True) == 1


def test_steps_after_the_first_that_was_taken_are_the_settled_ones():
    changed = deepcopy(DOCUMENT)
    usual = changed["loss_scaling"][0]["dynamic"][0]
    usual["steps"] = 10

    def settled(*overflows):
        usual["overflow_steps"], usual["skipped"] = list(overflows), len(overflows)
        row = next(row for row in findings_of(changed, "x") if row.figures.instrument == "loss-scaling")
        return row.settled_steps, row.settled_skips

    assert settled() == (9, 0)
    assert settled(0, 1, 2) == (6, 0)  # the search for the first scale, then step 3 is taken
    assert settled(0, 1, 5, 7) == (7, 2)
    assert settled(*range(10)) == (0, 0)


def test_runs_that_ended_in_nan_are_counted_and_stay_in_the_table():
    changed = deepcopy(DOCUMENT)
    pair = changed["parity"][0]["pairs"][0]
    pair |= {"pairs": 0, "diverged": 3, "difference_low": None, "difference_mid": None, "difference_high": None}
    shown = shown_of(changed, "x")

    assert shown is not None
    assert (shown.pairs[0].low, shown.pairs[0].pairs, shown.pairs[0].diverged) == (None, 0, 3)
    (finding,) = [row for row in findings_of(changed, "x") if row.probe_id == "numerics/char-lm/parity/bf16"]
    assert (finding.diverged, finding.figures.seeds) == (3, 3)


def test_counts_of_all_layers_add_up_and_the_most_frequent_exponent_stands_for_100():
    def layer(name, least, counts, flushed):
        share = {"flushed_ratio": flushed, "saturated_ratio": 0.0}
        tensor = {"least_exponent": least, "counts": counts, "values": 4 * sum(counts), "zeros_ratio": 0.75,
                  "formats": {"e4m3": share}}  # fmt: skip
        return {"layer": name, "tensors": {"weights": tensor}}

    changed = deepcopy(DOCUMENT)
    changed["histograms"][0]["layers"] = [layer("a", -3, [1, 2], 0.5), layer("b", -2, [2, 5], 0.1)]
    shown = shown_of(changed, "x.json")

    assert shown is not None
    (weights,) = shown.magnitudes
    # -3: 1; -2: 2 + 2; -1: 5
    assert (weights.least_exponent, weights.counts) == (-3, (20, 80, 100))
    assert weights.formats[0].flushed_ratio == pytest.approx((3 * 0.5 + 7 * 0.1) / 10)
    assert (weights.formats[0].least_log2, weights.formats[0].most_log2) == (-9, 8.81)


def test_the_higher_precision_of_a_mixture_is_bf16_only_where_it_was_found_equivalent():
    changed = deepcopy(DOCUMENT)
    for pair in changed["parity"][0]["pairs"]:
        pair["verdict"] = "cannot_tell"
    good, doubtful = shown_of(DOCUMENT, "x"), shown_of(changed, "x")

    assert good is not None
    assert doubtful is not None
    assert {row.high for row in good.mixtures} == {"bf16"}
    assert {row.high for row in doubtful.mixtures} == {"fp32"}


def test_a_schedule_has_the_share_of_its_steps_and_a_policy_that_of_its_parameters():
    changed = deepcopy(DOCUMENT)
    changed["policy"][0]["lowered_parameters_ratio"] = 0.6
    shown = shown_of(changed, "x")

    assert shown is not None
    shares = {(row.kind, row.name): row.low_share_ratio for row in shown.mixtures}
    assert shares == {
        ("policy", "all_high"): 0.0, ("policy", "all_low"): 1.0, ("policy", "policy"): 0.6,
        ("schedule", "all_high"): 0.0, ("schedule", "all_low"): 1.0, ("schedule", "high_first"): 0.8,
        ("schedule", "high_last"): 0.8,
    }  # fmt: skip


def test_a_document_cut_off_before_its_first_task_shows_nothing_and_one_cut_short_what_it_has():
    empty = {
        name: [] for name in ("tasks", "loss_scaling", "histograms", "parity", "sensitivity", "policy", "schedule")
    }
    assert shown_of(DOCUMENT | empty, "x") is None

    early = shown_of(DOCUMENT | empty | {"tasks": DOCUMENT["tasks"]}, "x")
    assert early is not None
    assert (early.magnitudes, early.scale_path, early.pairs, early.layers, early.mixtures) == ((), None, (), (), ())


def test_figures_that_no_run_could_have_written_are_passed_over():
    changed = deepcopy(DOCUMENT)
    changed["histograms"][0]["layers"][0]["tensors"]["weights"]["least_exponent"] = -(10**12)
    changed["loss_scaling"][0]["dynamic"][1]["path"] = [[0.0, 16.0], [1.0], []]
    pair = changed["parity"][0]["pairs"][0]
    pair["difference_low"], pair["difference_high"] = 5.0, -5.0
    shown = shown_of(changed, "x")

    assert shown is not None
    assert (shown.pairs[0].low, shown.pairs[0].high) == (None, None)
    assert all(len(row.counts) < 100 for row in shown.magnitudes)
    assert shown.scale_path is not None
    assert shown.scale_path.path == ((0.0, 16.0),)


def test_the_users_own_task_is_not_named():
    changed = deepcopy(DOCUMENT)
    for section in ("parity", "loss_scaling", "policy", "schedule"):
        changed[section][0]["task"] = "secret.project:factory"
    changed["tasks"][0]["id"] = "secret.project:factory"

    assert "secret" not in str(findings_of(changed, "x"))
    assert "secret" not in str(shown_of(changed, "x"))
