"""The row for `mpplan calibrate`: what log and plan tell is in it, what they do not is blank and named."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import timedelta

import pytest

from planner.answer.document import to_document
from planner.comparison.basis import Given
from planner.comparison.compare import compare
from planner.comparison.planned import Planned, planned_of
from planner.comparison.row import row_id
from planner.hardware.catalogue import find_gpu
from planner.models.catalogue import find_model
from planner.models.from_params import shape_from_params
from planner.models.shape import ModelShape
from planner.parallelism.layout import Layout, Layouts
from planner.performance.evaluation import evaluate
from planner.performance.memory import memory_range_gib
from planner.planning.estimate import estimate
from planner.question.question import Question
from planner.rates.ladder import resolve_rates
from planner.runlog.log import RunLog
from planner.training.frameworks import find_framework
from planner.units import GIB
from planner.validation.predict import Prediction, predict
from planner.validation.runs import PublishedRun, parse_run
from planner.validation.setup import NO_PRICES, Prepared, prepare_run
from planner.validation.template import COLUMNS
from tests.planner.build import make_question, rates_and_prices
from tests.planner.comparison.runs import LLAMA, compared, log_of
from tests.planner.comparison.test_gap import answer
from tests.planner.comparison.test_planned import tuned
from tests.planner.runlog.test_read import sample
from tests.planner.runlog.writers import BEGIN, LLAMA_8B, megatron_arguments, megatron_log, titan_step


def test_a_row_of_log_and_plan_can_be_predicted():
    lines, _ = megatron_log([2.0] * 10, of=100)
    log = log_of(megatron_arguments(LLAMA_8B), lines)
    (row,) = compare(log, planned_of(answer(), None, None), Given()).row.lines

    assert set(row) <= set(COLUMNS)
    assert (row["id"], row["model"], row["gpu"], row["framework"]) == (
        "run",
        "llama-3-8b",
        "h100-sxm5-80gb",
        "Megatron-Core, stack typical",
    )
    assert (row["metric"], float(row["value"])) == ("tokens_per_s_per_gpu", pytest.approx(128 * 8192 / 64 / 2.0))
    run = parse_run(row)
    assert isinstance(run, PublishedRun)
    assert isinstance(prepare_run(run), Prepared)


def test_a_row_of_the_logs_own_settings_has_the_shape_and_can_be_predicted():
    lines, _ = megatron_log([2.0] * 10, of=100)
    comparison = compared(log_of(megatron_arguments(LLAMA_8B), lines), Given(gpu=find_gpu("h100-sxm5-80gb")))
    (row,) = comparison.row.lines

    assert (row["model"], row["hidden"], row["n_layers"], row["n_kv_heads"]) == ("own", "4096", "32", "8")
    assert comparison.row.missing == ()
    run = parse_run(row)
    assert isinstance(run, PublishedRun)
    assert isinstance(prepare_run(run), Prepared)


def test_a_hybrid_that_the_catalogue_lacks_has_no_row_of_a_plain_model():
    lines, _ = megatron_log([2.0] * 10, of=100)
    ours = compared(log_of(lines), Given(model=replace(find_model("nemotron-h-8b"), name="ours"))).row
    named = compared(log_of(lines), Given(model=find_model("nemotron-h-8b"))).row

    assert "model" in ours.missing
    assert not {"hidden", "n_layers", "n_heads"} & set(ours.lines[0])
    assert named.lines[0]["model"] == "nemotron-h-8b"


@pytest.mark.parametrize("name", ["qwen3-30b-a3b", "deepseek-v3", "gemma-2-9b"])
def test_a_model_that_the_columns_cannot_say_has_no_row_of_another_one(name):
    # heads of 128 where the hidden size over the heads is 64; latent attention and dense layers; heads of 256
    lines, _ = megatron_log([2.0] * 10, of=100)
    row = compared(log_of(lines), Given(model=replace(find_model(name), name="ours"))).row

    assert "model" in row.missing
    assert not {"hidden", "n_layers", "n_heads"} & set(row.lines[0])


def planned_as(model: ModelShape, **asked: object) -> Planned:
    """The plan as if it were of another model."""
    document = tuned(**asked)
    document["model"] |= {name: value for name, value in asdict(model).items() if name in document["model"]}
    return planned_of(document, None, None)


@pytest.mark.parametrize(
    "model",
    [
        shape_from_params(70e9),
        replace(find_model("mixtral-8x7b"), name="ours"),
        replace(find_model("bert-large"), name="ours"),
        replace(LLAMA, layers=40),
    ],
    ids=["a bare parameter count", "experts", "an encoder", "a name of the catalogue with other layers"],
)
def test_the_shape_of_a_model_that_the_catalogue_lacks_is_in_the_row_and_the_same_is_predicted(model):
    lines, _ = megatron_log([2.0] * 10, of=100)
    (row,) = compare(log_of(lines), planned_as(model), Given()).row.lines
    run = parse_run(row)

    assert isinstance(run, PublishedRun)
    prepared = prepare_run(run)
    assert isinstance(prepared, Prepared)
    shape = prepared.recipe.model
    for name in ("kind", "layers", "hidden", "heads", "kv_heads", "ffn_hidden", "vocab", "gated_mlp", "experts"):
        assert getattr(shape, name) == getattr(model, name), name
    assert shape.params_total == pytest.approx(model.params_total, rel=0.001)


def test_a_name_of_the_catalogue_says_the_shape_and_nothing_repeats_it():
    lines, _ = megatron_log([2.0] * 10, of=100)
    (row,) = compare(log_of(lines), planned_as(LLAMA), Given()).row.lines

    assert not {"hidden", "n_layers", "params_total"} & set(row)


def test_what_was_asked_of_machine_and_attention_is_in_the_row():
    asked = {"gpus_per_node": 4, "network": "200 Gbit/s per GPU", "power_limit": 500.0, "attention": "naive"}
    lines, _ = megatron_log([2.0] * 10, of=100)
    (row,) = compare(log_of(lines), planned_of(tuned(**asked), None, None), Given()).row.lines
    (other,) = compare(
        log_of(lines), planned_of(tuned(**asked), None, None), Given(gpu=find_gpu("h200-sxm-141gb"))
    ).row.lines

    assert {name: row[name] for name in ("gpus_per_node", "network", "power_limit_w", "attention")} == {
        "gpus_per_node": "4", "network": "200 Gbit/s per GPU", "power_limit_w": "500", "attention": "naive",
    }  # fmt: skip
    assert "power_limit_w" not in other
    run = parse_run(row)
    assert isinstance(run, PublishedRun)
    assert isinstance(prepared := prepare_run(run), Prepared)
    assert prepared.cluster.nic_bytes_per_s == 25e9


def test_what_nothing_tells_is_blank_and_named():
    comparison = compared(sample("nemo-crash.log"))
    (row,) = comparison.row.lines

    assert comparison.row.missing == ("model", "precision", "gpu", "n_gpus", "seq_len")
    assert (row["metric"], float(row["value"]), row["global_batch_seqs"]) == (
        "step_time_s",
        pytest.approx(7.59, abs=0.02),
        "512",
    )
    assert "gpu" not in row


def test_peak_memory_that_the_log_prints_is_a_line_of_its_own():
    given = Given(
        model=LLAMA, gpu=find_gpu("h100-sxm5-80gb"), gpus=64, seq_len=8192, global_batch=128, precision="bf16"
    )
    sizes = (
        f"[titan] {BEGIN:%Y-%m-%d %H:%M:%S},000 - root - INFO - Model llama3 8B size: 8,030,261,248 total parameters"
    )
    steps = [
        titan_step(BEGIN + timedelta(seconds=2 * n), n, tps=8192, tflops=400, mfu=40.0, rank=None) for n in range(1, 9)
    ]
    lines = compared(log_of([sizes], steps), given).row.lines

    assert [row["metric"] for row in lines] == ["tokens_per_s_per_gpu", "peak_mem_gib"]
    assert (lines[1]["value"], lines[1]["mem_kind"]) == ("49.66", "reserved")


def trainer_log(micro_batch: int, accumulation: int, gpus: int, *, of: int = 400) -> RunLog:
    """What Hugging Face's Trainer prints with a bar, 2 s a step."""
    bars = [
        f"{100 * step // of:3d}%|██▌       | {step}/{of} [{2 * step // 60:02d}:{2 * step % 60:02d}<10:00,  2.00s/it]"
        for step in range(0, of // 2, 10)
    ]
    return log_of([
        "***** Running training *****",
        f"  Instantaneous batch size per device = {micro_batch}",
        f"  Total train batch size (w. parallel, distributed & accumulation) = {micro_batch * accumulation * gpus}",
        f"  Gradient Accumulation steps = {accumulation}",
        "{'loss': 2.3, 'grad_norm': 0.4, 'learning_rate': 1e-4, 'epoch': 0.5}",
        *bars,
    ])  # fmt: skip


def test_a_row_of_a_fine_tuning_has_its_method_optimizer_and_padding_and_is_predicted_as_the_same_run():
    planned = planned_of(
        tuned(method="qlora", optimizer="adamw-8bit", lora_rank=64, stack="hf", loss="chunked"), None, None
    )
    comparison = compare(trainer_log(1, 2, 64), planned, Given())
    (row,) = comparison.row.lines
    run = parse_run(row)

    assert (row["method"], row["optimizer"], row["mean_tokens"], row["lora_rank"]) == (
        "qlora",
        "adamw-8bit",
        "2048",
        "64",
    )
    assert (row["loss"], row["framework"]) == ("chunked", "Hugging Face")
    assert set(row) <= set(COLUMNS)
    assert comparison.basis.sources["gpus"] == "log"
    assert isinstance(run, PublishedRun)
    prepared = prepare_run(run)
    assert isinstance(prepared, Prepared)
    recipe, asked = prepared.recipe, planned.recipe
    assert recipe.lengths is not None
    assert recipe.mean_len == pytest.approx(asked.mean_len)
    for name in ("method", "optimizer", "seq_len", "global_batch", "lora_rank", "lora_targets", "chunked_loss"):
        assert getattr(recipe, name) == getattr(asked, name), name
    assert prepared.tokens == pytest.approx(asked.tokens_per_step)
    assert float(row["value"]) == pytest.approx(asked.tokens_per_step / 64 / 2.0, rel=0.01)


def test_a_log_of_pairs_has_both_answers_in_its_micro_batch():
    planned = planned_of(tuned(method="dpo", stack="hf"), None, None)
    (row,) = compare(trainer_log(1, 1, 64), planned, Given()).row.lines

    assert (row["method"], row["micro_batch"], row["global_batch_seqs"]) == ("dpo", "2", "128")


@pytest.mark.parametrize(
    ("stack", "expected"),
    [("hf", "Hugging Face"), ("unsloth", "Hugging Face, unsloth"), ("tuned", "Hugging Face, stack tuned")],
)
def test_a_stack_with_kernels_of_its_own_is_named_beside_the_trainer(stack, expected):
    (row,) = compare(trainer_log(1, 2, 64), planned_of(tuned(stack=stack), None, None), Given()).row.lines

    assert row["framework"] == expected
    if stack == "unsloth":
        assert find_framework(row["framework"]).stack_name == "unsloth"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("run.log", "run"), ("Llama 3 (8B).out.gz", "llama-3-8b"), ("…", "run"), ("stdin", "stdin")],
)
def test_a_run_is_called_after_its_file(name, expected):
    assert row_id(name) == expected


