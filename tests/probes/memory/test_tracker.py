"""Bookkeeping of memory: storages are counted once, rounded as the allocator rounds, and forgotten when freed."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from probes.memory.tracker import StorageCounter, track  # noqa: E402
from tests.probes.build import CPU  # noqa: E402


def test_views_share_a_storage_and_a_freed_one_no_longer_counts() -> None:
    with StorageCounter("cpu") as counter:
        first = torch.empty(1000, dtype=torch.float32)
        view = first.view(10, 100).t()
        assert (counter.live, counter.peak) == (4000, 4000)

        second = torch.empty(500, dtype=torch.bfloat16)
        assert counter.live == 5000
        del first
        assert counter.live == 5000  # the view still holds the storage
        del view
        assert (counter.live, counter.peak) == (1000, 5000)

        counter.reset_peak()
        assert counter.peak == second.nbytes


def test_a_gpus_allocations_are_rounded_up_to_512_bytes() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    counter = StorageCounter("cuda")
    with FakeTensorMode(), counter:
        held = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in (1, 512, 513)]
        torch.empty(4096, dtype=torch.uint8, device="cpu")

    assert counter.live == 512 + 512 + 1024
    assert len(held) == 3


def test_the_peak_is_that_of_the_second_step_which_finds_the_states_of_the_first() -> None:
    class Trial:
        def __init__(self) -> None:
            self.module = torch.nn.Linear(10, 10, bias=False)
            self.state = None

        def step(self, mark) -> None:
            self.state = torch.empty(100) if self.state is None else self.state
            torch.empty(50)

    tracked = track(Trial, CPU)

    # weights 100, state 100, and 50 for a moment, in FP32
    assert tracked.peak_bytes == 4 * (100 + 100 + 50)
    assert tracked.params == 100
