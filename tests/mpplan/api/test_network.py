"""The user's own network: named by `--network-file`, or of a record; what it changes, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mpplan.api.answer import estimate
from planner.performance.collectives import all_reduce_s, place
from planner.records.home import records_dir
from planner.records.jsonl import to_line
from planner.records.measurement import Measurement
from tests.planner.build import cluster, mid_rates, recipe
from tests.planner.collective_points import collectives
from tests.planner.nccl_output import output
from tests.planner.recorded import H200, a_canary, kernels, write_record

ASKED = ("--params", "7B", "--gpus", "64", "--price", "2.5")
SLOW_BYTES_PER_S = 5e9
"""An eighth of what the catalogue gives an H100."""


def run_of(nodes: int) -> str:
    rates = mid_rates(recipe(), cluster()).replaced(nic_bytes_per_s=SLOW_BYTES_PER_S, node_doubling_s=1e-4)
    group = place(np.array([nodes * 8]), 1, 8)
    return output("all_reduce", nodes, 8, lambda size: float(np.asarray(all_reduce_s(size, group, rates))[0]))


@pytest.fixture
def measured(home) -> str:
    (home / "nccl.txt").write_text(run_of(4) + run_of(16), encoding="utf-8")
    return "nccl.txt"


def document(result) -> dict:
    assert result.code == 0, result.err
    return json.loads(result.out)


def test_the_network_that_was_measured_is_the_plan_s_and_is_named_as_its_evidence(run, measured):
    plain, own = (document(run("estimate", *ASKED, *extra, "--json")) for extra in ((), ("--network-file", measured)))
    (row,) = [row for row in own["evidence"] if row["source"] == "nccl.txt"]
    speeds = [
        next(plan["tokens_per_s_per_gpu"]["mid"] for plan in answer["plans"] if plan["precision"] == "bf16")
        for answer in (plain, own)
    ]

    assert (row["kind"], row["date"]) == ("measured", None)
    assert set(row["terms"]) == {"nic_bytes_per_s", "nic_latency_s", "node_doubling_s", "node_hop_s"}
    assert "step_s.dp_comm" in row["used_in"]
    assert "all_reduce over 16 nodes of 8 GPUs (NVIDIA H100 80GB HBM3): 5 GB/s per GPU" in row["what"]
    assert own["question"]["network_file"] == {"value": "nccl.txt", "source": "flag", "note": None}
    assert [text for text in own["warnings"] if "network as measured in `nccl.txt`" in text] != []
    assert speeds[1] < 0.95 * speeds[0]  # gradients take eight times as long


def test_the_network_s_rate_is_no_longer_an_assumption(run, measured):
    plain, own = (document(run("estimate", *ASKED, *extra, "--json")) for extra in ((), ("--network-file", measured)))

    assert "network" in [row["id"] for row in plain["assumptions"]]
    assert "network" not in [row["id"] for row in own["assumptions"]]


def test_a_rate_beside_the_file_that_measured_it_is_said_to_be_unused(run, measured):
    alone, beside = (
        document(run("estimate", *ASKED, "--network-file", measured, *extra, "--json"))
        for extra in ((), ("--network", "1Gb/s"))
    )
    unused = f"--network is not used: `{measured}` has a measured rate between the nodes"

    steps = [[plan["step_s"]["total"] for plan in answer["plans"]] for answer in (alone, beside)]
    assert steps[1] == pytest.approx(steps[0], rel=0.02)  # the fit starts from the given rate
    assert unused in beside["warnings"]
    assert unused not in alone["warnings"]


def test_a_configuration_and_python_take_it_too(run, measured, home):
    flagged = document(run("estimate", *ASKED, "--network-file", measured, "--json"))
    (home / "mpplan.toml").write_text(f'[estimate]\nnetwork-file = "{measured}"\n', encoding="utf-8")
    configured = document(run("estimate", *ASKED, "--json"))
    answer = estimate(params="7B", gpus=64, price=2.5, network_file=home / measured)

    assert configured["plans"] == flagged["plans"]
    assert configured["question"]["network_file"]["source"] == "file"
    assert answer.plans[0].step_s is not None
    assert "nccl.txt" in [row.source for row in answer.evidence]


def test_explain_and_the_report_name_it(run, measured, home):
    plan = run("estimate", *ASKED, "--network-file", measured, "--json", "--report", "plan.html").out
    (home / "plan.json").write_text(plan, encoding="utf-8")
    explained = run("explain", "plan.json", "step")
    page = (home / "plan.html").read_text(encoding="utf-8")

    assert "nccl.txt" in explained.out
    assert "Network, as measured" in page
    assert "5 GB/s per GPU" in page


def test_a_run_inside_one_node_says_what_it_leaves_open_between_nodes(run, home):
    gpus, rates = 8, mid_rates(recipe(), cluster())
    group = place(np.array([gpus]), 1, gpus)
    text = output("all_reduce", 1, gpus, lambda size: float(np.asarray(all_reduce_s(size, group, rates))[0]))
    (home / "one.txt").write_text(text, encoding="utf-8")
    words = "`one.txt` was measured inside one node: between the"

    def said(*given: str) -> list[str]:
        answer = document(run("estimate", *ASKED, *given, "--network-file", "one.txt", "--json"))
        return [text for text in answer["warnings"] if words in text]

    assert len(said()) == 1
    assert "between the plan's 8 nodes" in said()[0]
    assert said("--gpus", "8") == []
    (home / "one.txt").write_text(text + run_of(4), encoding="utf-8")
    assert said() == []


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (None, 2, "error: cannot read `nccl.txt`"),
        (b"\0\1\2", 3, "error: nccl.txt:1: expected the text that nccl-tests prints, found a binary file"),
        (b"iperf3: 94.1 Gbits/sec\n", 3, "error: nccl.txt:1: expected the table that nccl-tests prints"),
        (run_of(2).encode()[:-400], 3, "error: nccl.txt:"),
        (run_of(2).replace("# Avg", "#").encode(), 3, "the run was cut off"),
    ],
)
def test_a_file_that_is_no_whole_run_is_refused_with_a_hint(run, home, content, code, message):
    if content is not None:
        (home / "nccl.txt").write_bytes(content)
    result = run("estimate", *ASKED, "--network-file", "nccl.txt")

    assert result.code == code
    assert message in result.err
    assert "hint: " in result.err
    assert "Traceback" not in result.err
    assert result.out == ""


ON_H200 = ("--params", "7B", "--gpu", "h200-sxm-141gb", "--gpus", "32", "--precision", "bf16", "--price", "2.5", "--tp",
           "1", "--pp", "1", "--micro-batch", "1", "--zero", "1", "--act-ckpt", "full", "--json")  # fmt: skip
"""4 nodes, with a layout: the search for one takes most of the time."""


def on_nodes(nodes: int, day: int = 20, rate: float = SLOW_BYTES_PER_S, **changes: object) -> list[Measurement]:
    """All-reduces over so many nodes of 8 H200, on a network of this rate."""
    rates = mid_rates(recipe(), cluster("h200-sxm-141gb")).replaced(nic_bytes_per_s=rate, node_doubling_s=1e-4)
    group = place(np.array([nodes * 8]), 1, 8)

    def time_s(size: float) -> float:
        return float(np.ravel(all_reduce_s(size, group, rates.without_surfaces()))[0])

    stamp = {"timestamp_utc": f"2026-11-{day:02d}T12:00:00.000+00:00"}
    return collectives(time_s, **({"world": nodes * 8, "nodes": nodes} | stamp | changes))


def of_kernels(day: int = 20) -> list[Measurement]:
    """A record of one GPU."""
    stamp = f"2026-11-{day:02d}T12:00:00.000+00:00"
    return [replace(point, timestamp_utc=stamp) for point in (a_canary(**H200), *kernels())]


def keep(name: str, points: list[Measurement]) -> None:
    """A record in the user's store."""
    write_record(records_dir() / f"{name}.jsonl", *points)


