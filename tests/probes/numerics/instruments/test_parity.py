"""Parity of real runs: one precision against itself, and a broken one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from probes.numerics.instruments.parity import parity, plan_steps_and_seeds, planned, train_run  # noqa: E402 - it needs torch
from probes.numerics.instruments.time import OutOfTimeError, Plain  # noqa: E402
from probes.numerics.lowering.recipes import choose_lower, lower_by_id  # noqa: E402
from probes.numerics.tasks import find_task  # noqa: E402
from probes.numerics.tasks.interface import Job, Task  # noqa: E402
from tests.probes.numerics.planted import PLACE, ample  # noqa: E402


class Raw(torch.nn.Module):
    """One product without a layer that torch knows."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(8, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[rows, 8]` to `[rows, 2]`."""
        return x @ self.weight


PLAN = {"steps": 20, "seeds": 4, "precisions": ["bf16", "nvfp4"], "seed_s": 0.0, "alone_s": {}}


def kept(runs: dict[str, Plain]):
    """A keep that has the plan already, and remembers."""

    def keep(key: str, compute: object) -> Plain:
        if key not in runs:
            runs[key] = compute()  # type: ignore[operator]
        return runs[key]

    return keep


def test_bf16_is_equivalent_and_the_null_pair_shows_almost_nothing():
    answer = parity(
        find_task("char-lm"),
        PLACE,
        choose_lower(["bf16", "nvfp4"]),
        ample(),
        kept({"plan": PLAN | {"seeds": 3}}),
        margin=0.05,
    )

    (bf16, nvfp4) = answer["pairs"]
    assert (bf16["verdict"], bf16["mode"]) == ("equivalent", "real")
    assert (bf16["real_layers"], bf16["lowered_layers"]) == (9, 9)  # under autocast every product, the head's too
    assert (nvfp4["mode"], nvfp4["real_layers"], nvfp4["lowered_layers"]) == ("emulated", 0, 8)
    assert (answer["tests"], answer["alpha"]) == (2, 0.05)
    assert abs(answer["null"]["difference_mid"]) < abs(nvfp4["difference_mid"])
    assert answer["null"]["verdict"] == "equivalent"
    assert (answer["seeds"], answer["steps"], answer["cut_short"]) == (3, 20, [])


def test_a_broken_precision_is_not_equivalent():
    broken = replace(lower_by_id("fp8"), id="nvfp4", forward_format="e2m1", gradient_format="e2m1")
    # FP4 with one scale per tensor flushes most of every gradient

    answer = parity(
        find_task("char-lm"), PLACE, [broken], ample(), kept({"plan": PLAN | {"seeds": 3, "steps": 60}}), margin=0.005
    )

    assert answer["pairs"][0]["verdict"] == "not_equivalent"
    assert answer["pairs"][0]["difference_mid"] > 0.005


def test_a_run_that_is_kept_is_not_trained_again():
    runs: dict[str, Plain] = {"plan": PLAN | {"precisions": ["bf16"], "seeds": 3, "steps": 2}}
    arguments = (
        find_task("char-lm"),
        PLACE,
        choose_lower(["bf16"]),
        ample(),
        kept(runs),
    )
    first = parity(*arguments, margin=0.02)
    walls = {key: run.get("wall_s") for key, run in runs.items()}

    assert parity(*arguments, margin=0.02) == first
    assert {key: run.get("wall_s") for key, run in runs.items()} == walls
    assert set(runs) == {
        "plan",
        "bf16/applied",
        *(f"{name}/{seed}" for name in ("fp32", "fp32-moved", "bf16") for seed in range(3)),
    }


def test_precisions_for_which_there_is_no_time_are_left_out_the_dearest_first():
    costs_s = {"bf16": 0.02, "fp16": 0.30, "nvfp4": 0.05}

    def plan(left_s: float) -> tuple[list[str], int, int]:
        shared = plan_steps_and_seeds(0.01, costs_s, 8, left_s, 200)
        return shared["precisions"], shared["seeds"], shared["steps"]

    # 3 seeds of 30 steps in FP32 twice and in all three take 90 x 0.39 s, of the 85 % that are planned for
    assert plan(0.1) == (["bf16"], 3, 30)
    assert plan(90 * 0.39 / 0.85 - 1.0)[0] == ["bf16", "nvfp4"]
    assert plan(90 * 0.39 / 0.85 + 1.0) == (["bf16", "fp16", "nvfp4"], 3, 30)
    assert plan(1e6) == (["bf16", "fp16", "nvfp4"], 8, 200)


def test_the_time_of_a_step_is_measured_in_each_precision():
    plan = planned(find_task("char-lm"), PLACE, choose_lower(["bf16"]), 8, 1e-3)

    assert plan["precisions"] == ["bf16"]
    assert (plan["seeds"], plan["steps"]) == (3, 30)
    assert 0.0 < plan["alone_s"]["bf16"] < plan["seed_s"]


