"""Terms from times of collectives: chosen rates come back, and what a run cannot tell stays the catalogue's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.evidence import EvidenceKind
from planner.hardware.network import Network
from planner.measured.network.fit import TIMES
from planner.measured.network.recorded import collective_runs
from planner.measured.network.runs import CollectiveRun, read_nccl_tests
from planner.measured.network.terms import BEYOND, DOUBLING_SD, NetworkSource, network_terms
from planner.performance.collectives import place
from planner.rates.ladder import resolve_rates
from planner.rates.terms import Draws
from planner.records.communication import bus_factor
from tests.examples import examples
from tests.planner.build import cluster, recipe
from tests.planner.collective_points import SIZES, collective, collectives
from tests.planner.nccl_output import H100, output

RUNS = [("all_reduce", 4), ("all_reduce", 16), ("all_gather", 16), ("sendrecv", 2)]
"""Collective and nodes of 8 GPUs."""
BETWEEN = {"nic_bytes_per_s": 20e9, "nic_latency_s": 5e-5, "node_doubling_s": 3e-5, "node_hop_s": 2e-5}
"""A network of 200 Gb/s: slower than the links of an H100 in every one of those runs."""

IS_H100 = {"device_name": H100, "memory_total_bytes": 85520809984.0}


def base(gpu: str = "h100-sxm5-80gb"):
    return resolve_rates(cluster(gpu), recipe())


def printed(runs, *, per_node: int = 8, noise: float = 0.0, device: str = H100, **rates: float) -> str:
    """Runs that take what the planner's equations say at these rates, times a noise that alternates."""
    text, sampled_rates = "", base().sample().without_surfaces().replaced(**rates)
    for number, (operation, nodes) in enumerate(runs):
        group = place(np.array([nodes * per_node]), 1, per_node)

        def time_s(size, operation=operation, group=group, amplitude=noise if number % 2 else -noise):
            wave = amplitude if int(np.log2(size)) % 2 else -amplitude
            return float(np.asarray(TIMES[operation](np.array([size]), group, sampled_rates))[0]) * (1.0 + wave)

        text += output(operation, nodes, per_node, time_s, device=device)
    return text


def fitted(folder: Path, text: str, gpu: str = "h100-sxm5-80gb"):
    file = folder / "nccl.txt"
    file.write_text(text, encoding="utf-8")
    return network_terms(read_nccl_tests(file), NetworkSource.file("nccl.txt"), cluster(gpu), base(gpu))


def values(network) -> dict[str, float]:
    """What was fitted, by name; how far it reaches is another matter."""
    return {name: term.value for name, term in network.terms.items() if name not in BEYOND}


def keys(network) -> list[str]:
    return [warning.key for warning in network.warnings]


def test_rates_and_latencies_between_nodes_come_back_from_times_that_they_make(tmp_path):
    network = fitted(tmp_path, printed(RUNS, **BETWEEN))

    assert values(network) == pytest.approx(BETWEEN, rel=0.01)
    assert keys(network) == ["warning.network_file"]


def test_rate_and_latency_inside_a_node_come_back_from_times_that_they_make(tmp_path):
    true = {"nvlink_bytes_per_s": 300e9, "nvlink_latency_s": 4e-5}
    network = fitted(tmp_path, printed([("all_reduce", 1), ("all_gather", 1)], **true))

    assert values(network) == pytest.approx(true, rel=0.01)


def test_small_messages_wait_in_full_on_a_network_whose_own_latencies_are_known(tmp_path):
    # the shipped figures of EFA were measured at 256 MiB, those of a file at all of its sizes
    (tmp_path / "nccl.txt").write_text(printed(RUNS, **BETWEEN), encoding="utf-8")
    efa = cluster("h100-sxm5-80gb", network=Network(bytes_per_s=50e9, fabric="efa"))
    known, runs = resolve_rates(efa, recipe()), read_nccl_tests(tmp_path / "nccl.txt")
    network = network_terms(runs, NetworkSource.file("nccl.txt"), efa, known).terms

    assert known.terms["node_latency_bytes"].value == pytest.approx(2**28, rel=1e-3)
    assert network["node_latency_bytes"].value == 0
    assert network["node_latency_bytes"].evidence is network["node_hop_s"].evidence


