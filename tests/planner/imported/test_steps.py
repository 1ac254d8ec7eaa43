"""Logs of steps: every format by its sample, and what is wrong with damaged ones."""

from __future__ import annotations

import pytest

from planner.errors import InputFileError
from planner.imported.steps import STEP_FORMATS, read_steps
from planner.imported.steps.log import WITH_DATA
from tests.planner.imported.readings import sample, text_file

OF_FORMAT = {
    "Megatron-LM": "megatron.log",
    "nanotron": "nanotron.log",
    "torchtitan": "torchtitan.log",
    "Hugging Face Trainer": "hf_trainer.log",
    "a table (CSV or JSON Lines)": "steps.csv",
}


def test_every_format_has_a_sample_that_it_alone_recognises_first() -> None:
    assert {form.name for form in STEP_FORMATS} == set(OF_FORMAT)
    for name, file in OF_FORMAT.items():
        first = next(form for form in STEP_FORMATS if form.recognises(sample(file).head))
        assert first.name == name


@pytest.mark.parametrize("file", [*OF_FORMAT.values(), "steps.jsonl"])
def test_every_sample_has_steps_of_about_two_seconds_and_says_what_is_in_them(file: str) -> None:
    log = read_steps(sample(file))

    assert float(log.durations_s.mean()) == pytest.approx(2.0, rel=0.005)
    assert log.doubts[0] == WITH_DATA


@pytest.mark.parametrize(
    ("file", "timed", "zoned", "batch", "program"),
    [
        ("megatron.log", 14, False, 128, "Megatron-LM"),
        ("nanotron.log", 14, False, 128, "nanotron"),
        ("torchtitan.log", 13, False, None, "torchtitan"),  # by the times of 14 lines, of one of two ranks
        ("steps.csv", 14, False, 128, ""),
        ("steps.jsonl", 13, True, None, ""),
    ],
)
def test_steps_end_when_their_lines_say(file: str, timed: int, zoned: bool, batch: float | None, program: str) -> None:
    log = read_steps(sample(file))

    assert log.ends is not None
    assert (len(log.durations_s), len(log.ends.seconds), log.ends.zoned) == (timed, 14, zoned)
    assert (log.sequences_per_step, log.program) == (batch, program)


def test_the_trainer_of_hugging_face_tells_one_mean_without_times() -> None:
    log = read_steps(sample("hf_trainer.log"))

    assert (log.durations_s.tolist(), log.ends) == ([2.0], None)
    assert any("whole run" in doubt for doubt in log.doubts)


def test_the_first_step_is_left_out_where_there_are_enough() -> None:
    three_steps = read_steps(text_file("step,step_time_s\n1,9\n2,2\n3,2\n"))
    two_steps = read_steps(text_file("step,step_time_s\n1,9\n2,2\n"))

    assert three_steps.steady_s.tolist() == [2.0, 2.0]
    assert two_steps.steady_s.tolist() == [9.0, 2.0]


MEGATRON = "[2026-11-20 10:00:{0}] iteration {1}/ 9 | elapsed time per iteration (ms): {2} | global batch size: 8 |"


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        (MEGATRON.format("00", 1, "nan"), "log:1", "expected a number above 0, found `nan`"),
        (MEGATRON.format("00", 1, "5.0") + "\n" + MEGATRON.format("01", 2, "-3"), "log:2", "found `-3`"),
        (
            MEGATRON.format("05", 1, "5.0") + "\n" + MEGATRON.format("01", 2, "5.0"),
            "log:2",
            "later than that of line 1",
        ),
        ("step,step_time_s\n1,0\n", "log:2", "above 0"),
        ("step,step_time_s\n1\n", "log:2", "expected 2 cells, found `1`"),
        ("step,timestamp\n1,noon\n2,later\n", "log:2", "timestamp"),
        ("step,timestamp\n1,2026-11-20T10:00:00\n", "log:2", "times of two or more"),
        ('{"step_time_s": 1}\n{"step_time_s": Infinity}\n', "log:2", "above 0"),
        ('{"step_time_s": 1}\n[]\n', "log:2", "JSON object"),
        ("step,step_time_s\n", "log:1", "found none"),
        ("epoch 1 done\n", "log:1", "unknown format"),
        ("", "log:1", "unknown format"),
        ("{'loss': 2.3, 'epoch': 0.5}\n", "log:1", "expected steps of training, found none"),
    ],
)
def test_a_damaged_log_is_refused_with_its_line(text: str, place: str, what: str) -> None:
    with pytest.raises(InputFileError) as caught:
        read_steps(text_file(text, "log"))
    assert str(caught.value).startswith(f"{place}: ")
    assert what in str(caught.value)
