"""Reading logs: real ones of each framework, cut ones, mixed ones, hostile ones."""

from __future__ import annotations

import gzip
import io
import json
import re
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from planner.errors import InputFileError
from planner.rows import CATALOG, read_rows
from planner.runlog.events import FACTS
from planner.runlog.formats import LOG_FORMATS, arguments, hugging_face
from planner.runlog.lines import CHUNK_BYTES
from planner.runlog.log import RunLog
from planner.runlog.read import read_log
from tests.planner.imported.readings import SAMPLES as STEP_SAMPLES
from tests.planner.runlog.recipe_writers import composer_console, litgpt_log, olmo_log, torchtune_line
from tests.planner.runlog.writers import (
    BEGIN,
    LLAMA_8B,
    megatron_arguments,
    megatron_line,
    megatron_log,
    megatron_timers,
    text_of,
    titan,
    titan_step,
)

FORMATS = Path(arguments.__file__).parent
SAMPLES = Path(__file__).parent / "samples"


def read(content: bytes, name: str = "run.log") -> RunLog:
    return read_log(io.BytesIO(content), name)


def sample(name: str) -> RunLog:
    with (SAMPLES / name).open("rb") as file:
        return read_log(file, name)


def test_every_format_reads_a_log_that_its_framework_wrote():
    logs = {
        "Hugging Face": sample("hf-trainer.log"), "Lightning": sample("lightning.log"),
        "NeMo": sample("nemo-crash.log"), "DeepSpeed": sample("deepspeed.log"),
        **{name: read((STEP_SAMPLES / file).read_bytes())
           for name, file in (("Megatron-LM", "megatron.log"), ("nanotron", "nanotron.log"),
                              ("torchtitan", "torchtitan.log"))},
        "Composer": read(text_of(composer_console(range(1, 201), 2.5, of=300))),
        "litgpt": read(text_of(litgpt_log(range(1, 9), 0.5))),
        "torchtune": read(text_of(torchtune_line(step) for step in range(1, 9))),
        "OLMo-core": read(text_of(olmo_log(range(1, 9), 2.0, of=100))),
    }  # fmt: skip

    assert {form.name for form in LOG_FORMATS} == {*logs, "arguments"}
    assert {name: log.framework for name, log in logs.items()} == {name: name for name in logs}


def test_every_fact_is_a_column_or_one_of_those_that_are_none():
    names = {*arguments.NUMBERS.values(), *(key for key, _ in arguments.SWITCHES.values()),
             *hugging_face.STATED.values()}  # fmt: skip
    for path in FORMATS.glob("*.py"):
        names |= set(re.findall(r'Fact\(key="(\w+)"', path.read_text(encoding="utf-8")))
    columns = set(read_rows(CATALOG / "published_runs.csv")[0].cells)

    assert names - columns == set(FACTS)


def test_a_trainer_that_was_killed_and_resumed_has_two_starts_and_counts_its_steps_by_its_bar():
    log = sample("hf-trainer.log")

    assert (log.framework, log.attempts, log.last_step, log.reached, log.ended) == ("Hugging Face", 2, 120, 120, True)
    assert log.durations_from == "bar"
    assert log.steps.number[log.steps.attempt == 1][0] == 41  # resumed from the checkpoint of step 40
    assert log.closing is not None
    assert log.closing.steps == pytest.approx(80, abs=0.1)  # of the second session
    assert [mark.kind for mark in log.marks].count("evaluation") == 2


def test_a_trainer_state_has_steps_and_no_time():
    log = sample("trainer_state.json")

    assert (log.framework, log.last_step, log.reached, log.durations_from) == ("Hugging Face", 120, 120, "")
    assert (log.understood, log.lines, log.facts["micro_batch"]) == (218, 218, 4)


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("spaces", [(",", ":"), (", ", ": ")])
def test_a_trainer_state_of_one_line_is_read_however_long_it_is(end, spaces):
    state = json.loads((SAMPLES / "trainer_state.json").read_text())
    entry = state["log_history"][0]
    state["log_history"] = [entry | {"step": step, "note": "x" * 900} for step in range(1, 3001)]
    state |= {"max_steps": 5000, "global_step": 3000}
    text = json.dumps(state, separators=spaces) + end

    assert len(text) > 2 * CHUNK_BYTES
    log = read(text.encode(), "trainer_state.json")
    assert (log.reached, log.last_step, log.lines) == (3000, 5000, 1)