def test_runs_inside_a_node_and_between_nodes_tell_of_different_terms(tmp_path):
    true = BETWEEN | {"nvlink_bytes_per_s": 300e9, "nvlink_latency_s": 4e-5}
    network = fitted(tmp_path, printed([("all_reduce", 1), *RUNS], **true))

    assert values(network) == pytest.approx(true, rel=0.01)
    ids = {name: term.evidence.id for name, term in network.terms.items()}
    assert ids["nvlink_bytes_per_s"] == "network_file:inside:h100-sxm5-80gb"
    assert ids["nic_bytes_per_s"] == "network_file:between:h100-sxm5-80gb"


def test_latency_per_rank_and_gain_of_the_switch_are_fitted_where_the_rest_cannot_explain_the_times(tmp_path):
    true = {"nvlink_bytes_per_s": 300e9, "nvlink_latency_s": 4e-5, "nvls_gain_ratio": 1.6, "hop_latency_s": 6e-6}
    network = fitted(tmp_path, printed([("all_reduce", 1), ("all_gather", 1)], **true))

    assert values(network) == pytest.approx(true, rel=0.01)


@settings(examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(1e9, 2.5e10), st.floats(1e-6, 1e-3), st.floats(1e-6, 1e-3), st.floats(1e-6, 1e-3))
def test_with_the_fitted_terms_the_equations_repeat_the_times_of_any_network(
    tmp_path, rate, latency_s, doubling_s, hop_s
):
    true = {
        "nic_bytes_per_s": rate, "nic_latency_s": latency_s, "node_doubling_s": doubling_s, "node_hop_s": hop_s
    }  # fmt: skip
    terms = fitted(tmp_path, printed([("all_reduce", 2), *RUNS[:3]], **true)).terms
    rates = base().sample().without_surfaces()
    group = place(np.array([64]), 1, 8)  # 8 nodes: between those that were measured

    def times_s(values):
        return TIMES["all_reduce"](np.array([2.0**22, 2.0**28]), group, rates.replaced(**values))

    assert terms["nic_bytes_per_s"].value == pytest.approx(rate, rel=0.01)
    assert times_s({name: term.value for name, term in terms.items()}) == pytest.approx(times_s(true), rel=0.01)


def test_terms_are_measured_evidence_that_no_row_of_the_catalogue_moves(tmp_path):
    term = fitted(tmp_path, printed(RUNS, **BETWEEN)).terms["nic_bytes_per_s"]

    assert term.evidence.kind is EvidenceKind.MEASURED
    assert (term.evidence.source, term.evidence.date) == ("nccl.txt", None)
    assert term.rests_on == ()
    assert "all_reduce over 16 nodes of 8 GPUs (NVIDIA H100 80GB HBM3)" in term.evidence.what
    assert (
        ": 20 GB/s per GPU, 50 us per collective, 30 us for each doubling of the nodes, 20 us for each further node; "
        in term.evidence.what
    )


def test_the_range_is_what_a_straight_line_leaves_of_the_times_and_1_percent_at_least(tmp_path):
    runs = [("all_reduce", 2), *RUNS, ("all_reduce", 64)]
    slow = BETWEEN | {"nic_latency_s": 5e-4}
    exact = fitted(tmp_path, printed(runs, **slow)).terms
    rough = fitted(tmp_path, printed(runs, noise=0.2, **slow)).terms

    assert exact["nic_latency_s"].own_sd == 0.01
    assert rough["nic_latency_s"].own_sd == pytest.approx(0.2, rel=0.1)


def test_a_rate_measured_on_few_nodes_is_wider_for_many(tmp_path):
    # 2 nodes of 8: a ring sends 15/16 of the data over the network, the least is 8/16; on 16 nodes 127 and 120 of 128.
    two_nodes = fitted(tmp_path, printed([("all_reduce", 2)], **BETWEEN | {"nic_bytes_per_s": 5e9})).terms
    sixteen_nodes = fitted(tmp_path, printed([("all_reduce", 16)], **BETWEEN | {"nic_bytes_per_s": 5e9})).terms

    assert two_nodes["nic_bytes_per_s"].own_sd == pytest.approx(np.log(15 / 8) / 3.29, rel=0.05)
    assert sixteen_nodes["nic_bytes_per_s"].own_sd < 0.03


