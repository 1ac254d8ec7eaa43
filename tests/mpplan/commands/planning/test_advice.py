"""Advice that a plan or a refusal gives: it is true, and it works when followed."""

from __future__ import annotations

import json
import re

import pytest


def plan_of(result, precision: str) -> dict:
    assert result.code == 0, result.err
    return next(plan for plan in json.loads(result.out)["plans"] if plan["precision"] == precision)


def test_a_budget_that_a_deadline_excludes_is_answered_with_one_that_works(run):
    asked = ("estimate", "--params", "70B", "--deadline", "10d", "--precision", "bf16")
    refused = run(*asked, "--budget", "1M")
    (enough,) = re.findall(r"--budget (\d+)", refused.err)
    (cheapest,) = re.findall(r"cheapest costs \$([\d,]+)", refused.err)

    assert refused.code == 8
    assert int(enough) >= int(cheapest.replace(",", ""))
    assert run(*asked, "--budget", enough).code == 0


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--params", "70B", "--deadline", "3d", "--max-gpus", "500"), "or more GPUs with --max-gpus"),
        (("--params", "13B", "--max-gpus", "4"), "hint: --max-gpus 8, or --gpus 4 for a part of a machine"),
        (("--params", "13B", "--gpus", "8", "--zero", "0", "--tp", "1", "--pp", "1"), "without --zero 0"),
        (("--params", "7B", "--gpus", "8", "--power-limit", "900"), "takes at most 700 W"),
        (("--params", "7B", "--gpus", "8", "--power-limit", "50"), "from 200 to 700 W"),
    ],
)
def test_a_refusal_names_what_is_short(run, words, hint):
    result = run("estimate", *words)

    assert result.code in (2, 8)
    assert hint in result.err


def test_fewer_gpus_that_end_sooner_are_named_and_do(run):
    asked = ("estimate", "--params", "70B", "--precision", "bf16", "--json")
    answer = json.loads(run(*asked, "--gpus", "513").out)
    (warning,) = [text for text in answer["warnings"] if "would finish" in text]
    fewer = re.match(r"[\d,]+", warning).group().replace(",", "")
    days = {gpus: plan_of(run(*asked, "--gpus", gpus), "bf16")["duration_days"]["mid"] for gpus in (fewer, "513")}

    assert days[fewer] < days["513"]
    assert not [text for text in json.loads(run(*asked, "--gpus", "512").out)["warnings"] if "would finish" in text]


def test_a_deadline_takes_no_more_gpus_than_its_own_table_needs(run):
    """Kimi-K2 keeps its published batch, over which few numbers of GPUs divide evenly."""
    words = ("--model", "kimi-k2", "--tokens", "15T", "--deadline", "60d", "--gpu", "h200-sxm-141gb")
    answer = json.loads(run("estimate", *words, "--precision", "fp8", "--json").out)
    plan = next(point for point in answer["curve"] if point["chosen"])
    fewer = [point for point in answer["curve"] if point["gpus"] < plan["gpus"] and point["in_time"]]

    assert [point["gpus"] for point in fewer if point["cost_usd"]["mid"] < plan["cost_usd"]["mid"]] == []


def test_what_an_offloaded_optimizer_takes_of_the_hosts_is_said(run):
    offloaded, whole = (
        run("estimate", "--params", "7B", "--gpus", "8", "--precision", "bf16", "--json", *words)
        for words in (("--offload", "optimizer"), ())
    )
    (text,) = [text for text in json.loads(offloaded.out)["warnings"] if "memory of each host" in text]
    needed_gib = float(re.search(r"([\d,]+) GiB", text).group(1).replace(",", ""))

    params = json.loads(offloaded.out)["model"]["params_total"]
    assert 12 <= needed_gib * 2**30 / params <= 20  # FP32 weights and moments, gradients, perhaps the weights
    assert "memory of each host" not in whole.out


@pytest.mark.parametrize("commitment", ["spot", "3y"])
def test_what_a_price_leaves_out_stands_in_the_short_answer(run, commitment):
    text = " ".join(run("estimate", "--params", "13B", "--commitment", commitment).out.split())

    assert {"spot": "may be taken away", "3y": "three years of use"}[commitment] in text


def test_boards_without_nvlink_are_split_within_a_machine_where_that_is_faster(run):
    asked = (
        "estimate",
        "--params",
        "7B",
        "--gpu",
        "rtx-4090",
        "--gpus",
        "32",
        "--tokens",
        "100B",
        "--precision",
        "bf16",
    )
    free, fixed = (plan_of(run(*asked, "--json", *words), "bf16") for words in ((), ("--tp", "2")))

    assert free["layout"]["tp"] in (1, 2, 4, 8)
    assert free["duration_days"]["mid"] <= 1.02 * fixed["duration_days"]["mid"]


def test_layouts_that_lost_have_steps_in_proportion_to_the_plans(run):
    plan = plan_of(run("estimate", "--params", "70B", "--precision", "fp8", "--json"), "fp8")
    slower = [lost for lost in plan["lost_layouts"] if "slower" in lost["why"] and "average" not in lost["why"]]

    assert slower
    assert all(
        lost["step_s"] >= 0.95 * plan["step_s"]["total"]
        for lost in slower
        if lost["layout"]["dp"] == plan["layout"]["dp"]
    )


def test_the_assumed_batch_is_the_plans(run):
    answer = json.loads(run("estimate", "--params", "70B", "--precision", "fp8", "--json").out)
    plan = next(plan for plan in answer["plans"] if plan["precision"] == "fp8")
    (text,) = [row["text"] for row in answer["assumptions"] if row["id"] == "global_batch"]

    batch = plan["layout"]["dp"] * plan["layout"]["micro_batch"] * plan["layout"]["grad_accum"]
    assert text.startswith(f"Each step trains {batch:,} sequences")


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("plan.md", b"# Training plan"),
        ("plan.csv", b"view,"),
        ("plan", b"<!doctype html>"),
        ("PLAN.HTML", b"<!doctype html>"),
    ],
)
def test_a_report_is_in_the_format_that_its_name_ends_in(run, home, name, start):
    assert run("estimate", "--params", "7B", "--gpus", "8", "--report", name).code == 0
    assert (home / name).read_bytes().startswith(start)
