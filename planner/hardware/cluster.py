"""The cluster of a question: GPU, GPUs per node, network and power limit."""

from __future__ import annotations

from dataclasses import replace

from planner.hardware.gpu import Gpu
from planner.hardware.network import Network
from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Identical nodes and the network between them."""

    gpu: Gpu
    """The GPU of every node."""
    gpus_per_node: int
    nvlink_domain: int
    """GPUs connected to each other by NVLink: those of a node, or of a rack (72 on NVL72)."""
    nic_bytes_per_s: float
    """Network bandwidth per GPU and direction between nodes, or between racks that NVLink joins."""
    nic_assumed: bool = False
    """True where neither the user nor the catalogue gives the network bandwidth."""
    fabric: str = ""
    """Kind of network between nodes, one of `network.FABRICS`; empty where nobody says."""
    power_limit_w: float | None = None
    """Enforced board power limit, where it is not the datasheet's."""
    sized_by_number: bool = False
    """Cards whose machines are as large as the number of them asks for, since nobody said how many one holds."""

    def holding(self, gpus: int) -> Cluster:
        """The machines that another number of such cards lies in; the same cluster for all other GPUs."""
        size = cards_of_one_machine(self.gpu, gpus) if self.sized_by_number else None
        if size is None or size == self.gpus_per_node:
            return self
        return replace(self, gpus_per_node=size, nvlink_domain=_nvlink_domain(self.gpu, size))

    @property
    def near_gpus(self) -> int:
        """GPUs that reach each other without the network: over NVLink, or over PCIe in one node."""
        return max(self.nvlink_domain, self.gpus_per_node)

    @property
    def linked_gpus(self) -> int:
        """Of these, GPUs with one kind of link between them: NVLink where there is any, else PCIe."""
        return self.nvlink_domain if self.nvlink_domain > 1 else self.near_gpus

    @property
    def limit_w(self) -> float:
        """Power limit of each GPU: the one that is set, never above the datasheet's."""
        return min(self.power_limit_w or self.gpu.tdp_w, self.gpu.tdp_w)

    @property
    def is_desktop(self) -> bool:
        """Whether one or two cards lie in a machine of their own, with one processor and two channels of memory."""
        return cards_of_one_machine(self.gpu, None) is not None and self.gpus_per_node <= CARDS_OF_A_DESKTOP


DEFAULT_NIC_BYTES_PER_S = 12.5e9
"""100 Gbit/s per GPU: assumed where neither the catalogue nor the user gives a value, and listed as an assumption."""


CARDS_PER_MACHINE = 8
"""Cards that are sold one by one and lie in one machine, at most: what boards for servers have slots for."""
FEWEST_IN_EQUAL_MACHINES = 4
"""Cards are spread over equal machines where these then hold at least so many each; otherwise machines of eight are
filled, the last one in part."""
CARDS_OF_A_DESKTOP = 2
"""Of those as many as a desktop holds."""
SUPERCHIP_BYTES_PER_S = 200e9
"""NVLink from which a GPU that comes alone is soldered to its own host, as Grace Hopper is, and no card."""


def cards_of_one_machine(gpu: Gpu, gpus: int | None) -> int | None:
    """How many cards that are sold one by one a machine holds; None where a GPU comes as a whole server.

    Args:
        gpu: the kind of GPU.
        gpus: how many there are in all; None: not known yet.
    """
    if gpu.gpus_per_node > 1 or gpu.arch == "CPU" or (gpu.nvlink_bytes_per_s or 0.0) > SUPERCHIP_BYTES_PER_S:
        return None
    if gpus is None:
        return CARDS_PER_MACHINE
    equal = (size for size in range(CARDS_PER_MACHINE, FEWEST_IN_EQUAL_MACHINES - 1, -1) if gpus % size == 0)
    return min(gpus, next(equal, CARDS_PER_MACHINE))


def make_cluster(
    gpu: Gpu,
    *,
    gpus_per_node: int | None = None,
    network: Network | None = None,
    power_limit_w: float | None = None,
    sized_by_number: bool = False,
) -> Cluster:
    """A cluster of these GPUs; what the user left open is taken from the GPU's catalogue row."""
    node = gpus_per_node or gpu.gpus_per_node
    nic = (network and network.bytes_per_s) or gpu.nic_bytes_per_s
    return Cluster(
        gpu=gpu,
        gpus_per_node=node,
        nvlink_domain=_nvlink_domain(gpu, node),
        nic_bytes_per_s=nic or DEFAULT_NIC_BYTES_PER_S,
        nic_assumed=nic is None,
        fabric=network.fabric if network else "",
        power_limit_w=power_limit_w,
        sized_by_number=sized_by_number,
    )


def _nvlink_domain(gpu: Gpu, gpus_per_node: int) -> int:
    """The GPUs that NVLink joins: those of a node, unless the catalogue has more (72 on NVL72)."""
    if gpu.nvlink_domain_gpus > gpu.gpus_per_node:
        return gpu.nvlink_domain_gpus
    return max(1, min(gpus_per_node, gpu.nvlink_domain_gpus))