def test_a_trainer_state_of_an_ended_run_has_its_time_and_steps_after_its_last_line_count():
    state = json.loads((SAMPLES / "trainer_state.json").read_text())
    short = read(json.dumps(state | {"global_step": 125, "max_steps": 200}).encode())
    closing = {"step": 120, "train_runtime": 60.0, "train_steps_per_second": 2.0, "total_flos": 1.0}
    ended = read(json.dumps(state | {"log_history": [*state["log_history"], closing]}).encode())

    assert (short.reached, short.last_step, short.ended) == (125, 200, False)
    assert ended.ended
    assert ended.closing is not None
    assert (ended.closing.runtime_s, ended.closing.steps) == (60.0, 120.0)


def test_a_first_line_that_is_json_and_no_document_is_cut_as_any_other_line():
    with pytest.raises(InputFileError, match="understood 0"):
        read(b'{"aa": ' * 2_000_000)


def test_llama_factorys_log_has_its_steps_and_their_time():
    row = (
        '{{"current_steps": {0}, "total_steps": 60000, "loss": 1.2, "lr": 1e-05, "epoch": 0.1, "percentage": 2.0, '
        '"elapsed_time": "{1}", "remaining_time": "1 day, 0:10:00", "throughput": 12345.6, "total_tokens": 99}}'
    )
    evaluation = ('{"current_steps": 43210, "total_steps": 60000, "eval_loss": 0.9, "epoch": 0.1, "percentage": 2.0, '
                  '"elapsed_time": "1 day, 0:01:20", "remaining_time": "0:10:00"}')  # fmt: skip
    rows = [row.format(10, "0:00:20"), row.format(43200, "1 day, 0:00:00"), row.format(43210, "1 day, 0:00:20"),
            evaluation, row.format(43220, "1 day, 0:01:40"), row.format(43230, "1 day, 0:02:00")]  # fmt: skip
    log = read(text_of(rows))

    assert (log.framework, log.reached, log.last_step, log.attempts) == ("Hugging Face", 43230, 60000, 1)
    assert log.steps.number[-1] == 43230
    assert float(np.sum(log.steps.count * np.nan_to_num(log.steps.duration_s))) == 24 * 3600 + 120
    assert [mark.kind for mark in log.marks] == ["evaluation"]


def test_epochs_of_lightning_follow_each_other():
    log = sample("lightning.log")

    assert (log.reached, log.ended, log.attempts) == (300, True, 1)


def test_nemo_goes_on_from_its_checkpoint_after_a_crash():
    log = sample("nemo-crash.log")

    assert (log.attempts, log.reached, log.last_step) == (2, 20, 20)
    assert log.steps.number.tolist() == [*range(1, 17), *range(11, 21)]
    assert float(np.median(log.steps.duration_s)) == pytest.approx(7.59, abs=0.02)
    assert log.steps.sequences[0] == 512


def test_nanotron_of_today_counts_its_batch_in_tokens_and_states_its_settings():
    place = "\x1b[2;3m03/01 10:00:00 [INFO|DP=0|TP=0|node-1]\x1b[0m: "
    start = (f"{place}mbs: 2 | grad_accum: 4 | cp: 1 | sequence_length: 4096 | global_batch_size: 512 | train_steps: "
             "1000 | start_iteration_step: {} | consumed_tokens_total: 0")  # fmt: skip
    step = (f"{place}iteration: {{}} / 1000 | consumed_tokens: 2.1M | time_per_iteration_ms: 1.02K | tokens_per_sec: "
            "2.06M | tokens_per_sec_per_gpu: 16.1K | global_batch_size: 2.1M | lm_loss: 3.2 | lr: 0.0003 | "
            "model_tflops_per_gpu: 401 | eta: 1 day, 2:03:04 | grad_norm: 0.4")  # fmt: skip
    log = read(text_of([start.format(0)], [step.format(n) for n in (1, 2, 3)],
                       [start.format(3)], [step.format(n) for n in (4, 5, 6)]))  # fmt: skip

    assert (log.framework, log.reached, log.last_step, log.attempts) == ("nanotron", 6, 1000, 2)
    assert log.steps.duration_s == pytest.approx(1.02)
    assert np.all(np.isnan(log.steps.sequences))
    assert log.steps.tokens_per_s_per_gpu == pytest.approx(16_100)
    assert log.steps.tflops_per_gpu == pytest.approx(401)
    assert log.facts == {"micro_batch": 2, "grad_accum": 4, "cp": 1, "seq_len": 4096, "global_batch_seqs": 512,
                         "steps": 1000}  # fmt: skip


