import numpy as np
import pytest

from benchmarks.images import accuracy
from benchmarks.images.accuracy import BATCHES, coverage, kind_of, left_out_errors, memory_agreement
from tools.images.fit import Fitted, errors_of, fit, priors, timed_steps


def some(*families: str):
    return [step for step in timed_steps() if step.family in families]


def test_the_largest_batch_that_fits_lies_close_to_the_predicted_memory():
    shares = memory_agreement(timed_steps())

    assert shares["fits"] > 0.8
    assert shares["next does not fit"] > 0.8


def test_the_batches_that_were_tried_are_those_of_the_steps():
    assert {step.batch for step in timed_steps()} <= set(BATCHES)


def test_nine_tenths_of_the_steps_lie_within_the_shipped_range():
    assert coverage(timed_steps()[::40]) >= 0.9


def test_a_family_is_predicted_without_itself(monkeypatch):
    taught = []

    def watched(steps, start=None, iterations=0):
        taught.append({step.family for step in steps})
        values = np.array([prior.log_value for prior in priors()])
        return Fitted(log_values=values, log_sd=values)

    monkeypatch.setattr(accuracy, "fit", watched)
    steps = some("vgg", "mixer", "deit")
    errors = left_out_errors(steps)

    assert len(errors) == len(steps)
    assert taught[0] == {"vgg", "mixer", "deit"}
    assert sorted(len(families) for families in taught[1:4]) == [2, 2, 2]


def test_what_some_families_teach_holds_for_others():
    teaching = some("resnet", "vit", "efficientnet", "mobilenetv", "regnetx", "swin")[::2]
    left_out = some("resnetv", "deit", "mnasnet", "convnext", "vgg", "seresnet")

    errors = errors_of(left_out, fit(teaching, iterations=6).log_values)

    assert float(np.median(np.abs(errors))) < 0.15


@pytest.mark.parametrize(("model", "kind"), [
    ("resnet50", "convolutional networks"), ("efficientnet_b0", "mobile networks (depthwise)"),
    ("vit_base_patch16_224", "transformers and mixers"),
])  # fmt: skip
def test_models_are_told_apart_by_what_takes_their_time(model, kind):
    (step, _) = [step for step in timed_steps() if step.model == model]

    assert kind_of(step) == kind
