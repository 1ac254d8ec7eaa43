"""`mpplan compare`: what it prints, the row that `mpplan calibrate` takes, and what it refuses."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import numpy as np
import pytest

from mpplan.ui.schema import file_of
from planner.units import TERA
from tests.planner.comparison.runs import RECIPE, TOKENS_PER_GPU
from tests.planner.comparison.test_conventions import STEPS_S, counts_of, flop_per_token
from tests.planner.comparison.test_gap import PLAN, planned_step, timers_ms
from tests.planner.runlog.test_read import SAMPLES
from tests.planner.runlog.writers import (
    BEGIN,
    LLAMA_8B,
    megatron_arguments,
    megatron_log,
    megatron_timers,
    text_of,
    titan_step,
)

RATE = flop_per_token(RECIPE, counts_of(RECIPE)[0]) * TOKENS_PER_GPU / TERA


@pytest.fixture
def log(home):
    lines, _ = megatron_log([float(s) for s in STEPS_S], of=1000, tflops=[RATE / float(s) for s in STEPS_S])
    (home / "run.log").write_bytes(text_of(megatron_arguments(LLAMA_8B), lines))
    return "run.log"


def test_with_a_plan_it_says_convention_gap_end_and_bill(run, log):
    result = run("compare", log, "--plan", str(PLAN))

    assert result.code == 0
    told = " ".join(result.out.split())
    assert "follow this convention: 6N with the causal half of attention, the output layer counted." in told
    assert "A step takes 2.29 s" in result.out
    assert "within the plan's range" in result.out
    assert "sparse peak" in result.out
    assert "  cost          $" in result.out
    assert "None" not in result.out
    assert "nan" not in result.out


def test_without_a_plan_it_answers_what_the_log_gives_and_names_what_the_mfu_lacks(run):
    result = run("compare", str(SAMPLES / "nemo-crash.log"))

    assert result.code == 0
    assert "The MFU: give --model, --gpu, --gpus, --seq-len, --precision to compute it." in result.out
    assert "Work repeated after restarts: 6 steps" in result.out
    assert "unknown: the number of GPUs is not known" in result.out


def test_flags_give_the_mfu_without_a_plan(run, log):
    result = run("compare", log, "--gpu", "h100", "--json")

    document = json.loads(result.out)
    assert document["basis"]["sources"] | {"gpu": "flag"} == document["basis"]["sources"]
    assert document["printed"][0]["verdict"] == "named"
    assert document["utilisation"][0]["mfu_dense_ratio"] == pytest.approx(RATE / 2.3 / 989, rel=0.02)


def test_the_json_agrees_with_its_schema(run, log):
    schema = json.loads(file_of("mpplan.compare/1").read_text(encoding="utf-8"))
    for arguments in (
        (log, "--plan", str(PLAN)), (log, "--price", "2"), (str(SAMPLES / "trainer_state.json"),),
        *((str(SAMPLES / name),) for name in ("hf-trainer.log", "deepspeed.log", "lightning.log", "nemo-crash.log")),
    ):  # fmt: skip
        document = json.loads(run("compare", *arguments, "--json").out)
        jsonschema.validate(document, schema)


def test_it_is_worded_in_chinese(run, log):
    result = run("compare", log, "--plan", str(PLAN), "--lang", "zh")

    assert result.code == 0
    assert "与计划对照" in result.out
    assert "注意力只计因果掩码保留的一半" in result.out


def test_calibrate_takes_the_row(run, log, home):
    wrote = run("compare", log, "--plan", str(PLAN), "--row", "runs.csv")
    result = run("calibrate", "runs.csv", "-o", "our-stack.json")

    assert wrote.code == 0
    assert "wrote " in wrote.err
    assert result.code == 0
    assert "Learned from 1 run of runs.csv on h100-sxm5-80gb" in result.out
    assert json.loads((home / "our-stack.json").read_text(encoding="utf-8"))["rows"][0]["id"] == "run"


def test_a_model_without_a_name_goes_the_whole_way_from_its_plan_to_a_calibration(run, home):
    answer = run("estimate", "--params", "70B", "--precision", "fp8", "--json")
    (home / "plan.json").write_text(answer.out, encoding="utf-8")
    plan = next(plan for plan in json.loads(answer.out)["plans"] if plan["precision"] == "fp8")
    batch = json.loads(answer.out)["question"]["global_batch"]["value"]
    lines, _ = megatron_log([1.1 * plan["step_s"]["total"]] * 40, of=20_000, batch=batch)
    (home / "run.log").write_bytes(text_of(lines))

    assert run("compare", "run.log", "--plan", "plan.json", "--row", "rows.csv").code == 0
    result = run("calibrate", "rows.csv", "-o", "ours.json")
    assert result.code == 0
    assert "Learned from 1 run of rows.csv" in result.out
    (row,) = json.loads(run("validate", "rows.csv", "--json").out)["runs"]
    assert row["low"] <= plan["tokens_per_s_per_gpu"]["mid"] <= row["high"]
    assert not any(item.startswith(("shape", "n_layers", "tp, pp")) for item in row["filled"])


@pytest.mark.parametrize(
    "asked",
    [
        ("--model", "llama-3.1-70b", "--gpus", "256"),
        ("--model", "llama-3.1-70b", "--gpus", "256", "--stack", "tuned"),
        ("--params", "13B", "--gpus", "64", "--gpu", "a100", "--tp", "4"),
    ],
    ids=["the usual stack", "tuned", "A100, where nothing hides tensor parallelism"],
)
def test_a_run_that_went_as_planned_is_predicted_as_it_was_planned(run, home, asked):
    answer = run("estimate", *asked, "--tokens", "50B", "--json")
    (home / "plan.json").write_text(answer.out, encoding="utf-8")
    plan = next(plan for plan in json.loads(answer.out)["plans"] if plan["precision"] == "bf16")
    batch = plan["layout"]["dp"] * plan["layout"]["micro_batch"] * plan["layout"]["grad_accum"]
    lines, _ = megatron_log([plan["step_s"]["total"]] * 40, of=2_000, batch=batch)
    (home / "run.log").write_bytes(text_of(lines))

    assert run("compare", "run.log", "--plan", "plan.json", "--row", "rows.csv").code == 0
    (row,) = json.loads(run("validate", "rows.csv", "--json").out)["runs"]
    assert row["error_ratio"] == pytest.approx(0.0, abs=0.005)


def test_a_fine_tuning_comes_back_as_the_run_that_was_planned(run, home):
    asked = (
        "--model",
        "llama-3.1-8b",
        "--method",
        "qlora",
        "--gpu",
        "rtx-4090",
        "--examples",
        "50k",
        "--seq-len",
        "2048",
    )
    answer = run("estimate", *asked, "--lengths", "600", "--json")
    (home / "plan.json").write_text(answer.out, encoding="utf-8")
    plan = next(plan for plan in json.loads(answer.out)["plans"] if plan["precision"] == "bf16")
    step_s, layout = plan["step_s"]["total"], plan["layout"]
    (home / "tuned.log").write_bytes(trainer_log(layout["micro_batch"], layout["grad_accum"], 1, step_s))
    compared = json.loads(run("compare", "tuned.log", "--plan", "plan.json", "--json").out)

    assert compared["basis"]["tokens_per_sequence"] == pytest.approx(600)
    assert compared["basis"]["differs"] == []
    assert compared["gap"]["ratio"] == pytest.approx(0.0, abs=0.01)
    assert compared["tokens_per_s_per_gpu"] == pytest.approx(plan["tokens_per_s_per_gpu"]["mid"], rel=0.02)
    own = compared["utilisation"][0]
    assert own["count"]["method"] == "qlora"
    assert own["mfu_dense_ratio"] == pytest.approx(plan["mfu"]["mid"], rel=0.02)
    assert run("compare", "tuned.log", "--plan", "plan.json", "-o", "runs.csv").code == 0
    (row,) = json.loads(run("validate", "runs.csv", "--json").out)["runs"]
    assert row["low"] <= row["published"] <= row["high"]
    assert row["mid"] == pytest.approx(plan["tokens_per_s_per_gpu"]["mid"], rel=0.15)  # mid of draws beside mid terms
    assert run("calibrate", "runs.csv", "-o", "our-stack.json").code == 0


def trainer_log(micro_batch: int, accumulation: int, gpus: int, step_s: float, steps: int = 400) -> bytes:
    """What Hugging Face's Trainer prints until half of its run."""
    bars = []
    for step in range(0, steps // 2, 5):
        gone = int(step * step_s)
        clock = f"{gone // 3600}:{gone // 60 % 60:02d}:{gone % 60:02d}"
        bars.append(f"{100 * step // steps:3d}%|██▌       | {step}/{steps} [{clock}<1:00:00,  {step_s:.2f}s/it]")
    stated = [
        "***** Running training *****",
        f"  Instantaneous batch size per device = {micro_batch}",
        f"  Total train batch size (w. parallel, distributed & accumulation) = {micro_batch * accumulation * gpus}",
        f"  Gradient Accumulation steps = {accumulation}",
        "{'loss': 2.3, 'grad_norm': 0.4, 'learning_rate': 1e-4, 'epoch': 0.5}",
    ]
    return text_of(stated, bars)


def test_an_mfu_that_cannot_be_is_said_and_agrees_with_the_schema(run, log):
    flags = ("--gpu", "l4", "--model", "llama-3-70b")
    told, document = run("compare", log, *flags), json.loads(run("compare", log, *flags, "--json").out)

    assert "of the dense peak of L4 is impossible" in told.out
    jsonschema.validate(document, json.loads(file_of("mpplan.compare/1").read_text(encoding="utf-8")))


def test_a_row_is_added_to_a_file_and_the_same_run_replaced(run, log, home):
    template = run("calibrate", "--template").out
    blank = "," * (template.splitlines()[-1].count(",") - 1)
    (home / "runs.csv").write_text(f"{template}mine,llama-3-8b{blank}\n", encoding="utf-8")
    for _ in range(2):
        assert run("compare", log, "--plan", str(PLAN), "-o", "runs.csv").code == 0
    lines = (home / "runs.csv").read_text(encoding="utf-8").splitlines()

    rows = [line for line in lines if not line.startswith("#")]
    assert [row.split(",")[0] for row in rows] == ["id", "mine", "run"]
    assert lines[0] == template.splitlines()[0]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_row_of_another_run_whose_log_has_the_same_name_is_not_replaced_silently(run, log, home, lang):
    first = run("compare", log, "--plan", str(PLAN), "--row", "runs.csv", "--lang", lang)
    again = run("compare", log, "--plan", str(PLAN), "--row", "runs.csv", "--lang", lang)
    slower, _ = megatron_log([float(s) * 2 for s in STEPS_S], of=1000)
    (home / "other").mkdir()
    (home / "other" / "run.log").write_bytes(text_of(megatron_arguments(LLAMA_8B), slower))
    other = run("compare", "other/run.log", "--plan", str(PLAN), "--row", "runs.csv", "--lang", lang)

    assert "`run`" not in first.err + again.err
    before, after = re.findall(r"\d{4}\.?\d*", other.err)[:2]
    assert float(before) == pytest.approx(2 * float(after), rel=0.001)
    assert "`run`" in other.err


def test_a_row_alone_goes_to_stdout(run, log):
    result = run("compare", log, "--plan", str(PLAN), "-o", "-")

    assert result.out.splitlines()[0].startswith("id,model,precision")
    assert len(result.out.splitlines()) == 2


def titan_log(tps: float) -> bytes:
    """Steps of 4.32 s; 128 sequences on the plan's 64 GPUs would be 3,793 tokens per second and GPU."""
    times = (BEGIN + timedelta(seconds=4.32 * step) for step in range(40))
    return text_of([titan_step(at, step, tps=tps, tflops=0.0515 * tps, mfu=30) for step, at in enumerate(times, 1)])


def test_a_row_has_the_gpus_that_the_printed_rate_tells_and_none_is_written_where_it_fits_no_number(run, home):
    (home / "half.log").write_bytes(titan_log(7585))
    (home / "odd.log").write_bytes(titan_log(5000))
    half = run("compare", "half.log", "--plan", str(PLAN), "-o", "-")
    odd = run("compare", "odd.log", "--plan", str(PLAN), "-o", "runs.csv")

    header, row = (line.split(",") for line in half.out.splitlines())
    cells = dict(zip(header, row[: len(header)], strict=False))
    assert (half.code, cells["n_gpus"]) == (0, "32")
    assert "that means 32 GPUs, not the plan's 64" in half.err
    assert odd.code == 0
    assert "do not agree with the GPUs and the batch" in odd.err
    assert not (home / "runs.csv").exists()


def test_a_row_that_lacks_something_is_written_and_says_what(run, home):
    result = run("compare", str(SAMPLES / "nemo-crash.log"), "-o", "runs.csv")

    assert result.code == 0
    assert "lacks model, precision, gpu, n_gpus, seq_len" in result.err
    assert (home / "runs.csv").is_file()


def test_a_log_comes_from_stdin(run, log, home, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO((home / log).read_bytes())))
    result = run("compare", "-", "--json")

    assert result.code == 0
    assert json.loads(result.out)["log"]["name"] == "stdin"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("missing.log",), 2, "cannot read"),
        (("-", "--plan", "-"), 2, "only one of log and plan"),
        (("run.log", "--lang", "fr"), 2, "--lang"),
        (("run.log", "--gpu", "h1000"), 2, "h1000"),
        (("run.log", "--gpus", "many"), 2, "--gpus"),
        (("run.log", "--method", "prayer"), 2, "prayer"),
        (("run.log", "--model", "resnet-50"), 2, "is a vision model"),
        (("run.log", "--price", "0"), 2, "--price"),
        (("run.log", "--json", "-o", "-"), 2, "stdout"),
        (("run.log", "-o", "no-folder/runs.csv"), 2, "no-folder"),
        (("run.log", "-o", "run.log"), 3, "file of runs"),
        (("plan.json",), 3, "another document"),
        (("run.log", "--plan", "run.log"), 3, "not JSON"),
        (("mixed.log",), 3, "understood Megatron-LM"),
    ],
)
def test_what_it_refuses(run, log, home, arguments, code, words):
    (home / "plan.json").write_text(PLAN.read_text(encoding="utf-8"), encoding="utf-8")
    titan = [titan_step(BEGIN, step, tps=1, tflops=1, mfu=1) for step in (1, 2)]
    (home / "mixed.log").write_bytes((home / log).read_bytes() + text_of(titan))
    before = (home / log).read_bytes()
    result = run("compare", *arguments)

    assert result.code == code
    assert words in result.err
    assert "hint: " in result.err
    assert result.out == ""
    assert (home / log).read_bytes() == before


