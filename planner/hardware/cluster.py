"""The cluster of a question: GPU, GPUs per node, network and power limit."""

from __future__ import annotations

from dataclasses import replace

from planner.hardware.architectures import find_architecture
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
    """GPUs connected to each other by NVLink: a node, or a rack (72 on NVL72)."""
    nic_bytes_per_s: float
    """Network bandwidth per GPU and direction between nodes, or between racks if NVLink joins a rack."""
    nic_assumed: bool = False
    """Whether neither the user nor the catalogue gives the network bandwidth."""
    fabric: str = ""
    """Kind of network between nodes, one of `network.FABRICS`; empty if not specified."""
    power_limit_w: float | None = None
    """Enforced board power limit, if it differs from the datasheet's."""
    sized_by_number: bool = False
    """Whether the size of a machine follows from the number of cards, because the number per machine was not given."""

    def holding(self, gpus: int) -> Cluster:
        """The cluster for another number of cards if the number sizes its machines, otherwise this cluster."""
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
        """GPUs that are joined by one kind of link: NVLink if the cluster has it, else PCIe."""
        return self.nvlink_domain if self.nvlink_domain > 1 else self.near_gpus

    @property
    def meshed_gpus(self) -> int:
        """GPUs of which each pair has a link of its own; 1 if the links of a node lead to a switch."""
        return self.gpu.nvlink_domain_gpus if find_architecture(self.gpu.arch).peer_links else 1

    @property
    def limit_w(self) -> float:
        """Power limit of each GPU: the one that is set, never above the datasheet's."""
        return min(self.power_limit_w or self.gpu.tdp_w, self.gpu.tdp_w)

    @property
    def is_desktop(self) -> bool:
        """Whether the machines are desktops: one or two cards, one CPU and two memory channels."""
        return cards_of_one_machine(self.gpu, None) is not None and self.gpus_per_node <= CARDS_OF_A_DESKTOP


DEFAULT_NIC_BYTES_PER_S = 12.5e9
"""100 Gbit/s per GPU: assumed if neither the catalogue nor the user gives a value, and listed as an assumption."""


CARDS_PER_MACHINE = 8
"""Most cards, of those sold individually, in one machine: the number of slots on server boards."""
FEWEST_IN_EQUAL_MACHINES = 4
"""Cards are spread over machines of equal size if each then holds at least this many; otherwise machines of eight are
filled one after another."""
CARDS_OF_A_DESKTOP = 2
"""Most cards, of those sold individually, in a desktop."""
SUPERCHIP_BYTES_PER_S = 200e9
"""NVLink rate above which a GPU with a node to itself is soldered to its host, like Grace Hopper, and is not a card."""


def cards_of_one_machine(gpu: Gpu, gpus: int | None) -> int | None:
    """Number of individually sold cards in a machine; None if the GPU is not sold as a card.

    Args:
        gpu: the kind of GPU.
        gpus: total number of GPUs; None if not known yet.
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
    """A cluster of these GPUs; unspecified values are taken from the GPU's catalogue row."""
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
    """Number of GPUs joined by NVLink: at most a node, unless the catalogue gives a larger domain (72 on NVL72)."""
    if gpu.nvlink_domain_gpus > gpu.gpus_per_node:
        return gpu.nvlink_domain_gpus
    return max(1, min(gpus_per_node, gpu.nvlink_domain_gpus))
