"""Logs of steps: every format by its sample, and what is wrong with damaged ones."""

from __future__ import annotations

import numpy as np
import pytest

from planner.errors import InputFileError
from planner.imported.source import SourceFile
from planner.imported.steps import STEP_FORMATS, is_step_log, read_steps
from planner.imported.steps.log import WITH_DATA
from planner.imported.steps.run import DOUBTS
from tests.planner.imported.readings import sample, text_file
from tests.planner.runlog.reading import read
from tests.planner.runlog.recipe_writers import composer_console, litgpt_log, olmo_log, torchtune_bar

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
        ("epoch 1 done\n", "log:1", "expected a log of training, understood 0 of 1 lines"),
        ("", "log:1", "expected a log of training, found nothing"),
        ("{'loss': 2.3, 'epoch': 0.5}\n", "log:1", "expected the duration of each step, or the times of two or more"),
    ],
)
def test_a_damaged_log_is_refused_with_its_line(text: str, place: str, what: str) -> None:
    with pytest.raises(InputFileError) as caught:
        read_steps(text_file(text, "log"))
    assert str(caught.value).startswith(f"{place}: ")
    assert what in str(caught.value)


OF_COMPARE = {
    "Composer": (composer_console(range(101, 121), 2.0, of=200), None, False),
    "litgpt": (litgpt_log(range(1, 21), 2.0), None, False),
    "torchtune": (
        [torchtune_bar(1, step, step, 100, 2.0 * step) for step in range(0, 100, 4)], DOUBTS["bar"], False,
    ),
    "OLMo-core": (olmo_log(range(1, 21), 2.0, of=100), DOUBTS["clock"], True),
}  # fmt: skip


@pytest.mark.parametrize("framework", OF_COMPARE)
def test_a_log_that_compare_reads_gives_its_steps_here_too(framework: str) -> None:
    lines, doubt, timed = OF_COMPARE[framework]
    content = ("\n".join(lines) + "\n").encode()
    log, compared = read_steps(SourceFile(name="run.log", content=content)), read(content)

    durations = compared.steps.duration_s
    assert is_step_log(content.decode())
    assert (log.program, compared.framework) == (framework, framework)
    assert log.durations_s.tolist() == durations[~np.isnan(durations)].tolist()
    assert float(np.median(log.durations_s)) == pytest.approx(2.0, rel=0.01)
    assert log.doubts == (WITH_DATA, *([] if doubt is None else [doubt]))
    assert (log.ends is not None) is timed


def test_steps_that_begin_far_into_a_file_are_found_as_compare_finds_them() -> None:
    settings = "".join(f"  argument_{number:05d} ................ {number}\n" for number in range(3000))
    rows = "".join(MEGATRON.format(f"{2 * step:02d}", step, "2000.0") + "\n" for step in range(1, 9))

    assert len(settings) > 65_536
    assert read_steps(text_file(settings + rows)).durations_s.tolist() == [2.0] * 8


def test_a_log_of_two_starts_is_refused_since_the_time_between_them_is_no_training() -> None:
    with pytest.raises(InputFileError, match="expected steps of one start of the program, found another") as error:
        read_steps(text_file("\n".join([*litgpt_log(range(1, 9), 2.0), *litgpt_log(range(1, 9), 2.0)]), "log"))

    assert str(error.value).startswith("log:9: ")
    assert error.value.hint == "pass the part of the log that was measured"
