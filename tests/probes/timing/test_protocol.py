"""The measurement in time, on a scripted clock: when it stops, what it sets aside, what it calls contended."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from probes.device.clock import Batch
from probes.precisions import recipe_by_id
from probes.timing import protocol
from probes.timing.protocol import Rules, Subject, Timing, measure
from tests.probes.build import NamedTrial, ScriptedClock, ScriptedGate

pytest.importorskip("torch", reason="a recipe sets torch's switches before each batch")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "PAUSE_S", 0.0)


RULES = Rules(ci_ratio=0.01, cap_s=1.0, warmup_s=0.05)


def subject(name: str) -> Subject:
    return Subject(trial=NamedTrial(name), recipe=recipe_by_id("fp32"))


def run(clock: ScriptedClock, *loads: float, subjects: int = 1, rules: Rules = RULES) -> list[Timing]:
    gate = ScriptedGate(*loads) if loads else None
    return measure([subject(str(i)) for i in range(subjects)], clock, rules, gate, random.Random(0))


def test_constant_samples_converge_after_the_fewest_rounds() -> None:
    (timing,) = run(ScriptedClock(lambda trial, i: 0.01))

    assert (timing.stop_reason, timing.rounds, timing.quality) == ("ci", 3, "ok")
    assert timing.summary.median_s == 0.01
    assert timing.phases_s == {"forward": 0.01}


def test_noisy_samples_stop_at_the_cap() -> None:
    (timing,) = run(ScriptedClock(lambda trial, i: 0.01 if i % 2 else 0.02))

    assert timing.stop_reason == "cap"
    assert timing.summary.ci_ratio > 0.01


def test_short_iterations_are_timed_in_regions_of_at_least_a_millisecond() -> None:
    (timing,) = run(ScriptedClock(lambda trial, i: 1e-5))

    assert timing.iterations_per_sample == 100


def test_trials_that_are_compared_take_turns_in_rounds() -> None:
    clock = ScriptedClock(lambda trial, i: 0.02)

    run(clock, subjects=2)

    names = [trial.name for trial, samples in clock.calls if samples > 1]  # the rounds; warm-up takes one sample each
    rounds = [set(names[i : i + 2]) for i in range(0, len(names), 2)]
    assert len(rounds) >= 3
    assert all(names == {"0", "1"} for names in rounds)


def test_samples_under_other_load_are_set_aside_where_enough_quiet_ones_remain() -> None:
    # first window loud, the others quiet; loud samples are ten times slower
    clock = ScriptedClock(lambda trial, i: 0.01)

    (timing,) = run(clock, 0.4, 0.0)

    assert timing.quality == "ok"
    assert timing.samples_gated > 0
    assert timing.other_load_ratio == 0.0


def test_a_machine_that_is_never_quiet_is_tried_three_times_and_called_contended() -> None:
    (timing,) = run(ScriptedClock(lambda trial, i: 0.01), 0.5)

    assert (timing.quality, timing.attempts, timing.stop_reason) == ("contended", 3, "cap")
    assert timing.other_load_ratio == pytest.approx(0.5)
    assert timing.samples_gated == timing.summary.samples


def test_precision_alone_does_not_make_a_loud_measurement_good() -> None:
    # constant samples converge at once; the gate comes first
    (timing,) = run(ScriptedClock(lambda trial, i: 0.01), 0.06)

    assert timing.stop_reason == "cap"
    assert timing.quality == "contended"


def test_an_unknown_load_is_kept_as_unknown() -> None:
    (timing,) = run(ScriptedClock(lambda trial, i: 0.01))

    assert timing.other_load_ratio is None


class CanaryBatches(ScriptedClock):
    """Batches that say for themselves whether they were disturbed: every second one, three times as slow."""

    def batch(self, trial: object, *, samples: int, iterations: int) -> Batch:
        batch = super().batch(trial, samples=samples, iterations=iterations)
        disturbed = len(self.calls) % 2 == 1
        factor = 3.0 if disturbed else 1.0
        slow = tuple(factor * sample for sample in batch.samples_s)
        return replace(batch, samples_s=slow, canary_ratio=1.5 if disturbed else 1.01, disturbed=disturbed)


def test_a_disturbed_batch_is_set_aside_alone() -> None:
    (timing,) = run(CanaryBatches(lambda trial, i: 0.01))

    assert timing.quality == "ok"
    assert timing.summary.median_s == 0.01
    assert timing.samples_gated > 0
    assert timing.canary_ratio == 1.01


def test_no_round_begins_after_the_end() -> None:
    clock = ScriptedClock(lambda trial, i: 0.01 if i % 2 else 0.02)  # would go on to the cap

    (timing,) = measure([subject("0")], clock, RULES, None, random.Random(0), end_s=0.0)

    assert (timing.rounds, timing.stop_reason) == (1, "cap")
