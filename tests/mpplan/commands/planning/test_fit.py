"""`mpplan fit`: does it fit, and what would make it."""

from __future__ import annotations

import json
import re

import pytest

ON_4090 = ("--model", "llama-3.1-8b", "--gpu", "rtx-4090", "--as-of", "2026-08-22")


def test_the_short_answer_names_what_fits_and_the_table_what_it_needs(run):
    result = run("fit", *ON_4090)
    first, table, _ = result.out.split("\n\n", 2)
    first, header = " ".join(first.split()), table.splitlines()[0]

    assert (result.code, result.err) == (0, "")
    assert max(len(line) for line in result.out.splitlines()) <= 100
    assert first.startswith("llama-3.1-8b on RTX 4090, BF16, stack hf: at 1,024 tokens")
    assert "QLoRA" in first
    assert "act" in header
    assert all(flag in table for flag in ("--policy bf16-pure", "adamw-8bit-paged", "--in-backward"))
    assert "does not fit" in result.out


def test_what_was_measured_and_learned_for_it_is_said(run, home):
    """`fit` used records and calibrations without a word, even where the runs were of other GPUs and models."""
    rows = "id,model,precision,gpu,n_gpus,micro_batch,framework,metric,value\n"
    (home / "runs.csv").write_text(f"{rows}r,resnet-50,fp16,l40s,1,64,PyTorch,samples_per_s,900\n", encoding="utf-8")
    assert run("calibrate", "runs.csv", "-o", "ours.json").code == 0

    result = run("fit", *ON_4090, "--method", "qlora", "--calibration", "ours.json")
    document = json.loads(run("fit", *ON_4090, "--method", "qlora", "--calibration", "ours.json", "--json").out)

    assert result.code == 0
    assert document["warnings"][0] == "calibrated on 1 of your own runs from `runs.csv` (`ours.json`)"
    assert document["warnings"][1].startswith("the calibration was learned on L40S: for RTX 4090 it says")
    assert document["warnings"][-1].startswith("the calibration was learned from vision models")
    assert all(f"warning: {line}" in " ".join(result.err.split()) for line in document["warnings"])


def test_numbers_of_four_digits_and_more_have_a_comma(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "240")
    out = run("fit", "--model", "llama-3.1-70b", "--gpu", "rtx-4090", "--as-of", "2026-08-22").out
    out += run("fit", *ON_4090).out

    assert re.search(r"full fine-tuning +1,024 +full +\d+ +1,\d{3}\.\d +1,\d{3} to 1,\d{3} +>99%", out)
    assert re.search(r"QLoRA .* <1% +- +\d,\d{3} ", out)
    assert not re.search(r"(?<![.\d])\d{4,}", out.replace("RTX 4090", ""))


def test_the_document_holds_every_way_with_its_range_and_the_flags_that_ask_for_it(run):
    document = json.loads(run("fit", *ON_4090, "--seq-len", "1024,2048", "--json").out)
    (gpu,) = document["gpus"]

    assert document["schema"] == "mpplan.fit/1"
    assert {row["seq_len"] for row in gpu["rows"]} == {1024, 2048}
    assert {row["act_ckpt"] for row in gpu["rows"]} == {"none", "full"}
    assert {"sft", "freeze", "dora", "lora", "qlora"} == {row["method"] for row in gpu["rows"]}
    for row in gpu["rows"]:
        assert row["memory_gib"]["low"] <= row["memory_gib"]["mid"] <= row["memory_gib"]["high"]
        assert 0.0 <= row["memory_risk"] <= 1.0
        assert (row["tokens_per_s"] is None) == (not row["fits"])
        assert row["method"] == "sft" or f"--method {row['method']}" in row["flags"]