def test_what_was_cut_short_is_named():
    runs: dict[str, Plain] = {"plan": PLAN | {"precisions": ["bf16"], "seed_s": 1e6, "steps": 1}}
    runs["plan"] |= {"alone_s": {"fp8": 1e6}, "base_s": 2.5e5}

    answer = parity(find_task("char-lm"), PLACE, choose_lower(["bf16", "fp8"]), ample(), kept(runs), margin=0.02)

    assert answer["seeds"] == 2
    why = "the slowest comes last: a step takes 4.0 times FP32's on this device"
    assert answer["cut_short"] == ["2 of 4 seeds missing", f"fp8: not run ({why})"]
    fp8 = answer["pairs"][1]
    assert (fp8["verdict"], fp8["pairs"], fp8["lowered_matrices"], fp8["matrices"]) == ("not_run", 0, 8, 11)


def test_a_precision_that_was_left_out_is_run_late_where_time_is_left_over():
    runs: dict[str, Plain] = {"plan": PLAN | {"precisions": ["bf16"], "steps": 1, "alone_s": {"fp8": 0.0}}}

    answer = parity(find_task("char-lm"), PLACE, choose_lower(["bf16", "fp8"]), ample(), kept(runs), margin=0.02)

    assert [pair["precision"] for pair in answer["pairs"]] == ["bf16", "fp8"]
    assert answer["pairs"][1]["pairs"] == 4
    assert answer["cut_short"] == []


def test_a_precision_that_reaches_nothing_is_not_called_equivalent():
    def make(seed: int, _size: str, _device: object) -> Job:
        torch.manual_seed(seed)
        return Job(
            model=Raw(), batch=lambda _step: torch.ones(4, 8),
            loss=lambda model, x: model(x).float().square().mean(), optimizer=lambda p: torch.optim.SGD(p, lr=0.01),
        )  # fmt: skip

    task = Task(id="raw", what="raw", metrics=("loss",), make=make, steps={"small": 9, "large": 9})
    runs: dict[str, Plain] = {"plan": PLAN | {"precisions": ["bf16"], "steps": 2}}

    answer = parity(task, PLACE, choose_lower(["bf16", "nvfp4"]), ample(), kept(runs), margin=9.0)

    bf16, nvfp4 = answer["pairs"]
    assert (bf16["verdict"], bf16["lowered_matrices"], bf16["matrices"]) == ("equivalent", 1, 1)
    assert (nvfp4["verdict"], nvfp4["pairs"], nvfp4["lowered_matrices"]) == ("not_applied", 0, 0)
    assert "the recipe lowers nn.Linear" in nvfp4["reason"]
    assert (answer["tests"], answer["cut_short"]) == (1, [])


def test_the_mean_of_fp32_beside_a_pair_is_that_of_its_own_seeds():
    def run(loss: float) -> Plain:
        return {"figures": {"loss": loss}, "wall_s": 0.1, "steps": 1, "skipped": 0, "real_layers": 0,
                "lowered_layers": 1}  # fmt: skip

    runs: dict[str, Plain] = {
        "plan": PLAN | {"precisions": ["bf16"], "seeds": 4, "alone_s": {"fp8": 0.0}, "base_s": 1.0}
    }
    runs |= {f"{name}/{seed}": run(1.0 + seed) for name in ("fp32", "fp32-moved", "bf16") for seed in range(4)}
    runs |= {f"fp8/{seed}": run(2.0 + seed) for seed in range(2)}

    def keep(key: str, compute: Callable[[], Plain]) -> Plain:
        if key.startswith("fp8/") and key[-1] in "23":
            raise OutOfTimeError
        return kept(runs)(key, compute)

    answer = parity(find_task("char-lm"), PLACE, choose_lower(["bf16", "fp8"]), ample(), keep, margin=0.02)

    bf16, fp8 = answer["pairs"]
    assert (answer["baseline_mean"], bf16["baseline_mean"], fp8["baseline_mean"]) == (2.5, 2.5, 1.5)
    assert fp8["mean"] - fp8["baseline_mean"] == fp8["difference_mid"] == 1.0
    assert answer["cut_short"][0].startswith("fp8: 2 of 4 seeds missing")


def test_where_fp32_itself_breaks_down_nothing_is_said_of_the_lower_precision():
    broken = {"figures": {"loss": None}, "wall_s": 0.1, "steps": 1, "skipped": 0, "real_layers": 9, "lowered_layers": 9}
    runs: dict[str, Plain] = {"plan": PLAN | {"precisions": ["bf16"], "seeds": 3}}
    runs |= {f"{name}/{seed}": broken for name in ("fp32", "fp32-moved", "bf16") for seed in range(3)}

    answer = parity(find_task("char-lm"), PLACE, choose_lower(["bf16"]), ample(), kept(runs), margin=0.02)

    assert answer["pairs"][0]["verdict"] == "cannot_tell"
    assert answer["pairs"][0]["reason"].startswith("0 pairs of runs cannot tell")
    assert "3 runs of FP32 itself ended without a finite figure" in answer["pairs"][0]["reason"]
    assert answer["baseline_mean"] is None


def test_fp16_runs_under_a_scaler_whose_skips_are_counted():
    run = train_run(find_task("char-lm"), PLACE, lower_by_id("fp16"), 0, 2)

    assert run["steps"] == 2
    assert run["skipped"] <= 1