PAGE = Path(__file__).parents[4] / "docs/comparing.md"
BLOCKS = re.compile(r"```console\n\$ (mpplan [^\n]+)\n(.*?)```", re.DOTALL)


def page_log() -> bytes:
    """The page's run: Llama-3-8B on 64 H100 whose loader is slow, and that was restarted once after step 3,000."""
    draw = np.random.default_rng(0)
    rate = flop_per_token(RECIPE, counts_of(RECIPE)[0]) * TOKENS_PER_GPU / TERA
    timers = megatron_timers(timers_ms(data=0.35))

    def part(lines: int, begin: int, at: object) -> tuple[list[str], object]:
        seconds = [float(s) for s in (planned_step()["total"] + 0.4) * (1.0 + 0.01 * draw.standard_normal(lines))]
        rates = [rate / s for s in seconds]
        return megatron_log(
            seconds, of=20_000, interval_steps=10, tflops=rates, begin=begin, **({} if at is None else {"at": at})
        )  # type: ignore[arg-type]

    before, at = part(300, 0, None)
    after, _ = part(200, 2900, at + timedelta(minutes=25))  # type: ignore[operator]
    return text_of(
        megatron_arguments(LLAMA_8B | {"train_iters": 20_000}),
        *([line, *timers] for line in before),
        ["  successfully loaded checkpoint from checkpoints [ t 1/1, p 1/1 ] at iteration 2900"],
        *([line, *timers] for line in after),
    )


@pytest.fixture
def folder(home):
    (home / "run.log").write_bytes(page_log())
    (home / "nemo.log").write_bytes((SAMPLES / "nemo-crash.log").read_bytes())
    (home / "plan.json").write_text(PLAN.read_text(encoding="utf-8"), encoding="utf-8")
    return home


def test_the_page_shows_what_the_program_prints(run, folder):
    blocks = BLOCKS.findall(PAGE.read_text(encoding="utf-8"))

    assert len(blocks) == 2
    for command, shown in blocks:
        result = run(*shlex.split(command)[1:])
        assert (result.code, result.out) == (0, shown), command
