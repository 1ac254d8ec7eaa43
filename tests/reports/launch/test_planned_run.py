"""A plan read from an answer, by an answer's echo of the question."""

from __future__ import annotations

import json
from math import ceil

import pytest

from planner.errors import InputFileError, UsageError
from reports.launch.planned_run import planned_run
from tests.reports.launch.grid import answer
from tests.reports.launch.runs import run_of


def test_steps_are_tokens_over_the_tokens_of_a_step_rounded_up() -> None:
    run = run_of("dense")

    assert run.steps == ceil(1e9 / (run.layout.global_batch * 8192))
    assert (run.model, run.gpu, run.gpus, run.nodes, run.gpus_per_node) == ("llama-3-8b", "h100-sxm5-80gb", 8, 1, 8)
    assert run.count("kv_heads") == 8


def test_inputs_that_a_newer_question_has_are_taken_where_they_are() -> None:
    plain, newer = run_of("lora-8"), run_of("dora")

    assert (plain.lora_rank, plain.epochs, plain.lora_targets, plain.packed) == (16, None, "all-linear", True)
    assert (newer.method, newer.lora_rank, newer.epochs, newer.lora_targets) == ("dora", 64, 3.0, "attention")
    assert newer.adapts
    assert plain.quant_double
    assert not run_of("single-quant").quant_double
    assert run_of("single-quant").padded


def test_an_answer_whose_echo_has_the_tokens_alone_reads_with_the_planners_defaults() -> None:
    document = json.loads(answer("dense"))
    document["question"] = {"tokens": document["question"]["tokens"]}

    run = planned_run(document, precision="bf16", gpu=None, view="plans")

    assert (run.method, run.optimizer, run.seq_len, run.stack) == ("pretrain", "adamw", 8192, "typical")
    assert (run.attention, run.offload, run.commitment, run.power_limit_w) == ("flash", "none", "on-demand", None)
    assert run.steps == run_of("dense").steps


@pytest.mark.parametrize("tokens", [{}, {"value": 0}, {"value": None}, {"value": "all"}])
def test_a_run_over_nothing_is_a_fault_of_the_file(tokens) -> None:
    document = json.loads(answer("dense"))
    document["question"]["tokens"] = tokens

    with pytest.raises(InputFileError, match=r"plan\.json: question\.tokens: expected a number above 0"):
        planned_run(document, precision=None, gpu=None, view="plans", file="plan.json")


@pytest.mark.parametrize("name", ["vit", "resnet", "sft-padded", "dpo", "bert", "dense-512"])
def test_the_last_step_is_whole_and_no_step_is_empty(name) -> None:
    run = run_of(name)

    assert (run.steps - 1) * run.layout.global_batch < run.samples * (1 + 1e-9)
    assert run.steps * run.layout.global_batch >= run.samples * (1 - 1e-9)
    assert run.steps * run.micro_examples * run.layout.dp * run.layout.grad_accum == run.steps * run.batch_examples


def test_images_are_counted_in_images() -> None:
    run = run_of("vit")

    assert (run.image_size, run.samples, run.steps) == (384, 115e6, ceil(115e6 / 1024))
    assert not run.padded
    assert not run.packed
    assert run_of("resnet").steps == ceil(90 * 1_281_167 / 1024)


def test_a_pair_of_answers_is_one_example_and_two_sequences() -> None:
    run = run_of("dpo")

    assert run.batch_examples * 2 == run.layout.global_batch
    assert run.micro_examples * 2 == run.layout.micro_batch
    assert run.steps == ceil(50_000 / run.batch_examples)


def test_a_whole_number_of_steps_is_not_rounded_up_further() -> None:
    document = json.loads(answer("sft-padded"))
    mean = document["tokens_per_sequence"]
    batch = planned_run(document, precision=None, gpu=None, view="plans").layout.global_batch
    for steps in (1, 3, 7, 1000, 123_457):
        document["question"]["tokens"]["value"] = steps * batch * mean * (1 + 1e-13)

        assert planned_run(document, precision=None, gpu=None, view="plans").steps == steps


def test_what_a_framework_with_a_name_stands_for_is_taken() -> None:
    torchtune, unsloth = run_of("torchtune"), run_of("unsloth")

    assert (torchtune.stack, torchtune.chunked_loss) == ("eager", True)
    assert (unsloth.stack, unsloth.chunked_loss, unsloth.fused_head) == ("fsdp-compile", True, True)
    assert not run_of("sft-padded").chunked_loss
    assert not run_of("in-backward").chunked_loss


