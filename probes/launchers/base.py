"""The interface of a launcher: what a job file needs to know, and what writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from planner.hardware.gpu import Gpu
from planner.lazy import dataclass

REQUIREMENT = "mpplan[probe,float8]"
"""What a job installs where it finds no mpplan."""

NAME = "mpplan-probe"
"""Of the job, and of what belongs to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A setting without which a launcher cannot write a job file."""

    setting: str
    """Name of the setting."""
    what: str
    """With its article, for the message: `a partition`."""
    hint: str
    """How a user finds out what to give."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeJob:
    """A probe that a cluster is asked to run. Every text in it is safe in a shell and in YAML."""

    nodes: int
    ranks_per_node: int
    """Processes of each node, one per GPU."""
    arguments: tuple[str, ...]
    """Of `mpplan probe` on the nodes."""
    limit_s: float
    """Time that the job asks for where the user does not say: what the probe takes, with room to start."""
    on_cpu: bool = False
    """Whether the ranks measure CPUs; no GPU is asked for then."""
    gpu: Gpu | None = None
    """The GPU asked for; None where any will do."""
    settings: Mapping[str, str]
    """What the user gave of the launcher's settings, by name."""

    @property
    def what(self) -> str:
        """What is measured, in words: `2 nodes of 8 GPUs`."""
        nodes = "1 node" if self.nodes == 1 else f"{self.nodes} nodes"
        kind = "CPU process" if self.on_cpu else "GPU"
        plural = "" if self.ranks_per_node == 1 else "es" if self.on_cpu else "s"
        return f"{nodes} of {self.ranks_per_node} {kind}{plural}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """One way in which a cluster takes jobs."""

    name: str
    """As the user types it."""
    takes: tuple[str, ...]
    """Names of the settings that it can use."""
    needs: tuple[Need, ...]
    start: str
    """The command that starts a job; `{file}` stands for the job file."""
    returned: str
    """Where the record comes back, for the note beside `start`."""
    write: Callable[[ProbeJob], str]
    """The text of the job file. Raises `UsageError` where the launcher has no name for the GPU."""
