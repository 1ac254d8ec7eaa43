"""Planning from the command line: vision models, the commands of two pages, and advice.

Units and what is left out for images. What a plan or a refusal advises is true, and works when followed.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
PAGES = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("vision.md", "fine-tuning.md"))
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", PAGES, flags=re.DOTALL)
    for line in block.splitlines()
    if not line.startswith("#")
]
RESNET = ("estimate", "--model", "resnet-50", "--gpus", "8", "--samples", "115M", "--price", "2.5")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_does_what_it_says(run, command):
    result = run(*shlex.split(command)[1:])

    assert result.code == 0
    assert result.out


def test_a_plan_counts_images_and_no_tokens(run):
    document = json.loads(run(*RESNET, "--gpu", "a100-sxm4-80gb", "--json").out)
    plan = next(plan for plan in document["plans"] if plan["precision"] == "bf16")

    assert plan["tokens_per_s_per_gpu"] is None
    assert 1000 < plan["samples_per_s_per_gpu"]["mid"] < 4000
    assert plan["samples_per_s_per_gpu"]["mid"] * plan["step_range_s"]["mid"] == pytest.approx(
        plan["layout"]["micro_batch"] * plan["layout"]["grad_accum"], rel=0.01
    )
    assert (plan["layout"]["tp"], plan["layout"]["dp"], plan["layout"]["zero"]) == (1, 8, 0)
    assert document["model"]["kind"] == "image"
    assert document["model"]["flop_per_image"] == pytest.approx(8.18e9, rel=0.01)
    assert "network" not in document["model"]
    assert document["question"]["samples"]["value"] == 115e6
    assert "tokens" not in document["question"]


def test_only_terms_that_images_rest_on_are_evidence(run):
    document = json.loads(run(*RESNET, "--gpu", "a100-sxm4-80gb", "--json").out)
    sources = {source["id"] for source in document["evidence"]}

    assert "parameter:image_conv_ratio" in sources
    assert "parameter:norm_passes" not in sources


def test_fp8_is_left_out_with_its_reason_and_refused_where_it_is_asked_for(run):
    left_out = json.loads(run(*RESNET, "--gpu", "h100", "--json").out)["unsupported"]
    asked = run(*RESNET, "--gpu", "h100", "--precision", "fp8")

    assert [(row["precision"], row["reason"]) for row in left_out] == [
        ("fp8", "PyTorch has no convolutions in FP8, and resnet50 is made of them")
    ]
    assert asked.code == 2
    assert "PyTorch has no convolutions in FP8" in asked.err
    assert "hint:" in asked.err


def test_a_vision_transformer_has_fp8(run):
    document = json.loads(run("estimate", "--model", "vit-h-14", "--gpus", "8", "--price", "2.5", "--json").out)

    assert document["unsupported"] == []
    assert "fp8" in [plan["precision"] for plan in document["plans"]]


@pytest.mark.parametrize(("lang", "unit"), [("en", "images/s"), ("zh", "张/秒")])
def test_reports_say_images(run, tmp_path, lang, unit):
    page = tmp_path / "plan.html"
    plan = tmp_path / "plan.json"
    plan.write_text(run(*RESNET, "--gpu", "a100-sxm4-80gb", "--json").out, encoding="utf-8")
    run("report", str(plan), "--lang", lang, "-o", str(page))
    text = page.read_text(encoding="utf-8")

    assert unit in text
    assert ("tokens/s" if lang == "en" else "词元/秒") not in text
    assert ("115M images" if lang == "en" else "1.15 亿张图像") in text


def test_an_encoder_shows_tokens_and_sequences(run):
    result = run("estimate", "--model", "bert-base", "--gpus", "8", "--samples", "10M", "--price", "2.5", "--full")

    assert "tokens/s" in result.out
    assert "sequences/s" in result.out


@pytest.mark.parametrize("figure", ["time", "tokens", "steps", "throughput", "rate", "mfu", "memory", "cost", "energy"])
def test_every_figure_can_be_explained(run, tmp_path, figure):
    plan = tmp_path / "plan.json"
    plan.write_text(run(*RESNET, "--gpu", "a100-sxm4-80gb", "--json").out, encoding="utf-8")
    result = run("explain", str(plan), figure, "--json")

    assert result.code == 0
    assert "tokens" not in result.out.lower().replace('"figure": "tokens"', "")


def test_the_same_images_in_a_config_are_the_same_plan(run, tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"architecture": "resnet50", "num_classes": 1000}), encoding="utf-8")
    shape = {"model_type": "resnet"}
    other = tmp_path / "hf.json"
    other.write_text(json.dumps(shape), encoding="utf-8")
    asked = ("--gpu", "a100-sxm4-80gb", "--gpus", "8", "--samples", "1M", "--price", "2", "--json")
    hours = [
        [plan["gpu_hours"]["mid"] for plan in json.loads(run("estimate", "--model", str(model), *asked).out)["plans"]]
        for model in ("resnet-50", config, other)
    ]

    assert hours[1] == hours[0]
    assert hours[2] == pytest.approx(hours[0], rel=1e-4)


def test_an_architecture_that_nobody_has_is_named_with_near_ones(run, tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"architecture": "resnet5o"}), encoding="utf-8")
    result = run("estimate", "--model", str(config))

    assert result.code == 3
    assert "architecture: expected a model of timm" in result.err
    assert "resnet50" in result.err


def test_more_gpus_than_the_batch_has_images_are_refused(run):
    result = run("estimate", "--model", "resnet-50", "--gpus", "8", "--global-batch", "4", "--price", "2")

    assert result.code == 2
    assert "8 GPUs do not divide the global batch of 4 images" in result.err
    assert "hint: use --global-batch 8" in result.err


def test_what_helps_where_memory_or_money_is_short_is_said_in_images(run):
    memory = run("estimate", "--model", "resnet-50", "--gpu", "l4", "--gpus", "1", "--price", "1",
                 "--micro-batch", "1024", "--global-batch", "1024")  # fmt: skip
    money = run("estimate", "--model", "resnet-50", "--budget", "5", "--price", "2")

    assert (memory.code, money.code) == (8, 8)
    assert "--micro-batch 1, a GPU with more memory" in memory.err
    assert "--tp" not in memory.err
    assert "fewer --samples or --epochs" in money.err


def test_a_wrong_name_leads_to_the_list_that_has_it(run):
    assert "`mpplan models --images` lists them all" in run("estimate", "--model", "resnt50").err
    assert "`mpplan models` lists them all" in run("estimate", "--model", "llama-3.1-8bb").err


def plan_of(result, precision: str) -> dict:
    assert result.code == 0, result.err
    return next(plan for plan in json.loads(result.out)["plans"] if plan["precision"] == precision)


def test_a_budget_that_a_deadline_excludes_is_answered_with_one_that_works(run):
    asked = ("estimate", "--params", "70B", "--deadline", "10d", "--precision", "bf16")
    refused = run(*asked, "--budget", "1M")
    (enough,) = re.findall(r"--budget (\d+)", refused.err)
    (cheapest,) = re.findall(r"the cheapest option, [\d,]+ GPUs, costs \$([\d,]+)", refused.err)

    assert refused.code == 8
    assert int(enough) >= int(cheapest.replace(",", ""))
    assert run(*asked, "--budget", enough).code == 0


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--params", "70B", "--deadline", "3d", "--max-gpus", "500"), "or more GPUs with --max-gpus"),
        (("--params", "13B", "--max-gpus", "4"), "use part of a machine with `--gpus 4`"),
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
    (warning,) = [text for text in answer["warnings"] if "would finish" in text and "asked for" in text]
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

    assert {"spot": "can be reclaimed", "3y": "three-year commitment"}[commitment] in text


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

    def per_sequence_s(layout, step_s):
        return step_s / (layout["dp"] * layout["micro_batch"] * layout["grad_accum"])

    assert slower
    plan_s = per_sequence_s(plan["layout"], plan["step_s"]["total"])
    assert all(per_sequence_s(lost["layout"], lost["step_s"]) >= 0.95 * plan_s for lost in slower)


def test_the_assumed_batch_is_the_plans(run):
    answer = json.loads(run("estimate", "--params", "70B", "--precision", "fp8", "--json").out)
    plan = next(plan for plan in answer["plans"] if plan["precision"] == "fp8")
    (text,) = [row["text"] for row in answer["assumptions"] if row["id"] == "global_batch"]

    batch = plan["layout"]["dp"] * plan["layout"]["micro_batch"] * plan["layout"]["grad_accum"]
    assert text.startswith(f"Each step trains on {batch:,} sequences")


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
