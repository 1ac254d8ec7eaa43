"""Recipes that a CPU emulates: left out by default, measured when named."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from probes.precisions import recipe_by_id  # noqa: E402
from probes.record.options import Options  # noqa: E402
from probes.session import suite  # noqa: E402
from probes.session.slow import too_slow  # noqa: E402
from probes.session.suite import Session  # noqa: E402
from tests.probes.build import CPU, ScriptedClock, plan  # noqa: E402

RECIPES = ("fp32", "bf16-autocast", "bf16-pure")


def times(**seconds: float) -> ScriptedClock:
    """A clock that tells what a step takes by the type of the block's weights and whether it is cast."""

    def sample(trial: object, _: int) -> float:
        recipe = trial.training.recipe.id  # type: ignore[attr-defined]
        return seconds[recipe.replace("-", "_")]

    return ScriptedClock(sample)


def test_a_recipe_over_three_times_slower_than_fp32_is_named_with_its_ratio() -> None:
    clock = times(fp32=0.02, bf16_autocast=0.25, bf16_pure=0.05)

    ratios = too_slow(plan(CPU), clock, [recipe_by_id(name) for name in RECIPES])

    assert ratios == {"bf16-autocast": pytest.approx(12.5)}


def session(path: Path, monkeypatch: pytest.MonkeyPatch, **options: object) -> Session:
    monkeypatch.setattr(suite, "too_slow", lambda plan, clock, among: {"bf16-autocast": 12.5})
    monkeypatch.setattr(suite, "canary_clock", lambda plan, usual_s: None)
    return Session(Options(device="cpu", path=str(path), **options))  # type: ignore[arg-type]


def test_what_is_too_slow_is_left_out_with_the_reason_and_how_to_measure_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = session(tmp_path / "r.jsonl", monkeypatch)
    run.check_recipes()
    run.close()

    assert "bf16-autocast" not in {recipe.id for recipe in run.plan.recipes}
    line = run.ledger.known["support/bf16-autocast"]
    assert line.status == "unsupported"
    assert line.reason == "12 times slower than FP32 on this CPU; `--precision bf16-autocast` measures it"


def test_a_recipe_that_is_asked_for_by_name_is_measured_however_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = session(tmp_path / "r.jsonl", monkeypatch)
    first.check_recipes()
    first.close()

    run = session(tmp_path / "r.jsonl", monkeypatch, precisions=("fp32", "bf16-autocast"), resume=True)
    run.check_recipes()
    run.close()

    assert [recipe.id for recipe in run.plan.recipes] == ["fp32", "bf16-autocast"]
