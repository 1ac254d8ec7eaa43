"""What a part leaves in the record."""

from __future__ import annotations

from probes.numerics.session.lines import lines_of

PAIR = {
    "precision": "fp8-rowwise", "baseline": "fp32", "mode": "emulated", "metric": "loss", "verdict": "equivalent",
    "difference_low": -0.01, "difference_mid": 0.0, "difference_high": 0.01, "margin": 0.02, "seeds_needed": 3,
    "seeds_would_show": "equivalent", "pairs": 4, "diverged": 0, "skipped_step_ratio": None, "real_layers": 0,
    "lowered_layers": 8,
}  # fmt: skip


def test_a_pair_is_a_line_under_the_precision_that_a_plan_asks_for():
    (line,) = lines_of("char-lm", "parity", {"pairs": [PAIR], "steps": 30, "seeds": 4})

    assert (line.probe_id, line.precision, line.recipe) == ("numerics/char-lm/parity/fp8-rowwise", "fp8", "fp8-rowwise")
    assert (line.figures.verdict, line.figures.emulated, line.figures.seeds) == ("equivalent", True, 4)
    (mixed,) = lines_of("char-lm", "parity", {"pairs": [PAIR | {"mode": "mixed", "real_layers": 4}], "steps": 30})
    assert (mixed.figures.emulated, mixed.figures.real_layers, mixed.figures.lowered_layers) == (True, 4, 8)


def test_a_pair_without_runs_is_none_and_a_task_of_the_users_own_is_not_named():
    assert list(lines_of("char-lm", "parity", {"pairs": [PAIR | {"pairs": 0}], "steps": 30, "seeds": 0})) == []
    (line,) = lines_of("secret.module:make", "parity", {"pairs": [PAIR], "steps": 30, "seeds": 4})
    assert (line.probe_id, line.figures.task) == ("numerics/own/parity/fp8-rowwise", "own")


def test_the_usual_scaling_and_a_measured_policy_are_lines():
    default_run = {"name": "usual", "steps": 50, "skipped_step_ratio": 0.02, "steady_skipped_step_ratio": 0.0005,
             "steady_basis": "arithmetic"}  # fmt: skip
    scaling = {
        "dynamic": [default_run, default_run | {"name": "short"}],
        "precision": "fp16",
        "mode": "real",
        "trains": True,
    }
    policy = {"precision": "nvfp4", "mode": "emulated", "margin": 0.02, "steps": 20, "seeds": 3, "baseline": "fp32",
              "loss_change_low": -0.01, "loss_change": -0.001, "loss_change_high": 0.008,
              "lowered_parameters_ratio": 0.9}  # fmt: skip

    (scaled,) = lines_of("char-lm", "loss_scaling", scaling)
    (advised,) = lines_of("char-lm", "policy", policy)

    assert (scaled.figures.skipped_step_ratio, scaled.figures.steady_skipped_step_ratio) == (0.02, 0.0005)
    assert (scaled.figures.steady_basis, scaled.figures.trains) == ("arithmetic", True)
    assert (advised.figures.lowered_parameters_ratio, advised.figures.difference_mid) == (0.9, -0.001)
    assert (advised.figures.difference_low, advised.figures.difference_high, advised.figures.seeds) == (-0.01, 0.008, 3)
    assert list(lines_of("char-lm", "policy", policy | {"lowered_parameters_ratio": None})) == []  # none was shown
    assert list(lines_of("char-lm", "histograms", {})) == []
