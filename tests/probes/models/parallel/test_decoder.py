"""The decoder that strategies take apart: the same weights whatever is left of it, and one batch for all."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from probes.models.cases import params_of  # noqa: E402
from probes.models.parallel.case import case_of  # noqa: E402
from probes.models.parallel.decoder import build_decoder, global_batch, loss_of, stage_of  # noqa: E402

CASE = case_of(2, on_gpu=False)
DEVICE = torch.device("cpu")


def test_the_model_has_the_parameters_that_its_case_counts() -> None:
    decoder = build_decoder(CASE, 0, DEVICE)

    # 4 layers of 737 280 in matrices and 512 in norms, two ends of 2048 x 256, the last norm
    assert params_of(decoder) == CASE.params == 4 * 737_792 + 2 * 524_288 + 256


def test_stages_one_after_the_other_are_the_whole_model() -> None:
    tokens, targets = global_batch(CASE, 1, DEVICE)
    x = tokens
    for number in range(4):
        x = stage_of(build_decoder(CASE, 0, DEVICE), number, 4)(x)

    assert torch.equal(x, build_decoder(CASE, 0, DEVICE)(tokens))
    # untrained, the loss of 2048 equally likely tokens is ln 2048 = 7.62
    assert loss_of(x, targets).item() == pytest.approx(7.62, abs=0.15)


def test_what_is_to_be_predicted_is_one_token_further() -> None:
    tokens, targets = global_batch(CASE, 1, DEVICE)

    assert tokens.shape == targets.shape == (8, 32)
    assert torch.equal(tokens[:, 1:], targets[:, :-1])


def test_computing_activations_again_changes_no_gradient() -> None:
    tokens, targets = global_batch(CASE, 1, DEVICE)
    gradients = []
    for recompute in (False, True):
        decoder = build_decoder(CASE, 0, DEVICE)
        decoder.recompute = recompute
        loss_of(decoder(tokens), targets).backward()
        gradients.append([parameter.grad for parameter in decoder.parameters()])

    assert all(torch.equal(kept, recomputed) for kept, recomputed in zip(*gradients, strict=True))
