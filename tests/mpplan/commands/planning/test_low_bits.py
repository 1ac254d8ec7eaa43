"""Precisions that 4-bit weights have no products in."""

from __future__ import annotations

import json

import pytest

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
