"""Meshes of ranks for `torch.distributed.tensor`, made of the groups that the team already has."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.device_mesh import DeviceMesh

from probes.device.device import Device
from probes.ranks.team import Team


def mesh_alone(team: Team, device: Device) -> Any:
    """Return a mesh of this rank only."""
    return DeviceMesh.from_group(team.group("alone", 1).handle, device.kind, mesh_dim_names=("dp",))


def mesh_of(team: Team, device: Device, **sizes: int) -> Any:
    """Return the mesh of all ranks; its last dimension holds neighbours.

    Args:
        team: the ranks.
        device: the device of this rank.
        sizes: size of each dimension, by name; their product is the number of ranks.
    """
    handles: list[Any] = []
    stride = 1
    for name, size in reversed(sizes.items()):
        handles.insert(0, team.group(name, size, stride).handle)
        stride *= size
    names = tuple(sizes)
    if len(names) == 1:
        return DeviceMesh.from_group(handles[0], device.kind, mesh_dim_names=names)
    ranks = torch.arange(team.size).view(*sizes.values())
    return DeviceMesh.from_group(handles, device.kind, mesh=ranks, mesh_dim_names=names)
