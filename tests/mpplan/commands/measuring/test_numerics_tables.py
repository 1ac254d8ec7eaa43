"""The tables of `mpplan numerics`, also of an answer that was cut off."""

from __future__ import annotations

import fcntl
import json
import os
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from mpplan.commands.measuring.numerics_tables import is_empty, numerics_text, percent

ROOT = Path(__file__).parents[4]
TASK = {
    "id": "char-lm", "what": "a decoder", "parameters": 120704, "loss_unit": "nats", "seeded_batches": True,
}  # fmt: skip
DOCUMENT = {
    "device_name": "Some CPU", "size": "small", "tasks": [TASK],
    "loss_scaling": [], "histograms": [], "parity": [], "sensitivity": [], "policy": [], "schedule": [],
}  # fmt: skip
PAIR = {
    "precision": "nvfp4", "mode": "emulated", "difference_low": -0.01, "difference_mid": 0.002, "difference_high": 0.04,
    "verdict": "not_equivalent", "seeds_needed": None, "seeds_would_show": None, "pairs": 3, "diverged": 1,
    "real_layers": 0, "lowered_layers": 8, "lowered_matrices": 8, "matrices": 11, "reason": "a run ended in NaN",
}  # fmt: skip
PARITY = {
    "task": "char-lm", "metric": "loss", "margin": 0.02, "seeds": 4, "steps": 30, "pairs": [PAIR], "tests": 1,
    "alpha": 0.05,
}  # fmt: skip
SCALING = {
    "task": "char-lm", "static": [{}] * 41, "largest_without_overflow_log2": 16, "smallest_with_overflow_log2": None,
    "dynamic": [{"name": "usual", "steps": 50, "skipped_step_ratio": 0.02, "steady_skipped_step_ratio": 1 / 2001,
                 "steady_basis": "arithmetic", "late_skipped_step_ratio": 0.0}],
    "static_steps": 4, "why_not_applied": None, "largest_without_overflow_warm_log2": 18, "trains": True,
}  # fmt: skip


def test_an_answer_without_any_section_still_says_what_was_trained():
    assert numerics_text(DOCUMENT) == "Some CPU, small tasks\n  char-lm: a decoder, 120,704 parameters\n"


def test_a_pair_says_how_it_was_run_and_shouts_where_it_is_not_equal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = numerics_text(DOCUMENT | {"parity": [PARITY]})

    row = next(line for line in text.splitlines() if "nvfp4" in line)
    assert row.split("  ")[0] == "char-lm"
    for cell in ("emulated", "+0.002", "\N{MINUS SIGN}0.01 … +0.04", "± 0.02", "NOT equivalent", "8 of 11", "nats"):
        assert cell in row


def test_scales_are_powers_and_a_limit_that_was_not_found_is_none():
    text = numerics_text(DOCUMENT | {"loss_scaling": [SCALING]})

    assert "2¹⁶" in text
    assert "2¹⁸" in text  # after some training
    assert "none" in text
    assert "0.05%, by arithmetic" in text
    assert "2^" not in text
    assert "does not train" not in text


def test_a_precision_that_takes_no_step_is_said_not_to_train():
    never = {"name": "usual", "steps": 400, "skipped_step_ratio": 1.0, "steady_skipped_step_ratio": None,
             "steady_basis": None, "late_skipped_step_ratio": None}  # fmt: skip

    text = numerics_text(DOCUMENT | {"loss_scaling": [SCALING | {"dynamic": [never], "trains": False}]})

    assert "char-lm: FP16 does not train it" in text
    assert "100%" in text
    assert "arithmetic" not in text
    assert "–" in text


def test_what_was_not_tried_is_a_dash_and_what_always_overflows_says_so():
    limits = dict.fromkeys(("largest_without_overflow_log2", "largest_without_overflow_warm_log2"))
    untried = SCALING | limits | {"static": [], "dynamic": [], "trains": None}
    failing = SCALING | {"static": [{}] * 3, "largest_without_overflow_log2": None, "smallest_with_overflow_log2": 0}

    (nothing,) = (line for line in numerics_text(DOCUMENT | {"loss_scaling": [untried]}).splitlines() if "–" in line)
    assert nothing.split() == ["char-lm", "–", "–", "–", "0", "–", "–", "–"]
    (row,) = (line for line in numerics_text(DOCUMENT | {"loss_scaling": [failing]}).splitlines() if "2⁰" in line)
    assert row.split()[1:4] == ["all", "overflow", "2⁰"]


