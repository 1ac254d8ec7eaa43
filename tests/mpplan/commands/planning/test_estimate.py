"""`mpplan estimate` from its command line: forms of the answer, limits, defaults of one's own, and every bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mpplan.commands import COMMANDS
from mpplan.group import load_command
from planner.question.inputs import INPUTS
from planner.records.home import records_dir

SMALL = ("--params", "7B", "--gpus", "8", "--price", "2.5")
"""With a price: how old the rows of the price book are on the day of the test is not this file's subject."""
UNPRICED = (*SMALL[:4], "--as-of", "2026-11-20")
"""Without a price, on a day whose rows are known."""
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "max_position_embeddings": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "vocab_size": 32000,
}


def test_json_prints_the_document_alone_on_stdout(run):
    result = run("estimate", *SMALL, "--json")
    document = json.loads(result.out)

    assert result.code == 0
    assert document["schema"] == "mpplan.estimate/2"
    assert [plan["precision"] for plan in document["plans"]] == ["fp32", "tf32", "fp16", "bf16", "fp8"]
    assert document["command"][0] == "mpplan"


def test_the_full_answer_names_every_precision_and_stderr_stays_silent(run):
    result = run("estimate", *SMALL, "--full")

    assert result.code == 0
    assert [name for name in ("fp32", "tf32", "fp16", "bf16", "fp8") if name not in result.out.lower()] == []
    assert result.err == ""


def test_the_answer_is_short_and_says_where_the_rest_is(run):
    short, full = run("estimate", *SMALL), run("estimate", *SMALL, "--full")
    lines = short.out.splitlines()

    assert short.out.startswith("BF16 trains this 7B model")
    assert [line.split()[0] for line in lines if line.startswith(("FP8 ", "BF16 ", "TF32 ", "FP16", "FP32"))] == [
        "BF16", "FP8", "BF16", "FP16", "TF32", "BF16",
    ]  # fmt: skip
    assert "Lower precision can change the model's quality" in short.out
    assert "--full prints every table, --report plan.html" in short.out
    assert len(lines) <= 40 < len(full.out.splitlines())


@pytest.mark.parametrize(
    "question",
    [
        ("--params", "7B", "--deadline", "14d"),
        ("--params", "7B", "--gpu", "a100,h100", "--precision", "fp8"),
        ("--params", "70B", "--budget", "100k", "--deadline", "10d"),
        ("--model", "llama-3.1-8b", "--method", "lora", "--examples", "50k"),
    ],
    ids=["deadline", "a GPU without FP8", "no plan", "LoRA"],
)
def test_the_short_answer_is_the_same_without_the_view_that_it_does_not_show(run, home, question):
    """By one deadline only a report and the longer formats compare; it takes a third of the time."""
    alone, beside = run("estimate", *question), run("estimate", *question, "--report", "plan.html")

    assert (alone.code, alone.out) == (beside.code, beside.out)
    assert (home / "plan.html").exists() == (alone.code == 0)


def test_the_short_answer_says_what_short_names_were_taken_for(run):
    told = " ".join(
        run("estimate", "--model", "llama-3", "--gpu", "h100", "--tokens", "10B", "--gpus", "8").out.split()
    )

    assert "`llama-3` is taken to mean llama-3-8b" in told
    assert "`h100` is taken to mean h100-sxm5-80gb" in told


