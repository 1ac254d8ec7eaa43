"""Updates that torch lacks: their arithmetic against the papers', and what they keep."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from probes.workloads.optimizer import OPTIMIZERS, _OptimizerTrial  # noqa: E402
from probes.workloads.updates import Lamb, SophiaG  # noqa: E402
from tests.probes.build import CPU  # noqa: E402


def parameter(values, gradient):
    tensor = torch.tensor(values, requires_grad=True)
    tensor.grad = torch.tensor(gradient)
    return tensor


def test_lambs_first_step_is_the_sign_of_the_gradient_scaled_by_the_ratio_of_the_norms():
    weights = parameter([3.0, 4.0], [0.5, -0.5])
    Lamb([weights], lr=0.1, weight_decay=0.0, eps=0.0).step()

    # the corrected moments are g and g^2, so that the update is (1, -1) of norm sqrt(2), scaled to 5
    expected = torch.tensor([3.0, 4.0]) - 0.1 * 5 / 2**0.5 * torch.tensor([1.0, -1.0])
    assert torch.allclose(weights.detach(), expected, atol=1e-6)


def test_lamb_decays_weights_inside_the_trusted_update():
    weights = parameter([1.0, 1.0], [1.0, 1.0])
    Lamb([weights], lr=0.1, weight_decay=1.0, eps=0.0).step()

    # update (1, 1) + (1, 1), scaled from a norm of 2 sqrt(2) to one of sqrt(2): (1, 1)
    assert torch.allclose(weights.detach(), torch.tensor([0.9, 0.9]), atol=1e-6)


def test_sophias_step_is_clipped_to_the_learning_rate():
    weights = parameter([1.0, 1.0], [1e-3, 10.0])
    SophiaG([weights], lr=0.01, weight_decay=0.0, beta2=0.0, rho=100.0).step()

    # momentum 0.04 g; curvature g^2: 4e-5 / 1e-4 = 0.4, and 0.4 / 1e4 = 4e-5
    assert torch.allclose(weights.detach(), torch.tensor([1 - 0.004, 1 - 4e-7]), atol=1e-7)
    SophiaG([parameter([1.0], [1.0])], lr=0.01, weight_decay=0.0, rho=1e-9).step()


def test_a_flat_direction_moves_by_the_learning_rate_at_most():
    weights = parameter([0.0], [1.0])
    SophiaG([weights], lr=0.01, weight_decay=0.0, rho=1e-9).step()

    assert weights.item() == pytest.approx(-0.01)


def test_sophia_renews_its_curvature_every_tenth_step():
    weights = parameter([1.0], [1.0])
    optimizer = SophiaG([weights])
    kept = []
    for _ in range(12):
        optimizer.step()
        kept.append(optimizer.state[weights]["second"].item())

    assert kept[0] == pytest.approx(0.01)
    assert len(set(kept[:10])) == 1
    assert kept[10] > kept[9] == kept[8]


@pytest.mark.parametrize(("name", "state"), [("lamb", 8.0), ("sophia", 8.0)])
def test_both_keep_two_moments_in_fp32(name, state):
    case = next(case for case in OPTIMIZERS if case.id == name)
    trial = _OptimizerTrial(case, count=2, size=64, device=CPU)
    trial.step(lambda phase: None)

    assert trial.outcome().optimizer_state_bytes_per_param == state


def test_adafactor_keeps_row_and_column_sums():
    case = next(case for case in OPTIMIZERS if case.id == "adafactor")
    trial = _OptimizerTrial(case, count=2, size=64, device=CPU)
    trial.step(lambda phase: None)

    # 64 + 64 sums and a step count of 4 bytes each per 64 x 64 parameters
    assert trial.outcome().optimizer_state_bytes_per_param == pytest.approx((64 + 64 + 1) * 4 / 64**2)
