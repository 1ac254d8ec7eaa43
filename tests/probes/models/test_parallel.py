"""Every strategy trains the same model: losses, memory and messages of two and four real processes.

Four take those strategies that need so many; `make long` has them take all.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

pytest.importorskip("torch")

from planner.records.communication import OPS
from probes.device.clock import no_mark
from probes.models.parallel import STRATEGIES
from probes.models.parallel.case import ParallelCase, case_of, widths_of
from probes.models.parallel.interface import Strategy
from probes.precisions import recipe_by_id
from probes.ranks.team import Team
from tests.probes.build import CPU
from tests.probes.models.parallel.ranks import STEPS, case_for
from tests.probes.ranks.forked import forking

WORLDS = (2, pytest.param(4, marks=pytest.mark.long))
GROUPS_OF_ONE = ("alone-tp", "alone-pp")
"""Steps that communicate with themselves alone, as their way of spreading a step does with others."""
PIPELINES = [strategy for strategy in STRATEGIES if strategy.id.startswith("pp")]
SENDING = [strategy for strategy in STRATEGIES if strategy not in PIPELINES and strategy.id not in GROUPS_OF_ONE]


def least_ranks(strategy: Strategy) -> int:
    """The smaller of the numbers here that a strategy runs on."""
    return 2 if strategy.least_world <= 2 else 4


def over_ranks(strategies: Sequence[Strategy]) -> list[Any]:
    """Each strategy over two ranks, where so many are enough, and over four."""
    pairs = [(world, strategy) for strategy in strategies for world in (2, 4) if world >= strategy.least_world]
    return [pytest.param(*pair, marks=[pytest.mark.long] if pair[0] > least_ranks(pair[1]) else []) for pair in pairs]


def strategy_named(name: str) -> Strategy:
    """The strategy that computes no activation again."""
    return next(strategy for strategy in STRATEGIES if strategy.id == name and not strategy.recompute)


def label(value: object) -> str:
    return str(value) if isinstance(value, int) else f"{value.id}{'-recomputed' if value.recompute else ''}"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What so many processes saw of the strategies that need at least so many; each number of them is started once."""

    @cache
    def of(world: int, least: int) -> dict[str, Any]:
        path = tmp_path_factory.mktemp("ranks") / "seen.json"
        command = ["-m", "tests.probes.models.parallel.ranks", str(world), str(path), str(least)]
        with forking(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            _, stderr = process.communicate(timeout=600)
        assert process.returncode == 0, stderr[-4000:]
        return json.loads(path.read_text())

    return of


@pytest.fixture(scope="module")
def seen(run: Any) -> Any:
    """What each rank saw of the steps of a strategy."""
    return lambda world, strategy, recipe="fp32": run(world, 4 if least_ranks(strategy) == 4 else 1)[
        f"{strategy.id} {recipe}{' recomputed' if strategy.recompute else ''}"
    ]


def test_tensor_parallel_ranks_are_neighbours(run: Any) -> None:
    assert run(4, 4)["mesh"] == [[0, 1], [2, 3]]


def mean_losses(ranks: list[dict[str, Any]]) -> list[float]:
    """Of the ranks that have one, step by step."""
    traces = [rank["losses"] for rank in ranks if rank["losses"][0] is not None]
    return [sum(losses) / len(losses) for losses in zip(*traces, strict=True)]


@cache
def losses_of_one_process(case: ParallelCase) -> list[float]:
    """The same global batch on one rank, without any strategy."""
    step = strategy_named("alone").build(case, recipe_by_id("fp32"), Team(), CPU, 0)
    return [float(step.step(no_mark)) for _ in range(STEPS)]


@pytest.mark.parametrize(("world", "strategy"), over_ranks(STRATEGIES), ids=label)
def test_the_losses_of_every_strategy_are_those_of_one_process(world: int, strategy: Strategy, seen: Any) -> None:
    losses = mean_losses(seen(world, strategy))
    expected = losses_of_one_process(case_for(strategy, world))

    # the second and third loss show that the update was right: gradients averaged once, clipped by the norm of all
    steps = 1 if strategy.id.startswith("alone") else STEPS
    assert losses[:steps] == pytest.approx(expected[:steps], abs=1e-5)
    assert expected[2] < expected[0] - 0.1


@pytest.mark.parametrize("world", WORLDS)
def test_ranks_that_train_alone_go_their_own_way(world: int, seen: Any) -> None:
    alone, ddp = (mean_losses(seen(world, strategy_named(name))) for name in ("alone", "ddp"))

    assert alone[2] < ddp[2] - 0.01  # each fits its own part of the batch, which is easier


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", GROUPS_OF_ONE)
def test_ranks_over_groups_of_one_train_as_those_alone_do(name: str, world: int, seen: Any) -> None:
    plain, spread = (seen(world, strategy_named(strategy)) for strategy in ("alone", name))

    assert strategy_named(name).messages(case_for(strategy_named(name), world), world) == ()
    for rank, same in zip(spread, plain, strict=True):
        assert rank["losses"] == pytest.approx(same["losses"], abs=1e-5)


@pytest.mark.parametrize("world", WORLDS)
def test_sharded_ranks_hold_a_fraction_of_what_replicas_hold(world: int, seen: Any) -> None:
    replicated, sharded = (seen(world, strategy_named(name))[0] for name in ("ddp", "fsdp2"))
    params = case_for(strategy_named("ddp"), world).params

    # parameters and two moments of 4 bytes, in FSDP divided among the ranks; DDP's buckets besides
    assert replicated["held_bytes"] == pytest.approx(16 * params, rel=0.01)
    assert sharded["held_bytes"] == pytest.approx(12 * params / world, rel=0.01)
    assert sharded["peak_bytes"] < replicated["peak_bytes"]


def expected_of(strategy: Strategy, world: int, recipe: str = "fp32") -> Counter[str]:
    """What a rank is said to send, by operation and size."""
    case = replace(case_for(strategy, world), widths=widths_of(recipe_by_id(recipe)))
    counted: Counter[str] = Counter()
    for message in strategy.messages(case, world):
        assert message.op in OPS
        assert message.phase in ("forward", "backward", "optimizer")
        counted[f"{message.op} {message.bytes:.0f}"] += message.count
    return counted


def without_sends(counted: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counted.items() if not name.startswith("send_recv")}


@pytest.mark.parametrize(("world", "strategy"), over_ranks(SENDING), ids=label)
def test_a_step_sends_what_its_strategy_says(world: int, strategy: Strategy, seen: Any) -> None:
    for rank in seen(world, strategy):
        assert rank["sent"] == expected_of(strategy, world)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", ["tp", "cp"])
def test_hidden_states_are_sent_in_sixteen_bits_under_autocast(name: str, world: int, seen: Any) -> None:
    strategy = strategy_named(name)

    assert seen(world, strategy, "bf16-autocast")[0]["sent"] == expected_of(strategy, world, "bf16-autocast")


@pytest.mark.parametrize(("world", "strategy"), over_ranks(PIPELINES), ids=label)
def test_a_pipeline_sends_what_its_strategy_says(world: int, strategy: Strategy, seen: Any) -> None:
    ranks, layout = seen(world, strategy), strategy.layout(world)
    sends = [message for message in strategy.messages(case_for(strategy, world), world) if message.op == "send_recv"]
    (forward,) = [message for message in sends if message.phase == "forward"]
    (backward,) = [message for message in sends if message.phase == "backward"]
    name = f"send_recv {forward.bytes:.0f}"

    # the first rank sends forward from all of its stages, and backward from all but the first of them
    assert ranks[0]["sent"][name] == forward.count + backward.count * (layout.vp - 1) // layout.vp
    assert sum(rank["sent"][name] for rank in ranks) == 2 * (layout.stages - 1) * layout.micro_batches * layout.dp
    assert without_sends(ranks[-1]["sent"]) == without_sends(expected_of(strategy, world))


def test_gradients_go_in_buckets_of_25_mib_after_a_first_one_of_1_mib_and_only_the_last_is_not_hidden() -> None:
    sent = strategy_named("ddp").messages(case_of(8, on_gpu=True), 8)

    # llama-3.2-1b without tied embeddings: 16 layers of 60.8 M, twice 262.7 M; 4 bytes each
    assert sum(message.bytes for message in sent) == pytest.approx(4 * (16 * 60_821_504 + 2 * 262_668_288 + 2048))
    assert sent[0].bytes == 4 * 262_668_288  # the output layer is ready first, and more than a bucket by itself
    assert all(message.bytes >= 25 * 2**20 for message in sent[1:-1])
    assert [message.hidden for message in sent] == [True] * (len(sent) - 1) + [False]


def test_sizes_that_ranks_do_not_divide_are_said() -> None:
    case = case_of(3, on_gpu=False)

    assert strategy_named("tp").unsupported(case, 3) == "3 ranks do not divide 16 heads"
    assert strategy_named("pp-1f1b").unsupported(replace(case, layers=4), 3) == "3 stages do not divide 4 layers"
    assert strategy_named("cp").unsupported(case, 3) == "6 chunks do not divide 32 tokens of a sequence"
    assert strategy_named("tp+fsdp2").unsupported(case, 5) == "2 tensor parallel ranks do not divide 5 ranks"
    assert [strategy.unsupported(case, 3) for strategy in STRATEGIES[:3]] == [None, None, None]
