"""`mpplan numerics`: what is asked, what is refused, and a real run on the CPU within its budget."""

from __future__ import annotations

import json
from contextlib import closing
from importlib.util import find_spec

import pytest
from jsonschema import Draft202012Validator

from mpplan.ui.schema import file_of

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--task", "nope"), "unknown task `nope`"),
        (("--device", "cpu", "--gpu-index", "1"), "--gpu-index cannot be combined with --device cpu"),
        (("--task", ","), "--task: expected a name, found nothing"),
        (("--precision", "fp7"), "unknown precision `fp7`"),
        (("--metric", "bleu"), "--metric: unknown metric `bleu`"),
        (("--size", "huge"), "--size: unknown size `huge`"),
        (("--margin", "-1"), "--margin: expected a number above 0, found `-1`"),
        (("--margin", "nan"), "--margin: expected a number above 0, found `nan`"),
        (("--device", "tpu"), "--device: unknown device `tpu`"),
        (("--budget", "soon"), "--budget: `soon` is not a duration"),
        (("--budget", "0"), "--budget: `0` is not a duration"),
        (("--budget", "-3s"), "--budget: `-3s` is not a duration"),
        (("--resume",), "there is no run to continue"),
        (("-o", "r.txt"), "--output: a record ends in `.jsonl`"),
        (("-o", "-"), "--output: the record cannot go to stdout"),
        (("-o", "no/such/place.jsonl"), "cannot write `no/such/place.jsonl`"),
    ],
)
def test_a_value_that_cannot_be_is_refused_before_anything_starts(run, arguments, error) -> None:
    result = run("numerics", *arguments)

    assert result.code == 2
    assert f"error: {error}" in result.err
    assert "hint: " in result.err


def test_stdout_is_offered_neither_by_the_help_nor_by_a_hint_since_the_record_cannot_go_there(run) -> None:
    shown = " ".join(run("numerics", "--help").out.split())
    refused = run("numerics", "-o", "no/such/place.jsonl").err

    assert "-o, --output PATH Write to this file. --json" in shown
    assert refused.endswith("hint: choose another path\n")


def test_an_existing_record_is_not_overwritten(run, home) -> None:
    (home / "r.jsonl").write_text("something\n")

    result = run("numerics", "--device", "cpu", "-o", "r.jsonl")

    assert result.code == 2
    assert "`r.jsonl` exists already" in result.err
    assert (home / "r.jsonl").read_text() == "something\n"


def test_a_packed_record_is_refused_before_anything_is_written(run, home) -> None:
    result = run("numerics", "--device", "cpu", "-o", "r.jsonl.gz")

    assert result.code == 2
    assert "error: --output: a record is not packed while it is measured" in result.err
    assert "hint: name it `r.jsonl`" in result.err


@pytest.mark.skipif(find_spec("sklearn") is not None, reason="scikit-learn is installed")
def test_digits_without_scikit_learn_say_what_to_install(run) -> None:
    result = run("numerics", "--device", "cpu", "--task", "digits-cnn")

    assert result.code == 4
    assert "error: scikit-learn is not installed, and the task `digits-cnn` needs it" in result.err
    assert "hint: pip install 'mpplan[numerics]'" in result.err


@needs_torch
def test_without_a_gpu_it_says_so_and_offers_the_cpu(run) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    result = run("numerics")

    assert result.code == 4
    assert "`mpplan numerics --device cpu`" in result.err


OWN = """
import torch

def make(seed):
    generator = torch.Generator().manual_seed(seed)
    x, w = torch.randn(128, 16, generator=generator), torch.randn(16, 1, generator=generator)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    return model, [(x, x @ w)], lambda model, batch: torch.nn.functional.mse_loss(model(batch[0]), batch[1])
"""


@needs_torch
def test_a_task_of_ones_own_is_answered_as_json_that_agrees_with_its_schema_and_resumed(run, home) -> None:
    (home / "numerics_command_task.py").write_text(OWN, encoding="utf-8")
    asked = ("--task", "numerics_command_task:make", "--precision", "bf16,fp8", "--seeds", "3")

    result = run("numerics", "--device", "cpu", *asked, "--budget", "10m", "--json")

    assert result.code == 0, result.err
    document = json.loads(result.out)
    schema = json.loads(file_of("mpplan.numerics/1").read_text(encoding="utf-8"))
    assert [fault.message for fault in Draft202012Validator(schema).iter_errors(document)] == []
    assert document["tasks"][0]["id"] == "numerics_command_task:make"
    modes = {pair["precision"]: pair["mode"] for pair in document["parity"][0]["pairs"]}
    assert modes == {"bf16": "real", "fp8": "emulated"}
    assert document["complete"]  # so small a task ends long before its time, however slow the machine

    resumed = run("numerics", "--device", "cpu", "--resume", "--budget", "2s")
    assert resumed.code == 0
    assert "Parity with FP32: paired runs from the same seeds" in resumed.out
    assert document["record"] in resumed.err

    strict = run("numerics", "--device", "cpu", "--resume", "--budget", "2s", "--strict", "--margin", "0.5")
    assert strict.code == 2
    assert "--margin: the record was started with `0.02`, not `0.5`" in strict.err


