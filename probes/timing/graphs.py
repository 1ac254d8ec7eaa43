"""Short kernels in a CUDA graph: one launch replays many kernels, which hides the time to launch them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from probes.device.clock import Clock, Mark, no_mark
from probes.timing.trial import Trial, TrialOutcome

SHORT_S = 50e-6
"""Iterations shorter than this are captured."""
LONG_S = 1e-3
"""Far longer than one step of a short kernel with its launch, so that a single step shows that one is not short."""
CAPTURED = 20
"""Iterations in one graph."""


class GraphTrial:
    """A trial whose step replays `CAPTURED` steps of another trial."""

    def __init__(self, trial: Trial) -> None:
        """Capture the steps.

        Raises:
            RuntimeError: they cannot be captured.
        """
        self.trial = trial
        self.graph = captured(lambda: trial.step(no_mark), CAPTURED)

    @property
    def steps(self) -> int:
        """See `Trial.steps`."""
        return CAPTURED * self.trial.steps

    @property
    def held_bytes(self) -> float:
        """See `Trial.held_bytes`."""
        return self.trial.held_bytes

    @property
    def flags(self) -> tuple[str, ...]:
        """See `Trial.flags`."""
        return (*self.trial.flags, "cuda_graph")

    def step(self, mark: Mark) -> None:
        """See `Trial.step`."""
        self.graph.replay()

    def outcome(self) -> TrialOutcome:
        """See `Trial.outcome`."""
        return self.trial.outcome()


def captured_if_short(trial: Trial, clock: Clock) -> Trial:
    """Return the trial, captured in a graph if its steps are short."""
    for _ in range(3):
        trial.step(no_mark)
    if clock.batch(trial, samples=1, iterations=1).samples_s[0] > LONG_S:
        return trial  # sixty more runs of a product that takes 90 ms would take six seconds
    if clock.batch(trial, samples=3, iterations=20).samples_s[-1] > SHORT_S:
        return trial
    try:
        return GraphTrial(trial)
    except RuntimeError:  # not everything can be captured; launch times then show, as in eager training
        return trial


def captured(run: Callable[[], object], times: int = 1) -> Any:
    """Return a `torch.cuda.CUDAGraph` of a call, repeated.

    Args:
        run: the call. It has run on the device before, so that capturing compiles nothing and allocates nothing for
            good.
        times: how often the graph repeats it.

    Raises:
        RuntimeError: it cannot be captured; streams, random generators and memory are as before.
    """
    import torch

    # A separate stream for warm-up and capture: cuBLAS keeps a workspace per stream, and some versions of torch
    # free the workspaces of a stream together with any graph that was captured on it (pytorch#193402).
    stream, current = torch.cuda.Stream(), torch.cuda.current_stream()
    stream.wait_stream(current)
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    current.wait_stream(stream)
    generators = [(generator, generator.clone_state()) for generator in torch.cuda.default_generators]
    graph, pool = torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle()
    try:
        with torch.cuda.graph(graph, pool=pool, stream=stream):
            for _ in range(times):
                run()
    except BaseException:
        # `torch.cuda.graph` ends the capture before it leaves its stream, and an invalid capture raises there. Without
        # this, the stream would stay current, the generators would still consider themselves captured, and the
        # allocator would keep the graph's memory separate.
        torch.cuda.set_stream(current)
        for generator, state in generators:
            generator.graphsafe_set_state(state)
        graph.reset()
        _release(pool)
        raise
    return graph


def _release(pool: tuple[int, int]) -> None:
    """Return the memory of a failed capture to the allocator."""
    import torch

    device = torch.cuda.current_device()
    for name in ("_cuda_endAllocateToPool", "_cuda_releasePool"):
        # torch has no public function for this, and either call may be done already, depending on where capture failed.
        with suppress(AttributeError, RuntimeError):
            getattr(torch._C, name)(device, pool)