def test_attention_is_fused_where_the_gpu_has_it() -> None:
    assert run_of("volta").attention == "naive"
    assert run_of("dense").attention == "flash"
    assert run_of("naive").attention == "naive"


def test_the_power_limit_is_the_one_given_or_the_one_searched_for() -> None:
    document = json.loads(answer("power-limit"))
    assert run_of("power-limit").power_limit_w == 500
    point = {"gpus": 8, "duration_days": 1.0, "energy_mwh": 1.0, "cost_usd": None}
    search = {"gpu": "h100-sxm5-80gb", "precision": "bf16", "least_w": 200, "limits": 2, "cheapest": None,
              "sold": {"limit_w": 700, **point}, "greenest": {"limit_w": 425, **point}}  # fmt: skip
    document["question"]["power_limit"]["value"] = "auto"

    def limit() -> float | None:
        return planned_run(document, precision=None, gpu=None, view="plans").power_limit_w

    document["power_limit_search"] = [search]
    assert limit() == 425
    document["power_limit_search"] = [search | {"cheapest": search["sold"]}]
    assert limit() is None


def test_of_several_gpus_the_one_of_the_sentence_is_launched() -> None:
    document = json.loads(answer("dense"))
    cheaper = [dict(plan, gpu="b200-sxm-180gb") for plan in document["plans"]]
    for plan in cheaper:
        plan["cost_usd"] = dict.fromkeys(("low", "mid", "high"), 1.0) | {"at_least": False}
    document["plans"] += cheaper

    assert planned_run(document, precision=None, gpu=None, view="plans").gpu == "b200-sxm-180gb"
    assert planned_run(document, precision="fp8", gpu=None, view="plans").gpu == "b200-sxm-180gb"
    assert planned_run(document, precision=None, gpu="h100", view="plans").gpu == "h100-sxm5-80gb"


@pytest.mark.parametrize("name", ["h100", "H100-SXM5-80GB", "h100 sxm5 80gb"])
def test_a_gpu_is_named_as_in_a_question(name) -> None:
    document = json.loads(answer("dense"))

    assert planned_run(document, precision="BF16", gpu=name, view="plans").gpu == "h100-sxm5-80gb"


@pytest.mark.parametrize(
    ("flags", "why", "hint"),
    [
        ({"gpu": "a100"}, "--gpu: the answer has no plan of `a100`", "use one of h100-sxm5-80gb"),
        (
            {"precision": "fp7"},
            "--precision: the answer has no plan of `fp7`",
            "use one of fp32, tf32, fp16, bf16, fp8",
        ),
    ],
)
def test_a_flag_that_names_no_plan_is_wrong_usage(flags, why, hint) -> None:
    with pytest.raises(UsageError, match=why) as refused:
        planned_run(json.loads(answer("dense")), **({"precision": None, "gpu": None, "view": "plans"} | flags))

    assert hint in str(refused.value.hint)
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(
    ("place", "value"),
    [("gpu", "h999"), ("policy", "bf17"), ("policy", "fp32"), ("precision", "bf17"), ("optimizer", "adamv"),
     ("method", "loraa"), ("stack", "pytorch")],
)  # fmt: skip
def test_a_name_of_no_catalogue_is_a_fault_of_the_file(place, value) -> None:
    document = json.loads(answer("dense"))
    if place in ("gpu", "policy"):
        for plan in document["plans"]:
            plan[place] = value
    else:
        document["question"].setdefault(place, {})["value"] = value

    with pytest.raises(InputFileError, match=rf"plan\.json: .*{place}: expected .*, found `{value}`") as refused:
        planned_run(document, precision=None, gpu=None, view="plans", file="plan.json")

    assert refused.value.exit_code == 3
    assert "mpplan estimate" in str(refused.value.hint)


def test_a_plan_that_does_not_fit_is_nothing_to_launch() -> None:
    document = json.loads(answer("dense"))
    for plan in document["plans"]:
        if plan["precision"] == "fp16":
            plan |= {"fits": False, "layout": None}

    with pytest.raises(UsageError, match="does not fit: there is nothing to launch") as refused:
        planned_run(document, precision="fp16", gpu=None, view="plans")

    assert "bf16 on h100-sxm5-80gb" in str(refused.value.hint)


def test_a_plan_in_no_precision_is_a_fault_of_the_file() -> None:
    document = json.loads(answer("dense"))
    document["plans"][-1]["precision"] = "bf17"

    with pytest.raises(InputFileError, match=r"plans\[\d\]\.precision: expected a precision, found `bf17`"):
        planned_run(document, precision="bf16", gpu=None, view="plans")
