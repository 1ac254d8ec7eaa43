"""Composer's console, its files of metrics and its progress bars."""

from __future__ import annotations

import numpy as np
import pytest

from tests.planner.runlog.reading import read
from tests.planner.runlog.recipe_writers import composer_block, composer_console, composer_figures, composer_file
from tests.planner.runlog.writers import text_of

EVALUATION = ["[Eval batch=1/20] Eval on eval data", "[Eval batch=20/20] Eval on eval data:", "\t Eval loss: 2.2"]


def bar(epoch: int, batch: int, of: int, seconds: int) -> str:
    return (
        f"{'train':15}Epoch {epoch:3}:  {100 * batch // of:3d}%|{'#' * 5:25}| {batch}/{of} "
        f"[{seconds // 60:02d}:{seconds % 60:02d}<01:00,  2.00s/ba, loss/train/total=2.3142]"
    )


def test_the_console_has_steps_rates_batch_and_gpus():
    log = read(text_of(composer_console([1, *range(10, 401, 10)], 2.5, of=1000, gpus=64, sequences=512)))

    assert (log.framework, log.durations_from, log.reached, log.last_step) == ("Composer", "printed", 400, 1000)
    assert np.nanmedian(log.steps.duration_s) == pytest.approx(2.5)
    assert np.nanmedian(log.steps.sequences) == 512
    assert np.nanmedian(log.steps.tokens_per_s_per_gpu) == pytest.approx(512 * 2048 / 2.5 / 64, rel=1e-5)
    assert np.nanmedian(log.steps.tflops_per_gpu) == pytest.approx(420)
    assert np.nanmedian(log.steps.mfu_ratio) == pytest.approx(0.4247)
    assert (log.facts["n_gpus"], log.facts["micro_batch"], log.facts["mem_kind"]) == (64, 4, "reserved")
    assert log.facts["peak_mem_gib"] == pytest.approx(42.949e9 / 2**30)


def test_a_run_measured_in_tokens_counts_its_batches():
    log = read(text_of(composer_console([1, *range(10, 401, 10)], 2.5, of=400, unit="token")))

    assert (log.steps.number[:3].tolist(), log.reached, log.last_step) == ([1, 10, 20], 400, None)


def test_epochs_count_on():
    blocks = [
        composer_block(f"[epoch={epoch}][batch={batch}/64]", figures)
        for epoch in (1, 2, 3)
        for batch in range(1, 65)
        if (figures := composer_figures((epoch - 1) * 64 + batch, 2.5, gpus=8, sequences=64, seq_len=2048))
    ]
    log = read(text_of(*blocks))

    assert (log.reached, log.attempts, log.last_step) == (192, 1, None)


def test_evaluations_restarts_and_other_ranks_change_no_step_time():
    first, second = composer_console(range(1, 301), 2.5, of=600), composer_console(range(251, 601), 2.5, of=600)
    ranks = [f"[default{rank}]:{line}" for line in first for rank in (1, 0, 2)]
    log = read(text_of(first, EVALUATION, second))

    assert (log.attempts, log.reached, len(log.steps)) == (2, 600, 650)
    assert [mark.kind for mark in log.marks] == ["evaluation"]
    for lines in (
        first,
        ranks,
        [line for line in first for _ in range(4)],
        [f"\x1b[32m{line}\x1b[0m" for line in first],
    ):
        again = read(text_of(lines))
        assert (again.attempts, again.reached, len(again.steps)) == (1, 300, 300)
        assert np.nanmedian(again.steps.duration_s) == pytest.approx(2.5)


def test_a_short_log_has_the_step_times_of_its_few_lines_with_rates():
    log = read(text_of(composer_console(range(1, 121), 2.5, of=600)))

    assert log.durations_from == "printed"
    assert np.sum(~np.isnan(log.steps.duration_s)) == 20


def test_a_file_of_metrics_has_a_step_for_each_batch():
    lines = list(composer_file(range(1, 301), 2.5))
    captured = [f"[stderr]: {line}" for line in composer_console(range(1, 301), 2.5, of=600)]
    for log in (read(text_of(lines)), read(text_of(captured))):
        assert (log.framework, log.reached, len(log.steps), log.attempts) == ("Composer", 300, 300, 1)
        assert np.nanmedian(log.steps.duration_s) == pytest.approx(2.5)


def test_progress_bars_of_epochs_give_the_step_time():
    states = [bar(epoch, batch, 64, 2 * batch) for epoch in (0, 1) for batch in range(65)]
    states.insert(40, f"{'eval':15}Batch  40:   50%|{'#' * 5:25}| 10/20 [00:09<00:09,  1.00s/ba]")
    log = read("\r".join(states).encode())

    assert (log.framework, log.durations_from, log.reached, log.attempts) == ("Composer", "bar", 128, 1)
    assert np.nanmedian(log.steps.duration_s) == pytest.approx(2.0)


def test_a_rate_that_is_no_number_damages_its_line():
    lines = composer_console(range(1, 201), 2.5, of=600)
    log = read(text_of(lines, ["\t Train throughput/batches_per_sec: 0,4000"]))

    assert log.damaged == (len(lines) + 1,)