@needs_torch
def test_strict_exits_5_where_something_was_cut_short(run) -> None:
    result = run("numerics", "--device", "cpu", "--task", "char-lm", "--budget", "2s", "--strict")

    assert result.code == 5
    assert "warning: cut short: char-lm: loss scaling" in result.err
    assert "parts were cut short" in result.err


WRONG = {
    "exits": "failed: it called sys.exit(3)",
    "nan": "FP32 training gives no finite loss from step 0",
    "double": "the weight `weight` is in float64; every comparison starts from FP32 weights",
    "two": "returned a tuple of 2",
}


@needs_torch
@pytest.mark.parametrize(("factory", "error"), WRONG.items())
def test_a_task_that_cannot_be_trained_is_refused(home, monkeypatch, factory, error) -> None:
    (home / "numerics_refused_tasks.py").write_text(BROKEN, encoding="utf-8")
    monkeypatch.syspath_prepend(str(home))
    from planner.errors import UsageError
    from probes.numerics.session.options import NumericsOptions
    from probes.numerics.session.suite import NumericsSession

    task = f"numerics_refused_tasks:{factory}"
    asked = NumericsOptions(device="cpu", tasks=(task,), budget_s=20.0, path=str(home / "r.jsonl"))
    with pytest.raises(UsageError) as caught, closing(NumericsSession(asked)) as session:
        session.run()

    assert f"--task: `{task}`" in str(caught.value)
    assert error in str(caught.value)
    assert [path.name for path in home.iterdir() if path.suffix == ".jsonl"] == []


@needs_torch
@pytest.mark.parametrize(
    ("factory", "error"),
    [pytest.param(*wrong, marks=[] if wrong[0] == "exits" else [pytest.mark.long]) for wrong in WRONG.items()],
)
def test_a_task_that_cannot_be_trained_ends_with_2_and_leaves_nothing(run, home, factory, error) -> None:
    (home / "numerics_broken_tasks.py").write_text(BROKEN, encoding="utf-8")
    result = run(
        "numerics", "--device", "cpu", "--task", f"numerics_broken_tasks:{factory}", "--budget", "20s", "-o", "r.jsonl"
    )

    assert result.code == 2
    assert f"error: --task: `numerics_broken_tasks:{factory}`" in result.err
    assert error in result.err
    assert "hint: " in result.err
    assert result.out == ""
    assert [path.name for path in home.iterdir() if path.suffix == ".jsonl"] == []


def test_a_budget_is_hinted_in_seconds_and_minutes(run) -> None:
    assert "hint: write it like `120s` or `3m`" in run("numerics", "--device", "cpu", "--budget", "0").err


@needs_torch
def test_resume_without_a_record_says_that_it_starts_and_nothing_measured_is_no_result(run, home) -> None:
    (home / "numerics_slow_task.py").write_text(SLOW, encoding="utf-8")
    result = run(
        "numerics", "--device", "cpu", "--task", "numerics_slow_task:make", "--budget", "1s", "--resume", "-o",
        "none.jsonl",
    )  # fmt: skip

    assert "nothing to resume in `none.jsonl`; starting a new run" in result.err
    assert result.code == 5
    assert "error: nothing was measured in the time given" in result.err


BROKEN = """
import sys, torch

def parts(model, factor=1.0):
    x = torch.ones(4, 8)
    return model, [x], lambda network, batch: factor * network(batch.to(network.weight.dtype)).square().mean()

def nan():
    return parts(torch.nn.Linear(8, 1), float("nan"))

def double():
    return parts(torch.nn.Linear(8, 1).double())

def exits():
    sys.exit(3)

def two():
    return parts(torch.nn.Linear(8, 1))[:2]
"""
SLOW = """
import time, torch

def make():
    def loss(model, batch):
        time.sleep(0.3)
        return model(batch).square().mean()
    return torch.nn.Linear(8, 1), [torch.ones(4, 8)], loss
"""
