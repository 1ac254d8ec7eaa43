import numpy as np
import pytest

from planner.rates.parameters import shipped_parameters
from tools.images import fit
from tools.images.fit import errors_of, family_of, predicted, priors, summary, timed_steps

SOME = [step for step in timed_steps() if step.model in ("resnet50", "vit_base_patch16_224", "efficientnet_b0")]


@pytest.mark.parametrize(("name", "family"), [
    ("resnet50", "resnet"), ("tf_efficientnet_b0", "efficientnet"), ("vit_base_patch16_224", "vit"),
    ("gluon_resnext50_32x4d", "resnext"), ("ssl_resnet18", "resnet"),
])  # fmt: skip
def test_a_family_is_the_design_whoever_trained_it(name, family):
    assert family_of(name) == family


def test_every_prior_is_of_a_term_that_only_image_models_have():
    rows = shipped_parameters().rows

    for prior in priors():
        assert prior.id.startswith("image_")
        assert rows[prior.id].value > 0


def test_both_orders_of_channels_of_some_800_models_teach():
    steps = timed_steps()

    assert len(steps) > 1600
    assert 0.45 < np.mean([step.channels_last for step in steps]) < 0.55


def test_the_shipped_terms_are_where_the_fit_left_them():
    rows = shipped_parameters().rows
    values = np.log([rows[prior.id].value for prior in priors()])

    assert float(np.median(np.abs(errors_of(timed_steps(), values)))) < 0.07


def test_a_fit_finds_the_terms_that_steps_were_made_with(monkeypatch):
    truth = np.array([prior.log_value for prior in priors()]) + 0.2
    seconds = predicted(SOME, truth)
    made = [
        fit.TimedStep(
            model=step.model, family=step.family, network=step.network, channels_last=step.channels_last,
            batch=step.batch, seconds=float(time),
        )
        for step, time in zip(SOME, seconds, strict=True)
    ]  # fmt: skip
    monkeypatch.setattr(fit, "STEP_LOG_SD", 1e-3)

    fitted = fit.fit(made)

    assert np.max(np.abs(errors_of(made, fitted.log_values))) < 0.01


def test_a_summary_says_how_far_off():
    assert summary(np.array([-0.1, 0.0, 0.3])) == "3 steps: median error 10.0%, 90th percentile 26.0%, bias +0.0%"


def test_only_the_fitted_rows_are_written_anew(monkeypatch, tmp_path):
    copy = tmp_path / "parameters.csv"
    before = fit.PARAMETERS.read_text(encoding="utf-8")
    copy.write_text(before, encoding="utf-8")
    monkeypatch.setattr(fit, "PARAMETERS", copy)

    values = np.zeros(len(priors()))
    fit.write(fit.Fitted(log_values=values, log_sd=values))

    changed = {
        new.split(",")[0]
        for old, new in zip(before.splitlines(), copy.read_text(encoding="utf-8").splitlines(), strict=True)
        if old != new
    }
    assert changed == {prior.id for prior in priors()}