def test_what_the_table_says_of_a_way_estimate_says_too(run):
    rows = json.loads(run("fit", *ON_4090, "--seq-len", "2048", "--method", "qlora", "--json").out)["gpus"][0]["rows"]
    fastest = max((row for row in rows if row["safe"]), key=lambda row: row["tokens_per_s"]["mid"])
    flags = (
        "--method",
        "qlora",
        "--gpus",
        "1",
        "--seq-len",
        "2048",
        "--tokens",
        "10M",
        "--json",
        "--quiet",
        "--act-ckpt",
        fastest["act_ckpt"],
    )
    answer = json.loads(run("estimate", *ON_4090, *flags).out)
    plan = next(plan for plan in answer["plans"] if plan["precision"] == "bf16")

    assert plan["tokens_per_s_per_gpu"]["mid"] == pytest.approx(fastest["tokens_per_s"]["mid"], rel=0.05)
    assert plan["memory_gib"]["total"]["mid"] == pytest.approx(fastest["memory_gib"]["mid"], rel=0.05)


def test_several_gpus_and_numbers_of_them_are_compared(run):
    flags = ("--model", "llama-3.1-70b", "--gpu", "a100-sxm4-80gb,h100-sxm5-80gb", "--gpus", "8", "--method", "lora")
    document = json.loads(run("fit", *flags, "--seq-len", "2048", "--json").out)

    assert [entry["gpu"] for entry in document["gpus"]] == ["a100-sxm4-80gb", "h100-sxm5-80gb"]
    assert all(entry["gpus"] == 8 and any(row["safe"] for row in entry["rows"]) for entry in document["gpus"])


@pytest.mark.parametrize(
    ("flags", "code", "what"),
    [
        (("--gpu", "rtx-4090"), 2, "no model was given"),
        (("--model", "llama-3.1-8b", "--method", "pretrain"), 2, "compares ways to fine-tune"),
        (("--model", "llama-3.1-8b", "--seq-len", "1024,many"), 2, "--seq-len"),
        (("--model", "llama-3.1-8b", "--seq-len", "1,024"), 2, "may be one length or several"),
        (("--model", "llama-3.1-8b", "--gpu", "rtx-9999"), 2, "unknown GPU"),
        (("--model", "llama-3.1-8b", "--method", "distil"), 2, "unknown `distil`"),
    ],
)
def test_a_mistake_gets_a_sentence_and_a_hint(run, flags, code, what):
    result = run("fit", *flags)

    assert (result.code, result.out) == (code, "")
    assert what in result.err
    assert "hint:" in result.err


def test_what_lies_in_host_memory_is_said_with_the_ways_that_need_it(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    asked = ("fit", "--model", "llama-3.1-70b", "--gpu", "rtx-4090", "--gpus", "2", "--as-of", "2026-08-22")
    told, table, end = run(*asked).out.split("\n\n")
    rows = json.loads(run(*asked, "--json").out)["gpus"][0]["rows"]

    assert re.search(r"QLoRA \(with \d\d GiB of host memory\) fit safely", told)
    assert " host " in table.splitlines()[0]
    assert "Host GiB" in end
    assert len(table.splitlines()) < len(rows) / 2  # what does not fit at the shortest length is there once
    held = {(row["offload"], row["optimizer"]) for row in rows if row["host_gib"]}
    assert held == {("optimizer", "adamw"), ("none", "adamw-8bit-paged")}
    assert "host" not in run("fit", *ON_4090, "--method", "qlora").out


def test_a_gpu_that_lacks_the_precision_says_which_it_has(run):
    out = run("fit", "--model", "llama-3.1-8b", "--gpu", "a10,t4", "--method", "qlora").out

    assert "ask for --precision fp16, its best" in " ".join(out.split())
    assert out.count("way to") == 1  # no empty table
    asked = ("fit", "--model", "llama-3.1-8b", "--gpu", "a10,t4", "--method", "qlora", "--json")
    assert [entry["instead"] for entry in json.loads(run(*asked).out)["gpus"]] == [None, "fp16"]