def test_one_number_of_nodes_gives_the_whole_latency_and_says_that_its_parts_are_the_catalogue_s(tmp_path):
    true = {"nic_bytes_per_s": 5e9, "nic_latency_s": 2e-4, "node_doubling_s": 1e-4, "node_hop_s": 2e-5}
    network = fitted(tmp_path, printed([("all_reduce", 4)], **true))
    value = {name: network.terms[name].value if name in network.terms else base().terms[name].value for name in true}

    latency_s = value["nic_latency_s"] + 2 * value["node_doubling_s"] + 3 * value["node_hop_s"]
    assert latency_s == pytest.approx(4.6e-4, rel=0.02)
    what = network.terms["node_doubling_s"].evidence.what
    assert what.endswith("one number of nodes: latency is divided as in the catalogue")


def test_where_the_links_inside_nodes_were_the_limit_the_rate_of_the_network_stays_and_it_is_said(tmp_path):
    network = fitted(tmp_path, printed([("all_reduce", 2)]))  # at the catalogue's own rates: NVLink is slower

    assert "nic_bytes_per_s" not in network.terms
    assert "nvlink_bytes_per_s" not in network.terms
    assert keys(network) == ["warning.network_file", "warning.network_rate_hidden"]


def test_a_network_faster_than_known_is_believed_although_links_inside_nodes_may_hide_more(tmp_path):
    slow = resolve_rates(cluster("h100-sxm5-80gb", network=Network(bytes_per_s=12.5e9, fabric="")), recipe())
    file = tmp_path / "nccl.txt"
    file.write_text(printed([("all_reduce", 16)], nic_bytes_per_s=36e9), encoding="utf-8")
    network = network_terms(read_nccl_tests(file), NetworkSource.file("nccl.txt"), cluster("h100-sxm5-80gb"), slow)

    assert network.terms["nic_bytes_per_s"].value == pytest.approx(36e9, rel=0.01)


def test_runs_on_other_gpus_tell_of_the_network_and_not_of_the_links_inside_a_node(tmp_path):
    runs = [("all_reduce", 1), ("all_reduce", 4), ("all_reduce", 16)]
    network = fitted(tmp_path, printed(runs, device="NVIDIA A100-SXM4-80GB", **BETWEEN))

    assert set(values(network)) == set(BETWEEN)
    assert keys(network) == ["warning.network_file", "warning.network_other_gpu"]


def test_other_gpus_per_node_are_said(tmp_path):
    network = fitted(tmp_path, printed([("all_reduce", 4), ("all_reduce", 16)], per_node=4, **BETWEEN))

    assert keys(network) == ["warning.network_file", "warning.network_gpus_per_node"]


def test_one_node_without_nvlink_tells_of_its_pcie(tmp_path):
    true = {"nvlink_bytes_per_s": 12e9, "nvlink_latency_s": 4e-5}
    network = fitted(tmp_path, printed([("all_gather", 1)], device="NVIDIA L40S", **true), "l40s")

    assert network.terms["nvlink_bytes_per_s"].value == pytest.approx(12e9, rel=0.02)
    assert not set(BETWEEN) & set(network.terms)


def test_one_node_of_cards_joined_in_pairs_says_nothing_of_either_link(tmp_path):
    network = fitted(tmp_path, printed([("all_reduce", 1)], device="NVIDIA A40"), "a40")

    assert network.terms == {}
    assert keys(network) == ["warning.network_unused"]


def test_nodes_of_one_rack_of_fast_links_are_inside_it(tmp_path):
    runs = [("all_reduce", 1), ("all_reduce", 16)]
    network = fitted(tmp_path, printed(runs[1:], per_node=4, device="NVIDIA GB200"), "gb200-186gb")

    assert "nvlink_bytes_per_s" in network.terms  # 64 GPUs of the 72 that NVLink joins
    assert "nic_bytes_per_s" not in network.terms


BY_NODES = {
    "all_reduce": (361.75, 160.14, 99.56, 84.74, 64.93, 32.94),
    "all_gather": (184.61, 118.97, 69.0, 54.97, 27.97, 11.04),
    "reduce_scatter": (181.55, 115.76, 68.55, 54.52, 27.94, 11.07),
}
"""GB/s on the bus at 256 MiB over 2, 4 … 64 nodes of 8 H100 with EFA
(vinjn/nanotron-ultrascale-playbook:assets/data/benchmarks/pp_comm_bandwidth.html@924e4d0)."""


