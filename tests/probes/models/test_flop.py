"""The arithmetic of a training step."""

from __future__ import annotations

from probes.models.flop import ForwardFlop


def test_training_takes_three_forward_passes_and_the_hardware_the_scores_once_more():
    counts = ForwardFlop(linear=100.0, attention=10.0, head=5.0).of_training(recompute=False, params=7)

    assert (counts.flop_model, counts.params) == (3 * 115, 7)
    assert counts.flop_hardware == 3 * 105 + 3.5 * 10


def test_checkpointing_repeats_the_layers_on_the_hardware_and_not_the_output_layer():
    forward = ForwardFlop(linear=100.0, attention=10.0, head=5.0)
    plain, recomputed = (forward.of_training(recompute=recompute) for recompute in (False, True))

    assert recomputed.flop_model == plain.flop_model
    assert recomputed.flop_hardware - plain.flop_hardware == 110