def test_output_to_a_pipe_obeys_columns(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    longest = max(len(line) for line in run("estimate", *SMALL).out.splitlines())

    assert 80 < longest <= 120


def test_a_report_is_written_beside_the_table_and_said_on_stderr(run, home):
    result = run("estimate", *SMALL, "--report", "plan.html")

    assert result.err == "wrote plan.html\n"
    assert (home / "plan.html").read_text(encoding="utf-8").lower().startswith("<!doctype html>")
    assert list(home.iterdir()) == [home / "plan.html"]


def test_quiet_says_nothing_on_stderr(run):
    assert run("estimate", *SMALL, "--report", "plan.html", "--quiet").err == ""


def test_a_report_on_stdout_is_the_page_alone(run):
    result = run("estimate", *SMALL, "--report", "-")

    assert result.out.lower().startswith("<!doctype html>")
    assert result.err == ""


def test_several_gpus_give_one_comparison(run):
    result = run("estimate", "--params", "7B", "--gpu", "h100-sxm5-80gb,h200-sxm-141gb", "--gpus", "8", "--json")

    assert {plan["gpu"] for plan in json.loads(result.out)["plans"]} == {"h100-sxm5-80gb", "h200-sxm-141gb"}


def test_a_hugging_face_config_is_a_model(run, home):
    (home / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    result = run("estimate", "--model", "config.json", "--gpus", "8", "--json")

    assert result.code == 0
    assert json.loads(result.out)["model"]["params_total"] == pytest.approx(6_738_415_616)  # Llama 7B, as published


def test_each_input_says_whether_a_flag_a_variable_a_file_or_a_default_gave_it(run, home, monkeypatch):
    (home / "mpplan.toml").write_text('[estimate]\nseq-len = 2048\ngpu = "a100-sxm4-80gb"\n', encoding="utf-8")
    monkeypatch.setenv("MPPLAN_ESTIMATE_PUE", "1.2")
    question = json.loads(run("estimate", *SMALL, "--gpu", "h100-sxm5-80gb", "--json").out)["question"]

    assert (question["gpu"]["value"], question["gpu"]["source"]) == ("h100-sxm5-80gb", "flag")
    assert (question["pue"]["value"], question["pue"]["source"]) == (1.2, "environment")
    assert (question["seq_len"]["value"], question["seq_len"]["source"]) == (2048, "file")
    assert question["optimizer"]["source"] == "default"


def test_the_same_question_has_the_same_answer(run):
    first, second = (json.loads(run("estimate", *SMALL, "--json").out) for _ in range(2))

    assert first["plans"] == second["plans"]
    assert first["savings"] == second["savings"]


@pytest.mark.parametrize(
    ("limit", "word"),
    [(("--max-cost", "1"), "cost"), (("--max-days", "0.01"), "duration"), (("--max-energy", "0.01"), "energy")],
)
def test_a_crossed_limit_exits_7_names_it_and_still_prints_the_answer(run, limit, word):
    result = run("estimate", *SMALL, *limit, "--json")

    assert result.code == 7
    assert json.loads(result.out)["schema"] == "mpplan.estimate/2"
    assert result.err.startswith(f"error: the high figure of the {word} of BF16 on 8 × h100-sxm5-80gb")
    assert f"is above {limit[0]} " in result.err


MONEY_FILES = {
    "own.toml": ("[use]\nutilisation_ratio = 80\n", "own.toml:2: use.utilisation_ratio: expected a number"),
    "quote.toml": ('vendor = "A"\ngpu = "a100-sxm4"\nprice_per_gpu_h = 0\n', "quote.toml:2: gpu: "),
    "beside.toml": ("[storage]\nchekpoints = 3\n", "beside.toml:2: storage.chekpoints: unknown key"),
    "tariff.toml": ("period = [1, 2]\n", "tariff.toml:1: period: expected [[period]] tables"),
}


@pytest.mark.parametrize(("name", "text", "message"), [(n, *v) for n, v in MONEY_FILES.items()], ids=MONEY_FILES)
def test_a_bad_file_about_money_is_named_with_its_line_and_key(run, home, name, text, message):
    (home / name).write_text(text, encoding="utf-8")
    result = run("estimate", *UNPRICED, f"--{name.removesuffix('.toml')}", name)

    assert (result.code, result.out) == (3, "")
    assert result.err.startswith(f"error: {message}")


def test_own_machines_are_shown_beside_renting(run, home):
    (home / "own.toml").write_text("", encoding="utf-8")
    document = json.loads(run("estimate", *UNPRICED, "--own", "own.toml", "--json", "--quiet").out)
    (own,) = document["money"]["owned"]

    assert own["break_even_utilisation_ratio"] < own["utilisation_ratio"] == 0.8
    assert own["rental_usd_per_gpu_h"] == 3.49
    assert [line["id"] for line in document["plans"][-1]["cost_lines"]] == ["gpu_owned", "electricity"]


def test_warnings_stand_in_the_answer_or_on_stderr_but_not_in_both(run):
    shown, document = run("estimate", *UNPRICED, "--full"), run("estimate", *UNPRICED, "--json")

    assert shown.err == ""
    assert "only the year or a date range is known" in " ".join(shown.out.split())
    assert document.err.startswith("warning: for some prices only the year")
    assert json.loads(document.out)["warnings"] != []


def test_a_limit_on_a_cost_that_is_not_known_is_not_silently_kept(run):
    result = run("estimate", *SMALL[:4], "--as-of", "2019-01-01", "--max-cost", "1")

    assert result.code == 0
    assert "--max-cost was not checked" in result.err


def test_a_limit_that_is_kept_exits_0(run):
    assert run("estimate", *SMALL, "--max-cost", "1T", "--json").code == 0


def test_strict_with_a_gap_exits_5_and_still_prints_the_answer(run):
    unpriced = ("--params", "1B", "--gpus", "8", "--gpu", "h100-sxm5-80gb", "--as-of", "2019-01-01", "--json")
    relaxed, strict = run("estimate", *unpriced), run("estimate", *unpriced, "--strict")

    assert json.loads(relaxed.out)["gaps"] != []
    assert (relaxed.code, strict.code) == (0, 5)
    assert json.loads(strict.out)["gaps"] == json.loads(relaxed.out)["gaps"]


BAD = {
    "a size that is none": (("--params", "70X"), 2, "70X", "70B"),
    "a negative size": (("--params", "-1"), 2, "-1", "70B"),
    "a size of zero": (("--params", "0"), 2, "greater than 0", "70B"),
    "a mixture as a size": (("--params", "8x7B"), 2, "mixture of experts", "mixtral-8x7b"),
    "no model": ((), 2, "no model", "--params"),
    "two models": (("--params", "7B", "--model", "llama-2-7b"), 2, "both", "--model"),
    "no GPUs": (("--params", "7B", "--gpus", "0"), 2, "--gpus", ""),
    "half a GPU": (("--params", "7B", "--gpus", "1.5"), 2, "whole number", "--gpus"),
    "GPUs that tensor parallel does not divide": (("--params", "7B", "--gpus", "3", "--tp", "2"), 2, "--tp 2", ""),
    "an unknown GPU": (("--params", "7B", "--gpu", "h100-sxm9"), 2, "h100-sxm9", "h100-sxm"),
    "an unknown model": (("--model", "lama-2-7b"), 2, "lama-2-7b", "llama-2-7b"),
    "a config that is not there": (("--model", "none/config.json"), 2, "none/config.json", "config.json"),
    "an unknown precision": (("--params", "7B", "--precision", "fp9"), 2, "fp9", "fp8"),
    "a precision that the GPU lacks": (
        ("--params", "7B", "--precision", "fp8", "--gpu", "a100-sxm4-80gb"),
        2,
        "FP8",
        "",
    ),
    "bf16 on a V100": (("--params", "1B", "--precision", "bf16", "--gpu", "v100-sxm2-32gb"), 2, "BF16", ""),
    "a deadline that is no time": (("--params", "7B", "--deadline", "soon"), 2, "soon", "30d"),
    "a deadline that no number of GPUs meets": (("--params", "70B", "--deadline", "1h"), 8, "in 1 hour", ""),
    "a model that fits nowhere": (("--params", "70B", "--gpus", "1"), 8, "GiB", ""),
    "a budget of nothing": (("--params", "7B", "--budget", "0"), 2, "--budget", ""),
    "a PUE below one": (("--params", "7B", "--pue", "0.9"), 2, "--pue", ""),
    "a day that is none": (("--params", "7B", "--as-of", "yesterday"), 2, "yesterday", "2026"),
    "an unknown provider": (("--params", "7B", "--provider", "nobody"), 2, "nobody", ""),
    "an unknown form": ((*SMALL, "--format", "htm"), 2, "htm", "html"),
    "two forms": ((*SMALL, "--json", "--format", "csv"), 2, "both set the format of stdout", ""),
    "a report in no directory": ((*SMALL, "--report", "none/plan.html"), 2, "none/plan.html", "another path"),
    "a report of no form": (
        (*SMALL, "--report", "plan.xlsx"),
        2,
        "--report: a report cannot be written as `.xlsx`",
        ".html",
    ),
    "a report that is a directory": ((*SMALL, "--report", "."), 2, "it is a directory", "another path"),
    "a limit that is no number": ((*SMALL, "--max-cost", "cheap"), 2, "--max-cost", ""),
    "a price of nothing": ((*UNPRICED, "--price", "0"), 2, "--price", ""),
    "a price below nothing": ((*UNPRICED, "--price", "-2"), 2, "--price", ""),
    "a price of a server": ((*UNPRICED, "--price", "250"), 2, "--price 250", "one GPU"),
    "cents for dollars": ((*UNPRICED, "--electricity", "8.26"), 2, "--electricity", "0.0826"),
    "kilograms for grams": ((*UNPRICED, "--grid", "0.385"), 2, "--grid", "385"),
    "a grid of nothing": ((*UNPRICED, "--grid", "0"), 2, "cannot be", "--market-grid"),
    "an unknown grid": ((*UNPRICED, "--grid", "Atlantis"), 2, "Atlantis", "DEU"),
    "a live grid without a token": ((*UNPRICED, "--grid", "live:DE"), 2, "token", "ELECTRICITYMAPS_TOKEN"),
    "a cap without a unit": ((*UNPRICED, "--power-cap", "2"), 2, "--power-cap", "2MW"),
    "a cap below a server": ((*UNPRICED, "--power-cap", "2kW"), 8, "at peak", "--power-cap 13kW"),
    "an offer that is not there": ((*UNPRICED, "--quote", "none.toml"), 2, "none.toml", ""),
    "two prices": ((*UNPRICED, "--price", "2", "--own", "own.toml"), 2, "--price and --own", ""),
    "an unknown commitment": ((*UNPRICED, "--commitment", "2y"), 2, "2y", "3y"),
    "an unknown region": ((*UNPRICED, "--region", "us-east"), 2, "us-east", "us-east-1"),
    "a budget that no price can be held to": (
        ("--params", "7B", "--budget", "1M", "--as-of", "2015-01-01"),
        2,
        "--budget",
        "--price",
    ),
    "a budget and offers of a marketplace alone": (
        ("--params", "3B", "--gpu", "rtx-5090", "--budget", "2k"),
        2,
        "only marketplace offers are known for RTX 5090 (vast); choose one with --provider",
        "--price",
    ),
    "measurements that are not there": ((*SMALL, "--records", "none.jsonl"), 2, "none.jsonl", ""),
}


@pytest.mark.parametrize(("arguments", "code", "message", "hinted"), BAD.values(), ids=BAD)
def test_bad_input_gets_one_error_line_a_hint_and_its_code(run, home, arguments, code, message, hinted):
    result = run("estimate", *arguments)
    error, hint = result.err.splitlines()

    assert result.code == code
    assert result.out == ""
    assert error.startswith("error: ")
    assert message in error
    assert hint.startswith("hint: ")
    assert hinted in hint
    assert list(home.iterdir()) == []


CONFIGS = {
    "not JSON": ("{'hidden_size': 4096}", ":1:"),
    "truncated": (json.dumps(CONFIG, indent=1)[:120], "config.json:"),
    "not an object": ("[]", "config.json:"),
    "empty": ("", "config.json:"),
    "a missing key": (json.dumps({k: v for k, v in CONFIG.items() if k != "num_hidden_layers"}), "num_hidden_layers"),
    "a key of the wrong type": (json.dumps(CONFIG | {"hidden_size": "large"}), "hidden_size"),
    "an unknown architecture": (json.dumps(CONFIG | {"architectures": ["Mamba"], "model_type": "mamba"}), "mamba"),
}


@pytest.mark.parametrize(("text", "message"), CONFIGS.values(), ids=CONFIGS)
def test_a_bad_config_is_an_invalid_input_file(run, home, text, message):
    (home / "config.json").write_text(text, encoding="utf-8")
    result = run("estimate", "--model", "config.json", "--gpus", "8")
    error, hint = result.err.splitlines()

    assert result.code == 3
    assert error.startswith("error: config.json")
    assert message in error.lower() + error
    assert hint.startswith("hint: ")


def test_an_unknown_architecture_lists_the_known_ones(run, home):
    (home / "config.json").write_text(CONFIGS["an unknown architecture"][0], encoding="utf-8")
    message = run("estimate", "--model", "config.json").err.lower()

    assert [
        name
        for name in ("llama", "mistral", "mixtral", "qwen", "deepseek", "gpt2", "neox", "bert")
        if name not in message
    ] == []


def test_nothing_is_half_written_when_the_answer_fails(run, home):
    (home / "plan.html").write_text("old", encoding="utf-8")
    result = run("estimate", "--params", "70B", "--gpus", "1", "--report", "plan.html")

    assert result.code == 8
    assert (home / "plan.html").read_text(encoding="utf-8") == "old"


def test_an_unwritable_report_is_refused_before_the_question_is_even_read(run):
    result = run("estimate", "--params", "70X", "--report", "none/plan.html")

    assert "none/plan.html" in result.err


def test_the_command_has_a_flag_for_each_input_and_nine_of_its_own():
    command = load_command(next(row for row in COMMANDS if row.name == "estimate"))
    own = ["json", "format", "full", "report", "quiet", "strict", "max_cost", "max_days", "max_energy"]

    assert [option.name for option in command.params] == [*(item.name for item in INPUTS), *own]


def test_the_help_needs_neither_numpy_nor_a_catalogue(home):
    program = "import sys; from mpplan.app import main; main(['estimate', '--help']); print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    loaded = set(done.stdout.split())

    assert "planner.question.inputs" in loaded
    assert loaded & {"numpy", "pandas", "torch", "planner.models.catalogue", "planner.question.resolve"} == set()


def test_a_real_process_says_the_same_as_this_one(run, shell):
    in_process, in_shell = run("estimate", "--params", "70X"), shell("estimate", "--params", "70X")

    assert (in_process.code, in_process.err) == (in_shell.code, in_shell.err)
    assert Path.cwd().name == "here"


@pytest.mark.parametrize(
    "slip",
    [
        ("--deadline", "1e999d"),
        ("--deadline", "1e300d"),
        ("--tokens", "1e300"),
        ("--budget", "1e300"),
        ("--gpus", "1e300"),
        ("--seq-len", "1e300"),
        ("--global-batch", "1e18"),
    ],
    ids=" ".join,
)
def test_a_number_beyond_all_reason_is_a_slip_and_is_refused(run, slip):
    done = run("estimate", "--params", "7B", *slip)

    assert done.code == 2
    assert done.err.startswith(f"error: {slip[0]}: `{slip[1]}`")


def test_a_record_of_this_cpu_that_is_no_device_yet_stops_no_plan_for_a_gpu(run, home):
    lines = Path(__file__).parents[3] / "planner/records/probe_lines.jsonl"
    part = "".join(line for line in lines.read_text(encoding="utf-8").splitlines(True) if '"kind":"launch"' in line)
    records_dir().mkdir(parents=True)
    (records_dir() / "cpu.jsonl").write_text(part, encoding="utf-8")
    asked = ("estimate", "--params", "1B", "--tokens", "1B", "--gpus", "1")

    of_gpu, of_cpu = run(*asked, "--gpu", "h100-sxm5-80gb"), run(*asked, "--gpu", "cpu-local")

    assert (of_gpu.code, of_cpu.code) == (0, 3)
    assert "error: the record lacks matrix products or bandwidth" in of_cpu.err


def test_a_cpu_is_planned_from_its_own_record_without_a_price(run):
    record = Path(__file__).parents[3] / "planner/records/probe_lines.jsonl"
    asked = ("--params", "100M", "--tokens", "1M", "--gpu", "cpu-local", "--gpus", "1", "--precision", "fp32")

    result = run("estimate", *asked, "--records", str(record), "--json")

    assert result.code == 0
    (plan,) = [plan for plan in json.loads(result.out)["plans"] if plan["precision"] == "fp32"]
    assert plan["gpu"] == "cpu-local"
    assert plan["duration_days"]["mid"] > 0
    assert plan["cost_usd"] is None


QLORA = ("estimate", "--model", "llama-3.1-8b", "--method", "qlora", "--gpu", "h100", "--gpus", "1")


def test_fp8_is_left_out_of_qlora_with_its_reason(run):
    document = json.loads(run(*QLORA, "--json").out)

    assert [(row["precision"], row["reason"]) for row in document["unsupported"]] == [
        ("fp8", "the 4-bit weights of QLoRA are unpacked to 16 bits or more for every product, and no software "
                "multiplies them in FP8")
    ]  # fmt: skip
    assert "fp8" not in [plan["precision"] for plan in document["plans"]]


@pytest.mark.parametrize("precision", ["fp8", "mxfp8", "nvfp4"])
def test_a_narrow_precision_that_is_asked_of_it_is_refused_with_the_one_to_ask_for(run, precision):
    asked = run(*QLORA[:-4], "--gpu", "b200-sxm-180gb", "--gpus", "1", "--precision", precision)

    assert asked.code == 2
    assert "are unpacked to 16 bits" in asked.err
    assert "hint: ask for --precision bf16, the best for QLoRA on this GPU; another GPU would not help" in asked.err


def test_lora_keeps_fp8(run):
    asked = [word if word != "qlora" else "lora" for word in QLORA]
    document = json.loads(run(*asked, "--json").out)

    assert document["unsupported"] == []
    assert "fp8" in [plan["precision"] for plan in document["plans"]]
