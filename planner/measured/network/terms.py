"""Network terms from the user's own collectives: inside a node and between nodes, each with its evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from planner.errors import Message
from planner.evidence import Z90, Evidence, EvidenceKind
from planner.hardware.catalogue import bears_name
from planner.hardware.cluster import Cluster
from planner.kernels.collectives import large_bytes_per_s
from planner.lazy import dataclass
from planner.measured.network.fit import FittedTerm, Link, NetworkFit, PlacedRun, Prior, fit_network
from planner.measured.network.runs import CollectiveRun
from planner.measured.network.surfaces import own_surfaces
from planner.measured.terms import LEAST_SD
from planner.performance.collectives import place
from planner.rates.terms import RateSet, Term
from planner.units import GB, MIB, MICRO, write_bytes

TRAINING_BYTES = MIB
"""Collectives of training are larger. Below this size, NCCL uses protocols with lower latency and lower rate (LL,
LL128)."""
LEAST_SIZES = 3
"""Fewest sizes of training for a fit to these alone; with fewer of them, all sizes are fitted."""
INSIDE = ("nvlink_bytes_per_s", "nvlink_latency_s")
"""Terms that runs inside a node inform."""
BETWEEN = ("nic_bytes_per_s", "nic_latency_s", "node_doubling_s", "node_hop_s")
"""Terms that runs over several nodes inform."""
REACH = ("node_doubling_s", "node_hop_s")
"""The terms of `BETWEEN` for the latency that further nodes add to each message."""
BEYOND = ("measured_domains", "beyond_measured_ratio")
"""Terms for the number of nodes that the runs cover, and for the uncertainty beyond it."""
DETAILS = ("nvls_gain_ratio", "hop_latency_s")
"""Terms that one kind of run cannot separate from the others. They are fitted only if the times need them."""
BETTER_RATIO, BETTER_BY_RATIO = 0.9, 0.005
"""Details count if they lower the residual to less than this share of it, minus this amount."""
RINGS = ("all_reduce", "all_gather", "reduce_scatter")
"""Collectives that may run as rings. With n ranks, r in each domain, a ring sends (n-1)/n of the data over the network;
the best known algorithm sends (n-r)/n."""


DOUBLING_SD = 0.21
"""Standard deviation of the logarithm of a time on more nodes than were measured, for each doubling of their number. It
is the error of these equations on larger runs after a fit to runs on up to n nodes. All-reduce, all-gather and
reduce-scatter of 256 MiB over 2 to 64 nodes of 8 H100 with EFA: 0.21, mean 0.05
(vinjn/nanotron-ultrascale-playbook:assets/data/benchmarks/pp_comm_bandwidth.html@924e4d0). All-reduce of 1 MiB to 4 GiB
over 2 to 16 nodes of 8 A100 with 200 Gb/s InfiniBand: 0.21 if all smaller numbers of nodes are known, 0.18 if only one
is (NetX-lab/Echo:nccl-test-log@15f0d12)."""
DOUBLING_SOURCE = (
    "vinjn/nanotron-ultrascale-playbook:assets/data/benchmarks/pp_comm_bandwidth.html@924e4d0; "
    "NetX-lab/Echo:nccl-test-log@15f0d12"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSource:
    """Source of runs."""

    name: str
    """Name of the file or record, as a reader knows it."""
    origin: str
    """Source of the evidence."""
    kind: str = "file"
    """`file` for a file that the user named for the network, or `record`."""
    date: str | None = None
    """ISO 8601 time of the last point; None if unknown."""

    @classmethod
    def file(cls, name: str) -> NetworkSource:
        """Return the source for a file that the user named for the network."""
        return cls(name=name, origin=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnNetwork:
    """Terms of a cluster's network, from the user's own collectives."""

    terms: dict[str, Term] = field(default_factory=dict)
    """Terms by name; they take precedence over the catalogue's."""
    warnings: tuple[Message, ...] = ()
    """Messages on the runs that were used and on their limitations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The runs inside a node or those over several nodes, with their fit."""

    name: str
    runs: tuple[PlacedRun, ...]
    fit: NetworkFit
    fitted: tuple[str, ...]
    """Terms that the runs determine."""