def terms_of(answer: dict, source: str) -> set[str]:
    """The terms that a source gives."""
    return {term for row in answer["evidence"] if source in row["source"] for term in row["terms"]}


def test_a_record_of_the_store_gives_the_network_by_itself_and_is_named_as_measured(run, home):
    keep("eight-nodes", on_nodes(4))
    answer = document(run("estimate", *ON_H200))
    (row,) = [row for row in answer["evidence"] if "eight-nodes" in row["source"]]
    warnings = " ".join(answer["warnings"])

    assert (row["kind"], row["source"]) == ("measured", "mpplan probe, record eight-nodes")
    assert row["date"] == "2026-11-20T12:00:00.000+00:00"
    assert "all_reduce over 4 nodes of 8 GPUs (NVIDIA H200): 5 GB/s per GPU" in row["what"]
    assert {"nic_bytes_per_s", "node_doubling_s"} <= set(row["terms"])
    assert "network as measured in your record `eight-nodes` (all_reduce over 32 GPUs on 4 nodes" in warnings
    assert "planned from your record" not in warnings
    assert "network" not in [row["id"] for row in answer["assumptions"]]


def test_a_network_that_was_measured_slow_makes_the_plan_slower(run, home):
    before = document(run("estimate", *ON_H200))
    keep("slow", on_nodes(4))
    after = document(run("estimate", *ON_H200))

    assert after["plans"][0]["step_s"]["dp_comm"] > 3.0 * before["plans"][0]["step_s"]["dp_comm"]