def test_a_step_of_nemo_that_no_run_reaches_is_damaged():
    whole = (SAMPLES / "nemo-crash.log").read_bytes()
    log = read(whole.replace(b"global_step: 3 ", b"global_step: 99999999999999999999999 "))

    assert log.damaged_count == 1
    assert log.steps.number.tolist() == [1, 2, 3, *range(5, 17), *range(11, 21)]


def test_the_timers_of_deepspeed_are_parts_of_its_step():
    log = sample("deepspeed.log")

    assert log.durations_from == "clock"
    assert log.steps.duration_s[1:] == pytest.approx([1.074, 1.040, 1.051], abs=0.001)
    assert set(log.parts) == {"forward", "backward", "communication", "optimizer"}
    assert 0.8 < sum(part.most_s for part in log.parts.values()) / 1.05 < 1.0  # the rest is data and logging
    assert (log.facts["n_gpus"], log.facts["global_batch_seqs"]) == (1, 16)


def test_the_lines_of_deepspeeds_pipeline_about_a_step_are_one():
    lines = []
    for step in (10, 20, 30):
        lines.append(f"[2026-03-01 10:00:{step},123] [INFO] [logging.py:107:log_dist] [Rank 0] step={step}, skipped=0, "
                     "lr=[0.001], mom=[[0.9, 0.95]]")  # fmt: skip
        lines.append(f"steps: {step} loss: 2.3456 iter time (s): 2.000 samples/sec: 64.000")
    log = read(text_of(lines))

    assert (log.steps.number.tolist(), log.durations_from) == ([10, 20, 30], "printed")
    assert log.steps.duration_s.tolist() == [2.0] * 3
    assert log.steps.sequences.tolist() == [128.0] * 3
    assert np.diff(log.steps.end_s).tolist() == [10.0, 10.0]


def test_deepspeed_whose_logger_is_silent_is_timed_by_its_timers():
    lines = [line for line in (SAMPLES / "deepspeed.log").read_text().splitlines() if "time (ms)" in line]
    log = read("\n".join(lines).encode() + b"\n")

    assert (log.framework, log.durations_from, log.reached) == ("DeepSpeed", "timers", 20)


def test_megatrons_arguments_and_timers_are_facts_and_parts():
    lines, _ = megatron_log([2.0] * 4, of=10, interval_steps=5)
    timers = megatron_timers(
        {"forward-compute": (600, 700), "batch-generator": (10, 90), "backward-compute": (1100, 1200),
         "all-grads-sync": (80, 150), "optimizer": (20, 25), "optimizer-clip-main-grad": (3, 4)}
    )  # fmt: skip
    log = read(text_of(megatron_arguments(LLAMA_8B), *([line, *timers] for line in lines)))

    assert (log.facts["n_gpus"], log.facts["hidden"], log.facts["precision"]) == (64, 4096, "bf16")
    assert log.steps.count.tolist() == [5, 5, 5, 5]
    assert log.parts["communication"].least_s == pytest.approx(0.08)
    assert log.parts["data"].most_s == pytest.approx(0.09)
    assert log.parts["forward"].most_s == pytest.approx(0.61)  # the loader runs inside `forward-compute`
    assert log.parts["optimizer"].most_s == pytest.approx(0.025)


def test_torchtitan_in_colour_of_two_ranks_counts_once():
    lines = [
        titan_step(BEGIN + timedelta(seconds=2 * step), step, tps=7000, tflops=412.5, mfu=41.7, rank=rank)
        for step in range(1, 8)
        for rank in (0, 1)
    ]
    log = read(text_of(lines))

    assert (log.reached, len(log.steps), log.dropped) == (7, 7, 7)
    assert log.steps.duration_s[1:].tolist() == [2.0] * 6
    assert (log.steps.mfu_ratio[0], log.steps.tokens_per_s_per_gpu[0]) == (pytest.approx(0.417), 7000)
    assert log.facts["peak_mem_gib"] == 49.66


def test_torchtitan_says_what_it_trains():
    start = titan(BEGIN, "Building device mesh with parallelism: pp=2, dp_replicate=1, dp_shard=8, cp=1, tp=4, ep=1")
    peak = titan(BEGIN, "Peak FLOPS used for computing MFU: 9.890e+14")
    step = titan_step(BEGIN, 1, tps=7000, tflops=412.5, mfu=None)
    log = read(text_of([start, peak, step]))

    assert (log.facts["n_gpus"], log.facts["pp"], log.facts["tp"]) == (64, 2, 4)
    assert log.facts["peak_flop_per_s"] == 9.89e14


