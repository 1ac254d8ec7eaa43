"""Does it fit: memory, risk and speed of each way to train."""

from __future__ import annotations

import pytest

from planner.performance.memory import usable_bytes
from planner.planning.fitting.rows import FitRow, fit_rows
from planner.training.method import load_methods
from planner.units import GIB
from tests.planner.build import make_question, rates_and_prices

ALL = frozenset(load_methods())


def rows(gpu: str = "rtx-4090", lengths: tuple[int, ...] = (2048,), gpus: int = 1, **asked: str) -> list[FitRow]:
    question = make_question(model="llama-3.1-8b", method="sft", gpu=gpu, gpus=str(gpus), **asked)
    return list(fit_rows(question, rates_and_prices(question), gpus, lengths, ALL))


def best(fit_rows: list[FitRow], method: str, **more: object) -> FitRow:
    able = [row for row in fit_rows if row.variant.method == method and row.tokens_per_s is not None]
    return max(able, key=lambda row: (row.safe, row.tokens_per_s.mid if row.tokens_per_s else 0.0))


def test_an_8b_model_fits_on_a_4090_with_adapters_and_not_as_usual():
    fit_rows = rows()
    usual = [row for row in fit_rows if row.variant.method == "sft" and row.variant.policy is None]

    assert not any(row.fits for row in usual)
    assert best(fit_rows, "qlora").safe
    assert best(fit_rows, "lora").fits
    # torchtune on an RTX 4090 (published_runs.csv, tune-0002): full fine-tuning in pure BF16, paged 8-bit states and
    # updates inside the backward pass take 18.9 GiB
    lean = [row for row in fit_rows if row.variant.optimizer == "adamw-8bit-paged" and row.fits]
    assert lean
    assert 15.0 < lean[0].memory_gib.mid < 21.5


@pytest.mark.parametrize("gpu", ["rtx-4090", "a100-sxm4-80gb"])
def test_lora_is_faster_than_qlora_and_qlora_than_training_all_weights(gpu):
    # published_runs.csv: tune-0001, tune-0005 and tune-0009 on an RTX 4090, 1,650, 3,083 and 2,413 tokens/s
    fit_rows = rows(gpu, stack="torchtune", micro_batch="2", global_batch="2", act_ckpt="full")
    speed = {method: best(fit_rows, method).tokens_per_s.mid for method in ("sft", "qlora", "lora")}  # type: ignore[union-attr]

    assert speed["lora"] > speed["qlora"] > speed["sft"]


def test_longer_sequences_and_fewer_bits_move_memory_as_they_must():
    fit_rows = rows("a100-sxm4-80gb", (1024, 4096), micro_batch="1", global_batch="8")

    def need(method: str, ckpt: str, length: int) -> float:
        return next(
            row.memory_gib.mid
            for row in fit_rows
            if (row.variant.method, row.act_ckpt, row.seq_len, row.variant.policy) == (method, ckpt, length, None)
        )

    for method in ("lora", "qlora"):
        assert need(method, "none", 4096) > need(method, "none", 1024)
        assert need(method, "full", 4096) < need(method, "none", 4096)
    assert need("qlora", "full", 1024) < need("lora", "full", 1024) < need("sft", "full", 1024)


def test_what_is_safe_is_within_the_risk_and_what_fits_is_within_the_memory():
    capacity = usable_bytes(make_question(gpu="rtx-4090").clusters[0].gpu) / GIB
    for row in rows(lengths=(1024, 2048, 4096)):
        assert row.safe <= row.fits
        assert row.safe == (row.fits and row.memory_risk <= 0.05)
        assert (row.tokens_per_s is None) == (not row.fits)
        assert row.memory_gib.low <= row.memory_gib.mid <= row.memory_gib.high
        assert row.fits or row.memory_gib.mid > 0.97 * capacity


def test_tokens_are_as_dear_as_the_gpus_that_make_them():
    (row,) = (row for row in rows("a100-sxm4-80gb") if row.variant.method == "lora" and row.act_ckpt == "full")
    assert row.tokens_per_s is not None

    assert row.usd_per_million_tokens == pytest.approx(2.5 / 3600 / row.tokens_per_s.mid * 1e6)


def test_paged_states_that_find_no_room_lie_in_the_memory_of_the_host():
    (paged,) = (
        row for row in rows("rtx-4090", lengths=(1024,))
        if row.variant.optimizer == "adamw-8bit-paged" and row.act_ckpt == "full"
    )  # fmt: skip
    room_gib = usable_bytes(make_question(gpu="rtx-4090").clusters[0].gpu) / GIB

    assert paged.host_gib == pytest.approx(8.03e9 * 2.03 / GIB - (room_gib - paged.memory_gib.mid), rel=0.03)
