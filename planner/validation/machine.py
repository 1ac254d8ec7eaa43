"""The machines of a published run and the metering point of its energy, with documented defaults for open columns."""

from __future__ import annotations

from planner.errors import UsageError
from planner.hardware.catalogue import find_gpu
from planner.hardware.cluster import Cluster, make_cluster
from planner.hardware.gpu import Gpu
from planner.hardware.typed_network import network_of_words
from planner.rates.clock import least_limit_w
from planner.rates.parameters import Parameters
from planner.units import GIGA
from planner.validation.defaults import Filled
from planner.validation.model import CannotPredictError
from planner.validation.runs import PublishedRun
from planner.validation.text_patterns import limit_unsaid

POWER_LIMITED_RATIO = 0.75
"""Power limit over the datasheet's, where a source states a limit without its value: assumed."""
FACILITY = "facility"
"""Metering point of energy where a row states none: the building's meter, as for a plan."""
FACILITY_PUE = 1.25
"""PUE at the building's meter where a row states none: the default of a plan."""


def _gpu(name: str) -> Gpu:
    """Return the exact part of a row; a family name is refused, since a measurement is of one part."""
    try:
        return find_gpu(name)
    except UsageError as error:
        raise CannotPredictError(f"{error.message}; {error.hint}") from error


def cluster_of(run: PublishedRun, filled: Filled, parameters: Parameters) -> Cluster:
    """Return the machines of a row.

    Args:
        run: run as published.
        filled: records the defaults taken for what the row leaves open.
        parameters: give the power of an idle GPU, below which no power limit is possible.

    Raises:
        CannotPredictError: there is no such GPU, or it cannot train at the row's power limit.
    """
    gpu = _gpu(run.gpu)
    node = run.gpus_per_node or gpu.gpus_per_node
    network = network_of_words(run.network, node)
    limit = run.power_limit_w
    if limit_unsaid(run.gpu, limit):
        limit = POWER_LIMITED_RATIO * gpu.tdp_w
        filled.take("power_limit_w", as_=f"{limit:g}")
    elif limit is not None and limit < (least_w := least_limit_w(gpu, parameters)):
        raise CannotPredictError(f"power_limit_w: {limit:g} is below the {least_w:g} W that {gpu.name} takes at least")
    cluster = make_cluster(gpu, gpus_per_node=node, network=network, power_limit_w=limit)
    if run.gpus_per_node is None:
        filled.take("gpus_per_node", as_=str(node))
    if network.bytes_per_s is None and (run.n_gpus or 2) > cluster.near_gpus:
        filled.take("network", as_=f"{cluster.nic_bytes_per_s * 8 / GIGA:g} Gb/s per GPU")
    return cluster


def note_meter(run: PublishedRun, filled: Filled) -> None:
    """Record the metering point and the PUE that are assumed where a row of energy does not state them."""
    if run.metric != "energy_mwh":
        return
    if not run.energy_scope:
        filled.take("energy_scope", as_=FACILITY)
    if scope_of(run) == FACILITY and run.pue is None:
        filled.take("pue", as_=f"{FACILITY_PUE:g}")


def scope_of(run: PublishedRun) -> str:
    """Return the metering point of a row's energy, one of `ENERGY_SCOPES`."""
    return run.energy_scope or FACILITY


def pue_of(run: PublishedRun) -> float:
    """Return the PUE of a row; without one it is 1, which adds nothing, unless energy was metered at the building."""
    return run.pue or (FACILITY_PUE if scope_of(run) == FACILITY else 1.0)