def network_terms(runs: Sequence[CollectiveRun], source: NetworkSource, cluster: Cluster, base: RateSet) -> OwnNetwork:
    """Derive network terms from the runs of a file or record.

    Args:
        runs: runs of the file or record.
        source: the file or record.
        cluster: machines of the plan.
        base: their terms from other evidence, for labels and for terms that the runs leave undetermined.
    """
    inside = [run for run in runs if _stays_inside(run, cluster) and bears_name(cluster.gpu, run.device_name)]
    between = [_from_training_sizes(run) for run in runs if run.nodes > 1 and not _stays_inside(run, cluster)]
    parts: list[_Part] = []
    terms: dict[str, Term] = {}
    if inside:
        placed = [_placed(_from_training_sizes(run), cluster, Link.INSIDE) for run in inside]
        parts.append(_fitted("inside", placed, base, INSIDE))
        terms |= _by_size(_terms(parts[-1], source, cluster, base), inside, base)
    known = replace(base, terms=dict(base.terms) | terms)
    if between:
        parts.append(_fitted("between", [_limited(run, cluster, known) for run in between], known, BETWEEN))
        terms |= _terms(parts[-1], source, cluster, known) | _beyond(parts[-1], cluster, known)
        terms |= _in_full(terms, known)
    return OwnNetwork(terms=terms, warnings=tuple(_warnings(parts, runs, source, cluster)))


def _from_training_sizes(run: CollectiveRun) -> CollectiveRun:
    """Drop the sizes of a run that training does not send, if enough others are left."""
    large = run.sizes_bytes >= TRAINING_BYTES
    if large.sum() < LEAST_SIZES:
        return run
    sampled = None if run.sampled_sds is None else run.sampled_sds[large]
    return replace(run, sizes_bytes=run.sizes_bytes[large], times_s=run.times_s[large], sampled_sds=sampled)


def _domain(run: CollectiveRun, cluster: Cluster) -> int:
    """Number of ranks of a run that reach each other without the network: those of a node, or of a rack (NVL72)."""
    return cluster.nvlink_domain if cluster.nvlink_domain > cluster.gpus_per_node else run.ranks_per_node


def _stays_inside(run: CollectiveRun, cluster: Cluster) -> bool:
    return run.ranks <= min(_domain(run, cluster), cluster.linked_gpus)


def _placed(run: CollectiveRun, cluster: Cluster, link: Link) -> PlacedRun:
    near = min(_domain(run, cluster), cluster.near_gpus)
    group = place(np.array([run.ranks]), 1, near, cluster.linked_gpus, cluster.meshed_gpus)
    return PlacedRun(run=run, group=group, link=link)


def _limited(run: CollectiveRun, cluster: Cluster, base: RateSet) -> PlacedRun:
    """Place a run over several nodes, and decide which link limits it.

    The network limits the run, unless the links inside a node explain the time of the largest size and the network, as
    known so far, would not have taken longer.
    """
    inside, between = (_placed(run, cluster, link) for link in (Link.INSIDE, Link.BETWEEN))
    mid, measured_s = base.sample(), run.times_s[-1]
    slack = math.exp(base.terms["nvlink_bytes_per_s"].log_sd)
    hidden = measured_s <= slack * inside.time_s(mid)[-1] and between.time_s(mid)[-1] <= measured_s
    return inside if hidden else between


def _fitted(name: str, runs: Sequence[PlacedRun], base: RateSet, names: Sequence[str]) -> _Part:
    """Fit the terms, with details if the times need them, and with the links inside nodes if they limit a run."""
    inside_terms = [Link.INSIDE.value] if any(item.link is Link.INSIDE for item in runs) else []
    fit = _fit(runs, base, [*names, *inside_terms])
    details = [detail for detail in DETAILS if base.terms[detail].rests_on]  # others are exact, or measured already
    closer = _fit(runs, base, [*names, *inside_terms, *details])
    if closer.residual_ratio < BETTER_RATIO * fit.residual_ratio - BETTER_BY_RATIO:
        fit = closer
    determined = [term for term in (*names, *DETAILS) if term in fit.terms and fit.terms[term].informed]
    return _Part(name=name, runs=tuple(runs), fit=fit, fitted=tuple(determined))


def _fit(runs: Sequence[PlacedRun], base: RateSet, names: Sequence[str]) -> NetworkFit:
    terms = [base.terms[name] for name in dict.fromkeys(names)]
    priors = {term.name: Prior(value=term.value, log_sd=term.log_sd) for term in terms if term.log_sd > 0}
    return fit_network(runs, base.sample().without_surfaces(), priors)


