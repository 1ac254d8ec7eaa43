"""The interface of a launcher: the contents of a job, and the function that writes its file."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from planner.hardware.gpu import Gpu
from planner.lazy import dataclass

REQUIREMENT = "mpplan[probe,float8]"
"""Package that a job installs if mpplan is missing."""

NAME = "mpplan-probe"
"""Name of the job, and of the objects that belong to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A setting without which a launcher cannot write a job file."""

    setting: str
    """Name of the setting."""
    what: str
    """What is needed, with its article, for the message: `a partition`."""
    hint: str
    """How a user finds out which value to give."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeJob:
    """A probe to be run by a cluster. Every text in it is safe in a shell and in YAML."""

    nodes: int
    ranks_per_node: int
    """Processes per node, one per GPU."""
    arguments: tuple[str, ...]
    """Arguments of `mpplan probe` on the nodes."""
    limit_s: float
    """Time limit if the user gives none: the probe's time, with room to start."""
    on_cpu: bool = False
    """Whether the ranks measure CPUs; no GPU is requested then."""
    gpu: Gpu | None = None
    """The requested GPU; None if any GPU will do."""
    settings: Mapping[str, str]
    """The user's values for the launcher's settings, by name."""

    @property
    def what(self) -> str:
        """What is measured, in words: `2 nodes of 8 GPUs`."""
        nodes = "1 node" if self.nodes == 1 else f"{self.nodes} nodes"
        kind = "CPU process" if self.on_cpu else "GPU"
        plural = "" if self.ranks_per_node == 1 else "es" if self.on_cpu else "s"
        return f"{nodes} of {self.ranks_per_node} {kind}{plural}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """One way to submit jobs to a cluster."""

    name: str
    """Name, as the user types it."""
    takes: tuple[str, ...]
    """Names of the settings that it can use."""
    needs: tuple[Need, ...]
    start: str
    """The command that starts a job; `{file}` is replaced by the job file."""
    returned: str
    """How the record is returned, for the note beside `start`."""
    write: Callable[[ProbeJob], str]
    """Returns the text of the job file. Raises `UsageError` if the launcher has no name for the GPU."""
