"""`--network-file` from the command line, a configuration and Python: what it changes, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mpplan.api.answer import estimate
from planner.performance.collectives import all_reduce_s, place
from tests.planner.build import cluster, mid_rates, recipe
from tests.planner.nccl_output import output

ASKED = ("--params", "7B", "--gpus", "64", "--price", "2.5")
SLOW_BYTES_PER_S = 5e9
"""An eighth of what the catalogue gives an H100."""


def run_of(nodes: int) -> str:
    rates = mid_rates(recipe(), cluster()).replaced(nic_bytes_per_s=SLOW_BYTES_PER_S, node_hop_s=1e-4)
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
    assert set(row["terms"]) == {"nic_bytes_per_s", "nic_latency_s", "node_hop_s"}
    assert "step_s.dp_comm" in row["used_in"]
    assert "all_reduce over 16 nodes of 8 GPUs (NVIDIA H100 80GB HBM3): 5 GB/s per GPU" in row["what"]
    assert own["question"]["network_file"] == {"value": "nccl.txt", "source": "flag", "note": None}
    assert [text for text in own["warnings"] if "network as measured in `nccl.txt`" in text] != []
    assert speeds[1] < 0.95 * speeds[0]  # gradients take eight times as long


def test_the_network_s_rate_is_no_longer_an_assumption(run, measured):
    plain, own = (document(run("estimate", *ASKED, *extra, "--json")) for extra in ((), ("--network-file", measured)))

    assert "network" in [row["id"] for row in plain["assumptions"]]
    assert "network" not in [row["id"] for row in own["assumptions"]]


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


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (None, 2, "error: cannot read `nccl.txt`"),
        (b"\0\1\2", 3, "error: nccl.txt:1: expected the text that nccl-tests prints, found a binary file"),
        (b"iperf3: 94.1 Gbits/sec\n", 3, "error: nccl.txt:1: expected the table that nccl-tests prints"),
        (run_of(2).encode()[:-400], 3, "error: nccl.txt:"),
        (run_of(2).replace("# Avg", "#").encode(), 3, "the run was cut off"),
    ],
)
def test_a_file_that_is_no_whole_run_is_refused_with_a_hint(run, home, content, code, said):
    if content is not None:
        (home / "nccl.txt").write_bytes(content)
    result = run("estimate", *ASKED, "--network-file", "nccl.txt")

    assert result.code == code
    assert said in result.err
    assert "hint: " in result.err
    assert "Traceback" not in result.err
    assert result.out == ""
