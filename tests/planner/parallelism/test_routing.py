"""The nodes that a token is sent to, against every way in which its experts can be chosen."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from planner.hardware.catalogue import find_gpu
from planner.models.catalogue import find_model
from planner.parallelism.routing import copies_sent, crossing_ratio, parts_met, settled_dispatcher
from planner.training.policies import default_policy

MODEL = replace(find_model("deepseek-v3"), experts=16, top_k=3)


def enumerated(groups: int, chosen: int, top_k: int, nodes: int) -> float:
    """Mean number of nodes over all choices of groups, and of experts in them, two to a group."""
    experts = 2 * groups
    node_of = [number * nodes // experts for number in range(experts)]
    met = []
    for taken in combinations(range(groups), chosen):
        able = [number for number in range(experts) if number // 2 in taken]
        met += [len({node_of[number] for number in picked}) for picked in product(able, repeat=top_k)]
    return float(np.mean(met))


@pytest.mark.parametrize("nodes", [1, 2, 4, 8])
def test_without_groups_experts_are_spread_evenly(nodes):
    whole = replace(MODEL, expert_groups=0, token_groups=0)

    assert parts_met(whole, np.array([float(nodes)])) == pytest.approx(enumerated(8, 8, 3, nodes))


@pytest.mark.parametrize("nodes", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("chosen", [1, 2, 4])
def test_groups_limit_the_nodes_of_a_token(nodes, chosen):
    limited = replace(MODEL, expert_groups=8, token_groups=chosen)

    met = parts_met(limited, np.array([float(nodes)]))

    assert met == pytest.approx(enumerated(8, chosen, 3, nodes))
    assert np.all(met <= parts_met(replace(limited, expert_groups=0), np.array([float(nodes)])) + 1e-12)


def test_deepseek_v3_sends_a_token_to_at_most_four_of_eight_nodes():
    # 8 experts in 4 of 8 groups, one on each node: 4 (1 - (3/4)^8); without the limit 8 (1 - (7/8)^8)
    model = find_model("deepseek-v3")

    assert parts_met(model, np.array([8.0])) == pytest.approx(4 * (1 - 0.75**8))
    assert parts_met(replace(model, expert_groups=0), np.array([8.0])) == pytest.approx(8 * (1 - 0.875**8))


def test_a_plain_all_to_all_sends_a_token_to_each_expert_and_deepep_to_each_gpu():
    ranks, nodes, anywhere = np.array([8.0, 64.0]), np.array([1.0, 8.0]), replace(MODEL, expert_groups=0)

    assert copies_sent("alltoall", MODEL, ranks) == pytest.approx(3.0)
    assert crossing_ratio("alltoall", MODEL, ranks, nodes) == pytest.approx(1.0)
    copies = copies_sent("deepep", anywhere, ranks)
    assert copies == pytest.approx([8 * (1 - (7 / 8) ** 3), 64 * (1 - (63 / 64) ** 3)])
    assert crossing_ratio("deepep", anywhere, ranks, nodes) * copies == pytest.approx(parts_met(anywhere, nodes))


@pytest.mark.parametrize(
    ("asked", "stack", "gpu", "precision", "year", "dispatcher"),
    [
        (None, "tuned", "h100-sxm5-80gb", "fp8", None, "deepep"),
        (None, "typical", "a100-sxm4-80gb", "bf16", 2026.0, "deepep"),
        (None, "tuned", "h100-sxm5-80gb", "bf16", 2025.3, "alltoall"),  # before frameworks had it
        (None, "fsdp-compile", "h100-sxm5-80gb", "bf16", None, "alltoall"),  # torchtitan's default
        (None, "tuned", "mi300x-192gb", "bf16", None, "alltoall"),
        (None, "tuned", "v100-sxm2-32gb", "bf16", None, "alltoall"),
        (None, "tuned", "rtx-4090", "bf16", None, "alltoall"),  # no NVLink
        ("deepep", "fsdp-compile", "mi300x-192gb", "bf16", None, "deepep"),
        ("alltoall", "tuned", "h100-sxm5-80gb", "bf16", None, "alltoall"),
        *(("deepep", "tuned", "h100-sxm5-80gb", wide, None, "alltoall") for wide in ("fp32", "tf32", "fp16")),
    ],
)
def test_deepep_is_usual_where_it_runs_and_is_offered(asked, stack, gpu, precision, year, dispatcher):
    assert settled_dispatcher(asked, stack, find_gpu(gpu), default_policy(precision), year) == dispatcher
