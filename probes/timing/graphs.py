"""Short kernels in a CUDA graph: one launch replays many, so that the time of launching does not show."""

from __future__ import annotations

from probes.device.clock import Clock, Mark, no_mark
from probes.timing.trial import Trial, TrialOutcome

SHORT_S = 50e-6
"""Iterations shorter than this are captured."""
LONG_S = 1e-3
"""Far above any single step of a short one, the time of launching included: told by one step."""
CAPTURED = 20
"""Iterations in one graph."""


class GraphTrial:
    """A trial whose step replays `CAPTURED` steps of another."""

    def __init__(self, trial: Trial) -> None:
        import torch

        self.trial = trial
        # A stream of its own, for warming up and for capturing: cuBLAS keeps a workspace per stream, and some versions
        # of torch free the workspaces of a stream with any graph that was captured on it (pytorch#193402).
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                trial.step(no_mark)
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=stream):
            for _ in range(CAPTURED):
                trial.step(no_mark)

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
    """The trial, in a graph if its steps are short."""
    for _ in range(3):
        trial.step(no_mark)
    if clock.batch(trial, samples=1, iterations=1).samples_s[0] > LONG_S:
        return trial  # sixty more of a product that takes 90 ms would be six seconds
    if clock.batch(trial, samples=3, iterations=20).samples_s[-1] > SHORT_S:
        return trial
    try:
        return GraphTrial(trial)
    except RuntimeError:  # not everything can be captured; then launching shows, as it does in eager training
        return trial