@pytest.mark.parametrize(("steps", "late"), [(1, 0.0), (50, 0.04)])
def test_a_run_that_has_not_settled_says_nothing_of_a_long_one(steps, late):
    run = SCALING["dynamic"][0] | {"steps": steps, "late_skipped_step_ratio": late}

    text = numerics_text(DOCUMENT | {"loss_scaling": [SCALING | {"dynamic": [run]}]})

    assert "arithmetic" not in text
    assert ("1 step " in text) == (steps == 1)


def test_a_precision_that_reaches_nothing_or_was_not_run_is_not_called_equivalent(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    nowhere = dict.fromkeys(("difference_low", "difference_mid", "difference_high")) | {"pairs": 0, "diverged": 0}
    off = PAIR | nowhere | {"verdict": "not_applied", "lowered_matrices": 0, "reason": "the model has no layer for it"}
    unrun = PAIR | nowhere | {"verdict": "not_run", "precision": "fp16"}

    text = numerics_text(DOCUMENT | {"parity": [PARITY | {"pairs": [off, unrun]}]})

    rows = {line.split()[1]: line for line in text.splitlines() if line.startswith("char-lm ")}
    assert "not applied" in rows["nvfp4"]
    assert "0 of 11" in rows["nvfp4"]
    assert "not run" in rows["fp16"]
    assert "cannot tell" not in text
    assert "char-lm, nvfp4: the model has no layer for it" in text


def test_runs_of_fp32_that_broke_down_are_told_where_nothing_can_be_said_of_the_precision(monkeypatch):
    none = dict.fromkeys(("difference_low", "difference_mid", "difference_high", "seeds_needed", "seeds_would_show"))
    why = "0 pairs of runs cannot tell; at least 2 are needed; 3 runs of FP32 itself ended without a finite figure"
    pair = PAIR | none | {"verdict": "cannot_tell", "pairs": 0, "diverged": 0, "differences": [None] * 3, "reason": why}

    monkeypatch.setenv("COLUMNS", "200")
    assert f"char-lm, nvfp4: {why}" in numerics_text(DOCUMENT | {"parity": [PARITY | {"pairs": [pair]}]})


def test_a_task_of_ones_own_says_whose_batches_it_has_and_no_unit_that_nobody_gave():
    own = TASK | {"id": "mine:make", "loss_unit": "loss", "seeded_batches": False}

    text = numerics_text(DOCUMENT | {"tasks": [own], "parity": [PARITY | {"task": "mine:make"}]})

    assert "same batches in every pair: seeds vary the start only" in " ".join(text.split())
    assert "nats" not in text


def test_nothing_measured_is_told_from_something():
    assert is_empty(DOCUMENT)
    assert is_empty(DOCUMENT | {"loss_scaling": [SCALING | {"static": []}]})
    assert is_empty(DOCUMENT | {"parity": [PARITY | {"pairs": [PAIR | {"verdict": "not_run"}]}]})
    assert not is_empty(DOCUMENT | {"loss_scaling": [SCALING]})
    assert not is_empty(DOCUMENT | {"parity": [PARITY]})


def test_a_run_that_was_emulated_in_part_says_how_many_layers_were_real():
    mixed = PAIR | {"mode": "mixed", "real_layers": 4, "lowered_layers": 20}

    assert "mixed, 4 of 20 real" in numerics_text(DOCUMENT | {"parity": [PARITY | {"pairs": [mixed]}]})


def test_seeds_that_would_show_another_verdict_name_it_and_the_tests_are_counted():
    doubtful = PAIR | {"verdict": "cannot_tell", "seeds_needed": 74, "seeds_would_show": "not_equivalent"}

    text = numerics_text(DOCUMENT | {"parity": [PARITY | {"pairs": [doubtful, PAIR], "tests": 2}]})

    assert "74: NOT equivalent" in text
    assert "all 2 tests" in text
    assert "up to 10%" in text  # 1 - 0.95^2


def test_layers_stand_in_the_order_of_the_document_with_what_could_not_be_told():
    layer = {"layers": ["head"], "kinds": ["last"], "gradient_error_ratio": 0.146, "told_from_next": True,
             "diverged": 0, "loss_change_low": -0.01, "loss_change_high": 0.02}  # fmt: skip
    other = layer | {"layers": ["norm"], "told_from_next": None, "loss_change_low": None}
    row = {"task": "char-lm", "precision": "fp8", "mode": "emulated", "method": "one at a time", "seeds": 3,
           "steps": 20,
           "layers": [layer, other], "words": "head suffers most", "notes": ["FP32 does not repeat"]}  # fmt: skip

    lines = numerics_text(DOCUMENT | {"sensitivity": [row]}).splitlines()

    head, norm = (next(line for line in lines if line.lstrip().startswith(name)) for name in ("head ", "norm "))
    assert head.split()[-4:] == ["\N{MINUS SIGN}0.01", "…", "+0.02", "yes"]
    assert norm.split()[-2:] == ["–", "–"]
    assert "char-lm: head suffers most" in lines
    assert "char-lm: FP32 does not repeat" in lines


def test_a_schedule_that_nobody_can_recommend_says_so():
    low = {"name": "all low", "loss_change_low": -0.08, "loss_change_high": 0.06, "diverged": 0, "seeds": 4,
           "verdict": "cannot_tell"}  # fmt: skip
    row = {"task": "digits-cnn", "precision": "fp8", "mode": "emulated", "steps": 37, "schedules": [low],
           "recommended": None, "words": "cannot be told with 4 seeds"}  # fmt: skip

    text = numerics_text(DOCUMENT | {"schedule": [row]})

    assert "\N{MINUS SIGN}0.08 … +0.06" in text
    assert "digits-cnn: cannot be told with 4 seeds" in text


@pytest.mark.parametrize(
    ("ratio", "shown"), [(None, "–"), (0.0, "0%"), (3e-6, "<0.01%"), (0.01234, "1.23%"), (1.0, "100%")]
)
def test_a_share_is_never_rounded_to_nothing(ratio, shown):
    assert percent(ratio) == shown


def in_a_terminal(document: Path, columns: int) -> list[str]:
    """The lines of an answer as a terminal of this width shows it."""
    program = (
        "import json, sys; from mpplan.commands.measuring.numerics_tables import numerics_text;"
        "sys.stdout.write(numerics_text(json.load(open(sys.argv[1]))))"
    )
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [sys.executable, "-c", program, str(document)], stdout=theirs, cwd=ROOT, env=environment
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # Linux: the other end is closed
                break
            if not part:
                break
            shown += part
        assert process.wait() == 0
    os.close(ours)
    return shown.decode().splitlines()


def test_a_terminal_of_80_columns_shows_every_column(tmp_path):
    recorded = ROOT / "tests" / "planner" / "safety" / "numerics.json"
    document = json.loads(recorded.read_text(encoding="utf-8"))

    lines = in_a_terminal(recorded, 80)

    assert max(map(len, lines)) <= 80
    assert not any(line.endswith("…") for line in lines)
    at = next(number for number, line in enumerate(lines) if line.startswith("Parity with FP32"))
    head = next(line for line in lines[at:] if line.startswith("task "))
    assert head.split()[:3] == ["task", "precision", "verdict"]
    for word in ("seeds", "steps"):
        assert word in head
    pair = document["parity"][0]["pairs"][0]
    row = next(line for line in lines[at:] if line.startswith("char-lm") and pair["precision"] in line)
    assert "equivalent" in row
    assert str(pair["pairs"]) in row.split()
    assert str(document["parity"][0]["steps"]) in row.split()
    text = " ".join(" ".join(lines).split())
    for cell in ("9 of 11", "by arithmetic", "needed", "lowered", "flushed", "exactly", "high last"):
        assert cell in text
    schedules = lines[next(number for number, line in enumerate(lines) if line.startswith("Schedules")) :]
    assert any("seeds" in line and "steps" in line for line in schedules[:5])
