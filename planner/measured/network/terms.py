"""The user's own collectives as terms: inside a node and between nodes, each with what it was measured on."""

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
"""Collectives of training are larger; below, NCCL takes protocols of less latency and less rate (LL, LL128)."""
LEAST_SIZES = 3
"""With fewer of them, all sizes are fitted."""
INSIDE = ("nvlink_bytes_per_s", "nvlink_latency_s")
"""Terms that runs inside a node tell of."""
BETWEEN = ("nic_bytes_per_s", "nic_latency_s", "node_doubling_s", "node_hop_s")
"""Terms that runs over several nodes tell of."""
REACH = ("node_doubling_s", "node_hop_s")
"""Of these, what further nodes add to each message."""
BEYOND = ("measured_domains", "beyond_measured_ratio")
"""Terms that say how far the runs reach, and what is open beyond that."""
DETAILS = ("nvls_gain_ratio", "hop_latency_s")
"""Terms that one kind of run cannot tell from those: fitted only where the times are not explained without."""
BETTER_RATIO, BETTER_BY_RATIO = 0.9, 0.005
"""What must remain of the errors, and be gained at least, for a detail to count."""
RINGS = ("all_reduce", "all_gather", "reduce_scatter")
"""Collectives that may run as rings: one sends (n-1)/n of the data over the network, the best known way (n-r)/n."""