def published() -> list[CollectiveRun]:
    """Those rates as runs."""
    return [
        CollectiveRun(
            collective=operation, ranks=16 * 2**doubling, nodes=2 * 2**doubling, device_name=H100,
            sizes_bytes=np.array([2.0**28]),
            times_s=np.array([2**28 * bus_factor(operation, 16 * 2**doubling) / rate / 1e9]), spread_ratio=0.0,
        )
        for operation, rates in BY_NODES.items()
        for doubling, rate in enumerate(rates)
    ]  # fmt: skip


def test_the_spread_for_each_doubling_is_what_published_runs_on_few_nodes_leave_of_those_on_more():
    efa = cluster("h100-sxm5-80gb", network=Network(bytes_per_s=50e9, fabric="efa"))
    known, errors = resolve_rates(efa, recipe()), []
    for most_nodes in (2, 4, 8, 16, 32):
        small_runs = [run for run in published() if run.nodes <= most_nodes]
        terms = network_terms(small_runs, NetworkSource.file("fewer"), efa, known).terms
        rates = resolve_rates(efa, recipe(), terms).sample()
        for run in (run for run in published() if run.nodes > most_nodes):
            predicted_s = TIMES[run.collective](run.sizes_bytes, place(np.array([run.ranks]), 1, 8), rates)
            errors.append(float(np.log(run.times_s / predicted_s)[0]) / np.log2(run.nodes / most_nodes))

    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(DOUBLING_SD, abs=0.005)
    assert np.mean(errors) == pytest.approx(0.06, abs=0.01)
    assert DOUBLING_SD == 0.21


@pytest.mark.parametrize(("nodes", "log_sd"), [(1, 0.0), (2, 0.0), (4, 0.21), (16, 0.63), (32, 0.84)])
@pytest.mark.parametrize("operation", ["all_reduce", "all_gather", "alltoall"])
def test_a_time_on_more_nodes_than_were_measured_spreads_more_with_each_doubling(tmp_path, operation, nodes, log_sd):
    network = fitted(tmp_path, printed([("all_reduce", 2)], **BETWEEN))
    rates = resolve_rates(cluster(), recipe(), network.terms)
    group, sizes = place(np.array([8 * nodes]), 1, 8), np.array([2.0**28])
    middle, beyond = rates.sample(), rates.sample(Draws(count=1001, seed=0)).beyond_measured_ratio
    drawn = TIMES[operation](sizes, group, middle.replaced(beyond_measured_ratio=beyond))
    middle_s = TIMES[operation](sizes, group, middle)

    assert float(np.std(np.log(drawn))) == pytest.approx(log_sd, rel=1e-3)
    assert float(np.median(drawn)) == pytest.approx(float(middle_s[0]), rel=1e-9)


def test_what_is_open_beyond_the_measured_nodes_is_no_measurement_and_names_what_it_was_learned_from(tmp_path):
    terms = fitted(tmp_path, printed([("all_reduce", 2), ("all_reduce", 4)], **BETWEEN)).terms
    evidence = terms["beyond_measured_ratio"].evidence

    assert (terms["measured_domains"].value, terms["beyond_measured_ratio"].value) == (4.0, 1.0)
    assert evidence.kind is EvidenceKind.TRANSFERRED
    assert "on more than the 4 nodes measured: the same terms, with 21% more spread for each doubling" in evidence.what
    assert "pp_comm_bandwidth.html@924e4d0" in evidence.source


def test_runs_inside_a_node_say_nothing_of_how_many_nodes_there_may_be(tmp_path):
    assert not set(fitted(tmp_path, printed([("all_reduce", 1)], nvlink_bytes_per_s=300e9)).terms) & set(BEYOND)


def test_a_rack_counts_as_one_domain_however_many_nodes_it_has(tmp_path):
    runs = [("all_reduce", 36)]  # 144 GPUs: two racks of 72
    network = fitted(tmp_path, printed(runs, per_node=4, device="NVIDIA GB200", **BETWEEN), "gb200-186gb")

    assert network.terms["measured_domains"].value == 2.0


