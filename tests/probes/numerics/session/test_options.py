"""Options cross to the process as they are."""

from __future__ import annotations

from probes.numerics.session.options import NumericsOptions


def test_options_come_back_from_json():
    options = NumericsOptions(device="cpu", tasks=("char-lm",), precisions=None, margin=0.1, budget_s=5.0, resume=True)

    assert NumericsOptions.from_json(options.to_json()) == options
    assert NumericsOptions.from_json(NumericsOptions().to_json()) == NumericsOptions()


def test_what_was_not_given_agrees_with_anything():
    asked = NumericsOptions(device="cpu", seeds=4).asked()

    assert asked["--seeds"] == 4
    assert {flag for flag, value in asked.items() if value is None} == {
        "--task", "--precision", "--metric", "--margin", "--size",
    }  # fmt: skip