def _terms(part: _Part, source: NetworkSource, cluster: Cluster, base: RateSet) -> dict[str, Term]:
    evidence = Evidence(
        id=f"network_{source.kind}:{part.name}:{cluster.gpu.id}",
        kind=EvidenceKind.MEASURED,
        what=_what(part, by_size=part.name == "inside" and bool(base.terms[INSIDE[0]].by_operation)),
        source=source.origin,
        date=source.date,
        gpu=cluster.gpu.id,
        terms=part.fitted,
    )
    return {
        name: replace(
            base.terms[name], value=part.fit.terms[name].value, own_sd=_own_sd(part, name), rests_on=(),
            ceiling=float("inf"), evidence=evidence, by_operation={},
        )
        for name in part.fitted
    }  # fmt: skip


def _in_full(terms: Mapping[str, Term], base: RateSet) -> dict[str, Term]:
    """Let messages of all sizes take the full latency of further nodes if the runs, of all sizes, determined it."""
    catalogue_term, measured = base.terms["node_latency_bytes"], [terms[name] for name in REACH if name in terms]
    if not measured or catalogue_term.value == 0.0:
        return {}
    return {catalogue_term.name: replace(catalogue_term, value=0.0, rests_on=(), evidence=measured[0].evidence)}


def _beyond(part: _Part, cluster: Cluster, base: RateSet) -> dict[str, Term]:
    """Terms for the size of network that the runs cover and the uncertainty beyond; empty if they gave no term."""
    if not part.fitted:
        return {}
    domains = max(_domains(item, cluster) for item in part.runs)
    nodes = max(item.run.nodes for item in part.runs)
    evidence = Evidence(
        id=f"network_beyond:{cluster.gpu.id}",
        kind=EvidenceKind.TRANSFERRED,
        what=f"on more than the {_nodes(nodes)} measured: the same terms, with {DOUBLING_SD:.0%} more spread for each"
        " doubling of the nodes, the error of terms fitted to published runs on few nodes when they predict more",
        source=DOUBLING_SOURCE,
        gpu=cluster.gpu.id,
        terms=BEYOND,
        public=True,
    )
    reach, ratio = (base.terms[name] for name in BEYOND)
    return {
        reach.name: replace(reach, value=domains, rests_on=(), evidence=evidence),
        ratio.name: replace(ratio, own_sd=DOUBLING_SD, rests_on=(), evidence=evidence),
    }


def _domains(item: PlacedRun, cluster: Cluster) -> float:
    """Number of nodes, or of racks joined by NVLink, with GPUs at work in the groups of a run or beside them."""
    busy = item.run.nodes * item.run.gpus_per_node
    return max(float(item.group.size[0] / item.group.inside[0]), busy / cluster.near_gpus)


def _by_size(terms: dict[str, Term], runs: Sequence[CollectiveRun], base: RateSet) -> dict[str, Term]:
    """Add collectives by size to the terms of a link with known surfaces; its rate is then that of the surfaces."""
    rate, shipped = terms.get("nvlink_bytes_per_s"), base.terms["nvlink_bytes_per_s"].by_operation
    if rate is None or not shipped:
        return terms
    surfaces = own_surfaces(runs, shipped, rate.value, rate.evidence)
    by_size = replace(rate, value=large_bytes_per_s(surfaces["all_gather"]), by_operation=surfaces)
    return terms | {rate.name: by_size}


def _own_sd(part: _Part, name: str) -> float:
    """Standard deviation of a term: the largest of residual, spread of repeated runs, and uncertainty in the fit.

    The rate of the network also has the spread of collectives that may have run as rings.
    """
    spread = max(_spread(item.run) for item in part.runs)
    own_sd = max(LEAST_SD, part.fit.residual_ratio, spread, part.fit.terms[name].log_sd)
    if name != "nic_bytes_per_s":
        return own_sd
    # On few nodes, a ring sends more over the network than the equations assume; times do not show how much more.
    open_sds = [_ring_sd(item) for item in part.runs if item.link is Link.BETWEEN]
    return math.hypot(own_sd, min(open_sds))


def _spread(run: CollectiveRun) -> float:
    """Spread of the times of a run: of repeated sizes or, if known, the median standard error of its samples."""
    return run.spread_ratio if run.sampled_sds is None else float(np.median(run.sampled_sds))


def _ring_sd(item: PlacedRun) -> float:
    """Standard deviation of a rate that may be that of a ring or of the best known algorithm; small on many nodes."""
    n, r = float(item.group.size[0]), float(item.group.inside[0])
    return math.log((n - 1.0) / (n - r)) / (2.0 * Z90) if item.run.collective in RINGS else 0.0