@pytest.mark.parametrize("prefix", ["", "0: ", "  3: ", "[default7]:", "[rank7]: ", "job/0 [default7]:"])
def test_what_launchers_put_before_a_line_is_no_part_of_it(prefix):
    lines, _ = megatron_log([2.0, 2.1, 2.2], of=100)
    log = read(text_of(prefix + line for line in lines))

    assert (log.reached, log.last_step) == (3, 100)


def test_a_table_of_torchtitans_metrics_has_its_data_loading():
    header = "_step,_timestamp,time_metrics/end_to_end(s),time_metrics/data_loading(s),throughput(tps),tflops,mfu(%)"
    rows = [f"{step},{1_770_000_000 + 20 * step},2.0,0.5,7000,412.5,41.7" for step in range(10, 60, 10)]
    log = read(text_of([header, *rows]))

    assert (log.framework, log.reached, log.durations_from) == ("", 50, "printed")
    assert log.steps.data_s.tolist() == [0.5] * 5


def test_an_archive_is_unpacked_and_one_that_is_cut_is_read_as_far_as_it_goes():
    lines, _ = megatron_log([2.0 + 0.001 * n for n in range(3000)], of=5000)
    packed = gzip.compress(text_of(lines))

    assert read(packed).reached == 3000
    cut = read(packed[: len(packed) // 2])
    assert 500 < cut.reached < 3000
    with pytest.raises(InputFileError, match="gzip"):
        read(packed[:100] + b"garbage" * 50)


def test_a_last_line_that_is_cut_is_left_out_and_said():
    lines, _ = megatron_log([2.0, 2.1, 2.2], of=100)
    log = read(text_of(lines)[:-250])

    assert (log.reached, log.cut) == (2, True)
    assert not read(text_of(lines)).cut


def test_steps_that_two_processes_write_at_once_count_once_and_in_order():
    lines, _ = megatron_log([2.0] * 12, of=100)
    order = [0, 0, 2, 1, 1, 3, 2, 5, 4, 3, 6, 5, 4, 7, 6, 8, 7, 9, 8, 10, 9, 11, 10, 11]
    log = read(text_of(lines[index] for index in order))

    assert log.steps.number.tolist() == list(range(1, 13))
    assert (log.attempts, log.notes) == (1, ("interleaved",))


def test_a_log_of_two_frameworks_names_both_and_where_the_second_begins():
    megatron, _ = megatron_log([2.0, 2.0], of=100)
    other = [titan_step(BEGIN, step, tps=1, tflops=1, mfu=1) for step in (1, 2)]
    with pytest.raises(InputFileError) as caught:
        read(text_of(megatron, other))

    assert str(caught.value).startswith("run.log:3: ")
    assert "Megatron-LM (2 lines from line 1 on) and torchtitan (2 lines from line 3 on)" in str(caught.value)


def test_two_runs_in_one_file_are_refused_where_the_second_begins():
    first, at = megatron_log([2.0, 2.0], of=100)
    longer, _ = megatron_log([2.0, 2.0], of=900, at=at)
    repeated, _ = megatron_log([2.0, 2.0], of=100, at=at)
    wider = megatron_arguments(LLAMA_8B | {"hidden_size": 8192})

    with pytest.raises(
        InputFileError, match=r"run.log:3: expected one run, found one of 100 steps before and one of 900"
    ):
        read(text_of(first, longer))
    with pytest.raises(InputFileError, match=r"run.log:4: expected one run, found one that ended in line 3"):
        read(text_of(first, ["[after training is done] datetime: 2026-03-01 00:00:05"], repeated))
    with pytest.raises(InputFileError, match="hidden: expected one run, found 4,096 before and 8,192 here"):
        read(text_of(megatron_arguments(LLAMA_8B), first, wider))


HOSTILE = {
    "steps of Lightning's CSVLogger": (b"epoch,step,train_loss\n0,49,1.2\n", "columns epoch, step, train_loss"),
    "a chart of W&B": (b'"Step","run - loss","run - loss__MIN"\n1,2,2\n', "expected the time of each step"),
    "empty": (b"", "found nothing"),
    "binary": (b"\x7fELF\0\0\0" * 50, "binary"),
    "one line": (b"hello\n", "understood 0 of 1 lines"),
    "blank lines": (b"\n\n\n", "understood 0|found nothing"),
    "another document": (b"{\n 1: 2\n}\n", "another document"),
    "settings alone": ("\n".join(megatron_arguments(LLAMA_8B)).encode(), "none about a step"),
    "no number": (megatron_line(1, 9, 1.0, BEGIN).replace("1000.0", "nan").encode() + b"\n", "damaged are lines 1"),
    "negative": (megatron_line(1, 9, -1.0, BEGIN).encode() + b"\n", "damaged are lines 1"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_log_is_refused_with_what_was_understood(name):
    content, words = HOSTILE[name]
    with pytest.raises(InputFileError, match=words) as caught:
        read(content)
    assert str(caught.value).startswith("run.log:")
    assert caught.value.hint


def test_a_line_of_a_million_characters_and_losses_that_are_no_numbers_do_no_harm():
    lines, _ = megatron_log([2.0] * 6, of=100)
    lines[2] = lines[2].replace("2.500000E+00", "nan")
    long = "x" * 1_000_000 + megatron_line(99, 100, 1.0, BEGIN)
    log = read(text_of(lines[:3], [long], lines[3:]))

    assert log.steps.number.tolist() == [1, 2, 3, 4, 5, 6]
    assert log.lines == 7


def test_damaged_lines_are_counted_and_the_first_are_named():
    lines, _ = megatron_log([2.0] * 12, of=100)
    broken = [line.replace("2000.0", "-5") if number in (3, 7) else line for number, line in enumerate(lines)]
    log = read(text_of(broken))

    assert (log.damaged_count, log.damaged) == (2, (4, 8))
    assert len(log.steps) == 10


def test_forks_of_megatron_write_seconds_and_rates_of_their_own():
    line = (
        " iteration {0}/ 100 | consumed samples: 2048 | consumed tokens: 4194304 |"
        " elapsed time per iteration (s): 104.6 |"
        " learning rate: 1.000E-05 | global batch size:  2048 | lm loss: 2.1E+00 | samples per second: 19.5 |"
        " tokens per gpu per second (tgs): 104.0 | TFLOPs: 149.20 |"
    )
    log = read(text_of(line.format(number) for number in (1, 2, 3)))

    assert log.steps.duration_s.tolist() == [104.6] * 3
    assert (log.steps.tflops_per_gpu[0], log.steps.tokens_per_s_per_gpu[0]) == (149.2, 104.0)


def test_times_that_run_backwards_and_numbers_beyond_reason_do_no_harm():
    lines, at = megatron_log([2.0] * 4, of=10**9)
    later, _ = megatron_log([2.0] * 4, of=10**9, begin=4, at=at - timedelta(days=2))
    log = read(text_of(lines, later))

    assert log.reached == 8
    assert log.attempts == 1


def test_timers_of_deepspeed_in_a_trainers_log_are_its_parts_and_its_steps_stay_the_trainers():
    timers = b"[Rank 0] time (ms) | fwd: 70.0 | bwd: 700.0 | bwd_inner: 500.0 | bwd_allreduce: 200.0 | step: 30.0\n"
    content = (SAMPLES / "hf-trainer.log").read_bytes()
    first_line, tail = content.split(b"\n", 1)
    log = read(first_line + b"\n" + timers + tail)

    assert (log.framework, log.durations_from, log.reached) == ("Hugging Face", "bar", 120)
    assert log.parts["communication"].least_s == pytest.approx(0.2)


@pytest.mark.parametrize(
    "row", ["{0},2.5", '{{"step": {0}, "step_time_s": 2.5}}', '{{"step": {0}, "step_time_s": "2.5"}}']
)
def test_a_log_of_more_steps_than_memory_should_hold_is_refused_with_its_line(monkeypatch, row):
    monkeypatch.setattr("planner.runlog.collect.MOST_LINES", 30)
    monkeypatch.setattr("planner.runlog.read.MOST_LINES", 30)
    header = [] if row.startswith("{{") else ["step,step_time_s"]

    def content(steps: int) -> bytes:
        return ("\n".join([*header, *(row.format(step) for step in range(1, steps + 1))]) + "\n").encode()

    assert len(read(content(30)).steps) == 30
    with pytest.raises(InputFileError, match=f"^run.log:{31 + len(header)}: expected at most 30 lines about steps"):
        read(content(31))
