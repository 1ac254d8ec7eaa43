"""The machines as asked for: GPU, GPUs per node, network, power limit."""

from __future__ import annotations

from dataclasses import dataclass

from planner.hardware.gpu import Gpu


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A kind of node and the network between nodes."""

    gpu: Gpu
    gpus_per_node: int
    nvlink_domain: int
    """GPUs that reach each other at NVLink rate: a node, or a rack (72 on NVL72)."""
    nic_bytes_per_s: float
    """Network rate per GPU and direction between NVLink domains."""
    nic_assumed: bool = False
    """True where neither the user nor the catalogue gives the network rate."""
    power_limit_w: float | None = None
    """Enforced board power limit, where it is not the datasheet's."""


DEFAULT_NIC_BYTES_PER_S = 12.5e9
"""100 Gbit/s per GPU: assumed where neither the catalogue nor the user says; named among the assumptions."""


def make_cluster(
    gpu: Gpu,
    *,
    gpus_per_node: int | None = None,
    nic_bytes_per_s: float | None = None,
    power_limit_w: float | None = None,
) -> Cluster:
    """Fill what the user left open from the GPU's row.

    The NVLink domain is the node where the row's domain is not larger (72 on NVL72).
    """
    node = gpus_per_node or gpu.gpus_per_node
    domain = gpu.nvlink_domain_gpus if gpu.nvlink_domain_gpus > gpu.gpus_per_node else min(node, gpu.nvlink_domain_gpus)
    nic = nic_bytes_per_s or gpu.nic_bytes_per_s
    return Cluster(
        gpu=gpu,
        gpus_per_node=node,
        nvlink_domain=max(1, domain),
        nic_bytes_per_s=nic or DEFAULT_NIC_BYTES_PER_S,
        nic_assumed=nic is None,
        power_limit_w=power_limit_w,
    )