def run_as_planned(question: Question) -> tuple[Planned, dict[str, str]]:
    """The plan of a question, written and read back, and the row of a run that took exactly as long as planned."""
    answered = estimate(question, rates_and_prices(question), detailed=False)
    planned = planned_of(json.loads(json.dumps(to_document(answered))), question.policy.precision, None)
    step_s = planned.plan["step_s"]["total"]
    table = ["step,step_time_s", *(f"{step},{step_s:.12g}" for step in range(1, 21))]
    (row,) = compare(log_of(table), planned, Given()).row.lines
    return planned, row


TUNED = {"model": "llama-3.1-8b", "packed": "yes", "gpus": "8"}
ONE_GPU = TUNED | {"gpus": "1"}
MANY = {"params": "70B", "gpus": "256", "tokens": "100B"}
DEEPSEEK = {"model": "deepseek-v3", "gpus": "1024", "tokens": "100B"}


@pytest.mark.parametrize(
    ("asked", "cells"),
    [
        (TUNED | {"method": "sft"}, {}),
        (TUNED | {"method": "sft", "policy": "bf16-pure"}, {"policy": "bf16-pure"}),
        (TUNED | {"method": "sft", "policy": "bf16", "stack": "unsloth"}, {"policy": "bf16"}),
        (TUNED | {"method": "freeze", "stack": "torchtune"}, {}),
        (TUNED | {"method": "lora", "loss": "fused", "stack": "hf"}, {"loss": "fused"}),
        (ONE_GPU | {"method": "lora", "stack": "unsloth"}, {}),
        (ONE_GPU | {"method": "lora", "loss": "full", "stack": "unsloth"}, {"loss": "full"}),
        (ONE_GPU | {"method": "qlora", "loss": "chunked", "stack": "unsloth"}, {"loss": "chunked"}),
        (TUNED | {"method": "dora", "loss": "full", "stack": "torchtune"}, {"loss": "full"}),
        (TUNED | {"method": "dpo-lora", "loss": "chunked", "stack": "typical"}, {"loss": "chunked"}),
        (MANY | {"precision": "fp8", "policy": "fp8-rowwise"}, {"policy": "fp8-rowwise"}),
        (MANY | {"policy": "bf16-bf16-grad", "gpu": "a100-sxm4-80gb"}, {"policy": "bf16-bf16-grad"}),
        (
            {"model": "llama-3-8b", "gpus": "16", "tokens": "10B", "stack": "fsdp-compile", "policy": "bf16-fsdp"},
            {"policy": "bf16-fsdp"},
        ),
        ({"model": "bert-large", "gpus": "8", "tokens": "10B", "stack": "eager"}, {"attention": "flash"}),
        (DEEPSEEK, {}),
        (DEEPSEEK | {"mtp_layers": "0"}, {"mtp_layers": "0"}),
        (DEEPSEEK | {"stack": "fsdp-compile"}, {}),
        (DEEPSEEK | {"stack": "fsdp-compile", "mtp_layers": "1"}, {"mtp_layers": "1"}),
    ],
    ids=lambda value: " ".join(value.values()) or "as usual",
)
def test_a_run_exactly_as_planned_is_predicted_as_the_plan(asked, cells):
    question = make_question(**{"precision": "bf16"} | asked)
    planned, row = run_as_planned(question)
    written = {name: row[name] for name in ("policy", "loss", "fused_loss", "attention", "mtp_layers") if name in row}
    run = parse_run({**row, "metric": "step_time_s"})
    assert isinstance(run, PublishedRun)
    prediction = predict(prepare_run(run))
    assert isinstance(prediction, Prediction)
    (cluster,) = question.clusters
    recipe, layouts = question.recipe(question.policy, cluster), Layouts.of(Layout(**planned.plan["layout"]))
    rates = resolve_rates(cluster, recipe).sample()
    plan = evaluate(recipe, cluster, layouts, rates, NO_PRICES, recipe.tokens_per_step)

    assert written == cells
    assert prediction.mid == pytest.approx(float(plan.step_s[0]), rel=1e-6)
    assert prediction.memory_gib * GIB == pytest.approx(memory_range_gib(plan.memory_bytes).mid * GIB, rel=1e-6)


def test_a_run_without_the_modules_that_its_model_was_published_with_says_that_it_has_none():
    lines, _ = megatron_log([2.0] * 10, of=100)
    model = find_model("deepseek-v3")
    with_gpu = Given(model=model, gpu=find_gpu("h100-sxm5-80gb"), gpus=64, seq_len=4096, precision="bf16")

    for given in (with_gpu, Given(model=model)):
        (row,) = compared(log_of(lines), given).row.lines
        assert row["mtp_layers"] == "0"
    (llama,) = compared(log_of(lines), Given(model=LLAMA, seq_len=4096)).row.lines
    assert "mtp_layers" not in llama