@pytest.mark.parametrize(("one_gpu", "ranks"), [(20, 21), (21, 20)], ids=["ranks are newer", "one GPU is newer"])
def test_kernels_come_from_the_record_of_one_gpu_and_the_network_from_that_of_ranks(run, home, one_gpu, ranks):
    keep("alone", of_kernels(one_gpu))
    keep("together", on_nodes(4, ranks))
    answer = document(run("estimate", *ON_H200))

    assert "linear_flop_per_s" in terms_of(answer, "run 0d0e5f0e")
    assert "nic_bytes_per_s" in terms_of(answer, "record together")
    assert "planned from your record `alone`" in " ".join(answer["warnings"])


def test_the_newest_record_of_ranks_gives_the_network(run, home):
    keep("older", on_nodes(4, 19))
    keep("newer", on_nodes(4, 20))

    assert terms_of(document(run("estimate", *ON_H200)), "record newer")


@pytest.mark.parametrize(
    "changes",
    [
        {"backend": "gloo"},
        {"backend": "gloo", "device_kind": "cpu", "device_name": "Some CPU", "memory_total_bytes": 64e9},
        {"device_name": "NVIDIA H100 80GB HBM3", "memory_total_bytes": 85520809984.0},
    ],
    ids=["gloo on the GPU", "gloo on a CPU", "another GPU"],
)
def test_gloo_a_cpu_and_another_gpu_give_no_term_of_the_network(run, home, changes):
    keep("other", on_nodes(4, **changes))
    answer = document(run("estimate", *ON_H200))

    assert terms_of(answer, "other") == set()
    assert [row["terms"] for row in answer["evidence"] if row["id"].startswith("network_")] == []


def test_a_file_named_for_the_network_wins_over_the_record(run, home):
    keep("recorded", on_nodes(4))
    Path("named.jsonl").write_text("".join(f"{to_line(p)}\n" for p in on_nodes(4, rate=1e10)), encoding="utf-8")
    answer = document(run("estimate", *ON_H200, "--network-file", "named.jsonl"))
    (row,) = [row for row in answer["evidence"] if row["source"] == "named.jsonl"]

    assert terms_of(answer, "recorded") == set()
    assert "10 GB/s per GPU" in row["what"]


def test_a_gloo_record_named_for_the_network_is_refused(run, home):
    write_record(Path("gloo.jsonl"), *on_nodes(4, backend="gloo"))
    result = run("estimate", *ON_H200, "--network-file", "gloo.jsonl")

    assert (result.code, result.out) == (3, "")
    assert "error: gloo.jsonl: expected collectives of several sizes between GPUs, found none" in result.err


@pytest.mark.parametrize("as_folder", [False, True], ids=["file", "folder"])
def test_records_that_are_named_give_the_network_too(run, home, as_folder):
    Path("mine").mkdir()
    write_record(Path("mine/ranks.jsonl"), *on_nodes(4))
    answer = document(run("estimate", *ON_H200, "--records", "mine" if as_folder else "mine/ranks.jsonl"))

    assert "nic_bytes_per_s" in terms_of(answer, "record ranks")


def test_more_nodes_than_were_measured_are_said_and_make_the_range_wider(run, home):
    asked = tuple("128" if word == "32" else word for word in ON_H200)  # 16 nodes
    keep("nodes", on_nodes(16, rate=1e8))
    within = document(run("estimate", *asked))
    keep("nodes", on_nodes(4, rate=1e8))
    beyond = document(run("estimate", *asked))
    warning = (
        "the network was measured on 4 nodes and the plan has 16 nodes: the ranges of communication times are wider, "
        "by 21%"
    )
    near, far = (_width(answer["plans"][0]["tokens_per_s_per_gpu"]) for answer in (within, beyond))

    assert warning in " ".join(beyond["warnings"])
    assert "the network was measured on" not in " ".join(within["warnings"])
    assert far > 1.2 * near
    assert terms_of(beyond, "nanotron-ultrascale") == {"measured_domains", "beyond_measured_ratio"}


def _width(figure: dict) -> float:
    return figure["high"] / figure["low"] - 1.0