def test_one_gpu_of_each_node_shares_the_network_with_the_others_of_its_node(tmp_path):
    def times_s(size: float) -> float:
        return 1e-4 + size * 3 / 4 / 5e9  # (n-1)/n of a gather over 4 GPUs, 5 GB/s each

    points = collectives(times_s, op="all_gather", group="cross", world=4, nodes=4, **IS_H100)
    points += collectives(lambda s: 1e-4 + s / 300e9, op="all_gather", group="node", world=8, nodes=1, **IS_H100)
    source = NetworkSource(name="mine", origin="mpplan probe, record mine", kind="record")
    network = network_terms(collective_runs(points, "mine"), source, cluster(), base())

    assert network.terms["nic_bytes_per_s"].value == pytest.approx(5e9, rel=0.01)
    assert network.terms["nic_bytes_per_s"].own_sd == 0.01  # a ring of one GPU a node sends what the equations have
    assert network.terms["nvlink_bytes_per_s"].value == pytest.approx(7 / 8 * 300e9, rel=0.05)
    assert network.terms["nic_bytes_per_s"].evidence.what.startswith(
        f"all_gather over 4 nodes of 1 GPU each, 8 such groups at once ({H100}): 5 GB/s per GPU"
    )
    assert keys(network) == ["warning.network_record"]


def test_times_whose_samples_lie_far_apart_count_for_less(tmp_path):
    def torn(sd: float) -> float:
        points = [
            collective(size, (1e-4 + size / 5e9) * (2.0 if size == 2**30 else 1.0), op="all_gather", world=4, nodes=4,
                       group="cross", sd=sd if size == 2**30 else 0.005, **IS_H100)
            for size in SIZES
        ]  # fmt: skip
        source = NetworkSource(name="mine", origin="mine", kind="record")
        terms = network_terms(collective_runs(points, "mine"), source, cluster(), base()).terms
        return terms["nic_bytes_per_s"].value

    true = 0.75 * 5e9
    assert torn(1.0) == pytest.approx(true, rel=0.005)
    assert torn(0.005) < 0.95 * true


def test_samples_that_lie_apart_at_most_sizes_widen_the_terms(tmp_path):
    def own_sd(sd: float) -> float:
        points = collectives(
            lambda s: 1e-4 + s / 5e9, op="all_gather", world=4, nodes=4, group="cross", sd=sd, **IS_H100
        )
        source = NetworkSource(name="mine", origin="mine", kind="record")
        return network_terms(collective_runs(points, "mine"), source, cluster(), base()).terms["nic_bytes_per_s"].own_sd

    assert own_sd(0.005) == 0.01
    assert own_sd(0.04) == pytest.approx(0.04)


def test_one_gpu_of_each_node_tells_of_as_many_nodes_as_were_at_work_where_no_link_joins_them(tmp_path):
    device = {"device_name": "NVIDIA L40S", "memory_total_bytes": 48e9}
    points = collectives(lambda s: 1e-4 + s / 5e9, op="all_gather", group="cross", world=4, nodes=4, **device)
    points += collectives(lambda s: 1e-4 + s / 5e9, op="all_gather", group="node", world=8, nodes=1, **device)
    source = NetworkSource(name="mine", origin="mine", kind="record")
    terms = network_terms(collective_runs(points, "mine"), source, cluster("l40s", gpus_per_node=8), base("l40s")).terms

    assert terms["measured_domains"].value == 4.0


def test_runs_of_small_messages_alone_are_used_with_a_warning_that_says_up_to_which_size(tmp_path):
    small = [line for line in printed([("all_reduce", 4)], **BETWEEN).splitlines() if not _from_128_kib(line)]
    whole = fitted(tmp_path, printed([("all_reduce", 4)], **BETWEEN))

    network = fitted(tmp_path, "\n".join(small) + "\n")

    (warning,) = (warning for warning in network.warnings if warning.key == "warning.network_small")
    assert dict(warning.values)["until"] == "64 KiB"
    assert "warning.network_small" not in keys(whole)
    assert "to 64 KiB leaves" in network.terms["nic_latency_s"].evidence.what


def _from_128_kib(line: str) -> bool:
    cells = line.split()
    return bool(cells) and cells[0].isdigit() and int(cells[0]) >= 128 * 1024