DOUBLING_SD = 0.21
"""Standard deviation of the logarithm of a time on more nodes than were measured, for each doubling of their number:
what these equations, fitted to the runs on up to n nodes, leave of those on more. All-reduce, all-gather and
reduce-scatter of 256 MiB over 2 to 64 nodes of 8 H100 with EFA: 0.21, mean 0.05
(vinjn/nanotron-ultrascale-playbook:assets/data/benchmarks/pp_comm_bandwidth.html@924e4d0); all-reduce of 1 MiB to 4 GiB
over 2 to 16 nodes of 8 A100 with 200 Gb/s InfiniBand: 0.21 where all fewer nodes are known, 0.18 where one number is
(NetX-lab/Echo:nccl-test-log@15f0d12)."""
DOUBLING_SOURCE = (
    "vinjn/nanotron-ultrascale-playbook:assets/data/benchmarks/pp_comm_bandwidth.html@924e4d0; "
    "NetX-lab/Echo:nccl-test-log@15f0d12"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSource:
    """Where runs are from."""

    name: str
    """Of the file or record, as a reader knows it."""
    origin: str
    """The same as the source of evidence."""
    kind: str = "file"
    """`file` that the user named for the network, or `record`."""
    date: str | None = None
    """ISO 8601 time of the last point; None where nothing says."""

    @classmethod
    def file(cls, name: str) -> NetworkSource:
        """A file that the user named for the network."""
        return cls(name=name, origin=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnNetwork:
    """What the user's own collectives say of the network of a cluster."""

    terms: dict[str, Term] = field(default_factory=dict)
    """By name; they win over the catalogue's."""
    warnings: tuple[Message, ...] = ()
    """What was used, and what a reader must know of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The runs inside a node, or those over several."""

    name: str
    runs: tuple[PlacedRun, ...]
    fit: NetworkFit
    fitted: tuple[str, ...]
    """Terms that it gives."""


def network_terms(runs: Sequence[CollectiveRun], source: NetworkSource, cluster: Cluster, base: RateSet) -> OwnNetwork:
    """The terms that the runs of a file or record give.

    Args:
        runs: of the file or record.
        source: which it is.
        cluster: the machines that are planned with.
        base: their terms by other evidence: labels, and what the runs leave open.
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
    """A run without the sizes that training does not send, where enough others are left."""
    large = run.sizes_bytes >= TRAINING_BYTES
    if large.sum() < LEAST_SIZES:
        return run
    sampled = None if run.sampled_sds is None else run.sampled_sds[large]
    return replace(run, sizes_bytes=run.sizes_bytes[large], times_s=run.times_s[large], sampled_sds=sampled)


def _domain(run: CollectiveRun, cluster: Cluster) -> int:
    """Ranks of a run that reach each other without the network: those of a node, or of a rack (NVL72)."""
    return cluster.nvlink_domain if cluster.nvlink_domain > cluster.gpus_per_node else run.ranks_per_node


def _stays_inside(run: CollectiveRun, cluster: Cluster) -> bool:
    return run.ranks <= min(_domain(run, cluster), cluster.linked_gpus)


def _placed(run: CollectiveRun, cluster: Cluster, link: Link) -> PlacedRun:
    near = min(_domain(run, cluster), cluster.near_gpus)
    return PlacedRun(run=run, group=place(np.array([run.ranks]), 1, near, cluster.linked_gpus), link=link)


def _limited(run: CollectiveRun, cluster: Cluster, base: RateSet) -> PlacedRun:
    """A run over several nodes with what limits it.

    It is the network, unless the links inside a node explain the time of the largest size, and the network as it is
    known would not have taken longer.
    """
    inside, between = (_placed(run, cluster, link) for link in (Link.INSIDE, Link.BETWEEN))
    mid, measured_s = base.sample(), run.times_s[-1]
    slack = math.exp(base.terms["nvlink_bytes_per_s"].log_sd)
    hidden = measured_s <= slack * inside.time_s(mid)[-1] and between.time_s(mid)[-1] <= measured_s
    return inside if hidden else between


def _fitted(name: str, runs: Sequence[PlacedRun], base: RateSet, names: Sequence[str]) -> _Part:
    """Fit the terms, with details where they are needed; links inside nodes go along where they limit a run."""
    beside = ["nvlink_bytes_per_s"] if any(item.link is Link.INSIDE for item in runs) else []
    fit = _fit(runs, base, [*names, *beside])
    details = [detail for detail in DETAILS if base.terms[detail].rests_on]  # others are exact, or measured already
    closer = _fit(runs, base, [*names, *beside, *details])
    if closer.residual_ratio < BETTER_RATIO * fit.residual_ratio - BETTER_BY_RATIO:
        fit = closer
    given = [term for term in (*names, *DETAILS) if term in fit.terms and fit.terms[term].informed]
    return _Part(name=name, runs=tuple(runs), fit=fit, fitted=tuple(given))


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
    """Messages of all sizes take the latency of further nodes in full where the runs gave it: they had all sizes."""
    whole, given = base.terms["node_latency_bytes"], [terms[name] for name in REACH if name in terms]
    if not given or whole.value == 0.0:
        return {}
    return {whole.name: replace(whole, value=0.0, rests_on=(), evidence=given[0].evidence)}


def _beyond(part: _Part, cluster: Cluster, base: RateSet) -> dict[str, Term]:
    """How far the runs reach, and what is open of a network beyond that; nothing where they gave no term of it."""
    if not part.fitted:
        return {}
    domains = max(_domains(item, cluster) for item in part.runs)
    nodes = max(item.run.nodes for item in part.runs)
    evidence = Evidence(
        id=f"network_beyond:{cluster.gpu.id}",
        kind=EvidenceKind.TRANSFERRED,
        what=f"beyond the {_nodes(nodes)} that were measured the same terms, with {DOUBLING_SD:.0%} more spread for"
        " each doubling of their number: so far published runs on few nodes were off on more",
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
    """Nodes, or racks that NVLink joins, of the GPUs that were at work, in the groups of a run or beside them."""
    busy = item.run.nodes * item.run.gpus_per_node
    return max(float(item.group.size[0] / item.group.inside[0]), busy / cluster.near_gpus)


def _by_size(terms: dict[str, Term], runs: Sequence[CollectiveRun], base: RateSet) -> dict[str, Term]:
    """The terms of a link with its collectives by size, where surfaces of it are known; its rate is theirs."""
    rate, shipped = terms.get("nvlink_bytes_per_s"), base.terms["nvlink_bytes_per_s"].by_operation
    if rate is None or not shipped:
        return terms
    surfaces = own_surfaces(runs, shipped, rate.value, rate.evidence)
    by_size = replace(rate, value=large_bytes_per_s(surfaces["all_gather"]), by_operation=surfaces)
    return terms | {rate.name: by_size}


def _own_sd(part: _Part, name: str) -> float:
    """What the line leaves of the times, how far repeated runs lie apart, and what is open of the term itself."""
    spread = max(_spread(item.run) for item in part.runs)
    own_sd = max(LEAST_SD, part.fit.residual_ratio, spread, part.fit.terms[name].log_sd)
    if name != "nic_bytes_per_s":
        return own_sd
    # On few nodes a ring sends more over the network than the equations have; how much is not seen in a time.
    open_sds = [_ring_sd(item) for item in part.runs if item.link is Link.BETWEEN]
    return math.hypot(own_sd, min(open_sds))


def _spread(run: CollectiveRun) -> float:
    """How far repeated times of a run lie apart: of sizes that were run again, or of the samples of most sizes."""
    return run.spread_ratio if run.sampled_sds is None else float(np.median(run.sampled_sds))


def _ring_sd(item: PlacedRun) -> float:
    """Spread of a rate between what a ring and what the best known way sends; small on many nodes."""
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
    """What was run on how many nodes, and what it gave; `by_size` where a collective takes its measured times."""
    runs = [item.run for item in part.runs]
    over = ", ".join(dict.fromkeys(_over(run) for run in runs))
    low, high = min(run.sizes_bytes[0] for run in runs), max(run.sizes_bytes[-1] for run in runs)
    figures = ", ".join(_figure(name, part.fit.terms[name]) for name in part.fitted)
    line = "collectives by size as they were run; between nodes and for sends " if by_size else ""
    line += f"a straight line over {write_bytes(low)} to {write_bytes(high)} leaves {part.fit.residual_ratio:.1%}"
    single = len({run.nodes for run in runs}) == 1 and part.name == "between"
    only = "; one number of nodes: latency is divided as in the catalogue" if single else ""
    return f"{over}: {figures}; {line}{only}"


def _over(run: CollectiveRun) -> str:
    name = run.device_name or "name not given"
    beside = run.gpus_per_node // run.ranks_per_node
    groups = "" if beside == 1 else f", {beside} such groups at once"
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
    """What was used, and where it may mislead."""
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
    """That the runs were used."""
    over = tuple(
        dict.fromkeys(
            Message.of("text.network_run", collective=run.collective, gpus=run.ranks, nodes=run.nodes) for run in runs
        )
    )
    if source.kind == "file":
        return Message.of("warning.network_file", file=source.name, gpu=gpu, runs=over)
    return Message.of("warning.network_record", record=source.name, gpu=gpu, runs=over, date=str(source.date)[:10])
