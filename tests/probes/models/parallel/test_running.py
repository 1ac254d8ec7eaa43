"""What one rank holds and takes of a step. The steps themselves run in `test_parallel`."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from probes.models.parallel.running import held_bytes, share  # noqa: E402
from probes.precisions.training import fused_adamw  # noqa: E402


def test_each_rank_takes_its_part_of_the_sequences() -> None:
    tokens = torch.arange(8).view(4, 2)

    assert [part.tolist() for part in share((tokens, tokens + 1), 1, 2)] == [[[4, 5], [6, 7]], [[5, 6], [7, 8]]]


def test_parameters_both_moments_and_the_batch_are_held() -> None:
    module = torch.nn.Linear(100, 10, bias=False)
    optimizer = fused_adamw(list(module.parameters()))
    module(torch.ones(1, 100)).sum().backward()
    optimizer.step()
    batch = (torch.zeros(5, dtype=torch.int64), torch.zeros(5, dtype=torch.int64))

    # 1000 parameters and twice as many moments of 4 bytes, the count of steps, ten tokens of 8 bytes
    assert held_bytes([module], optimizer, batch, []) == 3 * 4000 + 4 + 80