_FIGURES: Mapping[str, tuple[str, float]] = {
    "nvlink_bytes_per_s": ("{:.4g} GB/s per GPU", GB),
    "nvls_gain_ratio": ("{:.3g} times that where the switch reduces", 1.0),
    "nic_bytes_per_s": ("{:.4g} GB/s per GPU", GB),
    "nvlink_latency_s": ("{:.3g} us per collective", MICRO),
    "nic_latency_s": ("{:.3g} us per collective", MICRO),
    "node_doubling_s": ("{:.3g} us for each doubling of the nodes", MICRO),
    "node_hop_s": ("{:.3g} us for each further node", MICRO),
    "hop_latency_s": ("{:.3g} us per rank", MICRO),
}


def _what(part: _Part, *, by_size: bool) -> str:
    """Describe the runs, their nodes and the fitted terms; `by_size` if collectives take their measured times."""
    runs = [item.run for item in part.runs]
    runs_text = ", ".join(dict.fromkeys(_over(run) for run in runs))
    low, high = min(run.sizes_bytes[0] for run in runs), max(run.sizes_bytes[-1] for run in runs)
    figures = ", ".join(_figure(name, part.fit.terms[name]) for name in part.fitted)
    line = "collectives by size as they were run; between nodes and for sends " if by_size else ""
    line += f"a straight line over {write_bytes(low)} to {write_bytes(high)} leaves {part.fit.residual_ratio:.1%}"
    single = len({run.nodes for run in runs}) == 1 and part.name == "between"
    only = "; one number of nodes: latency is divided as in the catalogue" if single else ""
    return f"{runs_text}: {figures}; {line}{only}"


def _over(run: CollectiveRun) -> str:
    name = run.device_name or "name not given"
    groups_per_node = run.gpus_per_node // run.ranks_per_node
    groups = "" if groups_per_node == 1 else f", {groups_per_node} such groups at once"
    gpus = "1 GPU each" if run.ranks_per_node == 1 else f"{run.ranks_per_node} GPUs"
    return f"{run.collective} over {_nodes(run.nodes)} of {gpus}{groups} ({name})"


def _nodes(nodes: int) -> str:
    return f"{nodes} node{'' if nodes == 1 else 's'}"


def _figure(name: str, term: FittedTerm) -> str:
    template, unit = _FIGURES[name]
    return template.format(term.value / unit)


def _warnings(
    parts: Sequence[_Part], runs: Sequence[CollectiveRun], source: NetworkSource, cluster: Cluster
) -> Iterator[Message]:
    """Messages on the runs that were used, and on where they may mislead."""
    gpu, name = cluster.gpu.id, source.name
    used = [item.run for part in parts if part.fitted for item in part.runs]
    if not used:
        yield Message.of("warning.network_unused", file=name, gpu=gpu)
        return
    yield _used(source, gpu, used)
    smallest = min(used, key=lambda run: int((run.sizes_bytes >= TRAINING_BYTES).sum()))
    if (smallest.sizes_bytes >= TRAINING_BYTES).sum() < LEAST_SIZES:
        largest = write_bytes(float(smallest.sizes_bytes[-1]))
        yield Message.of("warning.network_small", file=name, collective=smallest.collective, until=largest)
    between = next((part for part in parts if part.name == "between"), None)
    if between is not None and "nic_bytes_per_s" not in between.fitted:
        nodes = max(item.run.nodes for item in between.runs)
        yield Message.of("warning.network_rate_hidden", file=name, nodes=nodes)
    others = tuple(dict.fromkeys(run.device_name for run in runs if not bears_name(cluster.gpu, run.device_name)))
    if others:
        yield Message.of("warning.network_other_gpu", file=name, measured_on=others, gpu=gpu)
    per_node = {run.gpus_per_node for run in used if run.nodes > 1} - {cluster.gpus_per_node}
    if per_node:
        yield Message.of("warning.network_gpus_per_node", file=name, measured=max(per_node),
                         planned=cluster.gpus_per_node)  # fmt: skip


def _used(source: NetworkSource, gpu: str, runs: Sequence[CollectiveRun]) -> Message:
    """Message that the runs were used."""
    run_texts = tuple(
        dict.fromkeys(
            Message.of("text.network_run", collective=run.collective, gpus=run.ranks, nodes=run.nodes) for run in runs
        )
    )
    if source.kind == "file":
        return Message.of("warning.network_file", file=source.name, gpu=gpu, runs=run_texts)
    return Message.of("warning.network_record", record=source.name, gpu=gpu, runs=run_texts, date=str(source.date)[:10])
