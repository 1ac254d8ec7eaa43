"""`mpplan fit` as a function."""

from __future__ import annotations

from mpplan.api.fitting import SEQ_LENS, fit, to_fit_document
from planner.question.asked import Ask


def test_without_lengths_the_usual_ones_that_the_model_takes_are_compared():
    long = fit(Ask(texts={"model": "llama-3.1-8b", "gpu": "a100-sxm4-80gb", "method": "qlora"}))
    short = fit(Ask(texts={"model": "gpt-2-1.5b", "gpu": "a100-sxm4-80gb", "method": "qlora"}))

    assert {row.seq_len for row in long.gpus[0].rows} == set(SEQ_LENS)
    assert {row.seq_len for row in short.gpus[0].rows} == {1024}


def test_the_document_is_plain_and_says_what_was_compared():
    answer = fit(Ask(texts={"params": "1B", "gpu": "a100-sxm4-80gb", "method": "lora", "seq_len": "512"}))
    document = to_fit_document(answer)

    assert (document["precision"], document["stack"], document["memory_risk_allowed"]) == ("bf16", "hf", 0.05)
    assert [row["act_ckpt"] for row in document["gpus"][0]["rows"]] == ["none", "full"]
