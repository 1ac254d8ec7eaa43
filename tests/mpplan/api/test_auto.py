"""`auto`: the cheapest GPU, or pair of method and GPU, is one that no other beats."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from mpplan.api.answer import estimate_briefly
from mpplan.api.auto import AUTO_METHODS, SHOWN, is_open, settle
from planner.errors import NoPlanError, UsageError
from planner.question.asked import Ask
from planner.records.home import NAMED, SHIPPED
from pricing.contracts.own_file import server_rows
from reports.text.messages import word
from tests.mpplan.api.test_network import run_of

SMALL = {"model": "llama-3.1-8b", "examples": "10k", "lengths": "400", "seq_len": "2048", "as_of": "2026-08-22"}


def test_only_a_gpu_or_a_method_can_be_left_open():
    assert is_open(Ask(texts={"gpu": "Auto"}))
    assert is_open(Ask(texts={"method": "auto"}))
    assert not is_open(Ask(texts={"gpu": "h100-sxm5-80gb", "power_limit": "auto"}))


def test_the_cheapest_gpu_is_cheaper_than_those_one_would_name():
    answer = estimate_briefly(**SMALL, method="qlora", gpu="auto")
    chosen = next(plan for plan in answer.plans if plan.precision == "bf16")
    named = estimate_briefly(**SMALL, method="qlora", gpu=["h100-sxm5-80gb", "a100-sxm4-80gb", "l40s"])

    assert chosen.memory_risk is not None
    assert chosen.memory_risk <= 0.05
    assert chosen.cost_usd is not None
    others = [plan.cost_usd.mid for plan in named.plans if plan.precision == "bf16" and plan.cost_usd is not None]
    assert chosen.cost_usd.mid <= min(others) * 1.001
    assert answer.question["gpu"].source == "derived"
    assert any(assumption.id == "gpu_auto" for assumption in answer.assumptions)


@pytest.mark.long
def test_the_cheapest_pair_is_as_cheap_as_the_cheapest_of_each_method():
    pair = settle(Ask(texts={**SMALL, "method": "auto", "gpu": "auto"}))
    costs = {}
    for method in AUTO_METHODS:
        answer = estimate_briefly(**SMALL, method=method, gpu="auto")
        costs[method] = next(p.cost_usd.mid for p in answer.plans if p.precision == "bf16" and p.cost_usd is not None)

    assert pair.ask.text(_item("method")) == min(costs, key=lambda method: costs[method])


def _item(name: str):
    from planner.question.inputs import find_input

    return find_input(name)


@pytest.mark.long
def test_a_larger_budget_alone_never_ends_later_and_no_gpu_that_one_would_name_ends_sooner():
    asked = {"params": "7B", "precision": "bf16", "as_of": "2026-08-22"}
    ends = [fastest(**asked, gpu="auto", budget=budget) for budget in ("40k", "60k", "80k")]

    assert ends == sorted(ends, reverse=True)
    for gpu in ("h100-sxm5-80gb", "h200-sxm-141gb", "b200-sxm-180gb"):
        assert ends[1] <= fastest(**asked, gpu=gpu, budget="60k") * 1.001


def fastest(**asked: str) -> float:
    plans = estimate_briefly(**asked).plans
    return min(plan.duration_days.mid for plan in plans if plan.precision == "bf16" and plan.duration_days is not None)


def test_a_method_alone_may_be_left_open_on_a_gpu_that_was_named():
    settled = settle(Ask(texts={**SMALL, "method": "auto", "gpu": "rtx-4090"}))

    assert settled.ask.text(_item("gpu")) == "rtx-4090"
    assert settled.ask.text(_item("method")) in ("lora", "qlora")
    assert set(settled.notes) == {"method"}


def test_nothing_cheap_holds_what_nothing_holds():
    with pytest.raises(NoPlanError) as caught:
        settle(Ask(texts={**SMALL, "model": "llama-3.1-405b", "method": "sft", "gpu": "auto", "gpus": "1"}))

    assert caught.value.exit_code == 8


def test_a_budget_that_no_gpu_keeps_is_answered_with_one_that_does():
    asked = {"params": "3B", "precision": "bf16", "gpu": "auto", "as_of": "2026-08-22"}
    with pytest.raises(NoPlanError) as caught:
        settle(Ask(texts={**asked, "budget": "2500"}))
    assert caught.value.hint.key == "hint.enough_for"
    (flag,) = dict(caught.value.hint.values)["flags"]
    enough = dict(flag.values)["budget_usd"]

    assert 2500 < enough < 5000
    settled = settle(Ask(texts={**asked, "budget": str(enough)}))
    assert dict(caught.value.hint.values)["gpu"] in settled.ask.text(_item("gpu")).split(",")


def test_only_what_was_given_or_may_help_is_named_where_no_budget_is_short():
    with pytest.raises(NoPlanError) as caught:
        settle(Ask(texts={"params": "13B", "gpu": "auto", "gpus": "8", "deadline": "1d", "as_of": "2026-08-22"}))

    assert word(caught.value.hint).startswith("try other values of --deadline and --gpus,")


PRETRAINED = {"params": "1B", "tokens": "5B", "precision": "bf16", "gpus": "8", "as_of": "2026-11-22"}


@pytest.mark.parametrize(("flag", "why"), [({"ep": 2}, "error.ep_dense"), ({"tp": 3}, "error.tp_heads")])
def test_a_layout_that_goes_with_no_gpu_is_told_as_on_one_gpu(flag, why):
    with pytest.raises(UsageError) as refused:
        settle(
            Ask(
                texts={"params": "7B", "gpu": "auto", "gpus": "24", "tokens": "1B"}
                | {k: str(v) for k, v in flag.items()}
            )
        )

    assert refused.value.message.key == why


def test_a_gpu_without_a_price_is_not_the_cheapest_because_storage_is_billed(tmp_path):
    beside = tmp_path / "beside.toml"
    beside.write_text('[storage]\nusd_per_gb_month = 0.023\ndata = "10TB"\n')
    plain = settle(Ask(texts={**PRETRAINED, "gpu": "auto"})).ask.text(_item("gpu"))

    assert settle(Ask(texts={**PRETRAINED, "gpu": "auto", "beside": str(beside)})).ask.text(_item("gpu")) == plain


def test_an_offer_is_compared_with_the_whole_market(tmp_path):
    quote = tmp_path / "quote.toml"
    quote.write_text('vendor = "A"\ngpu = "h100-sxm5-80gb"\nprice_per_gpu_h = 9.0\nvalid_until = 2026-12-31\n')
    gpus = settle(Ask(texts={**PRETRAINED, "gpu": "auto", "quote": str(quote)})).ask.text(_item("gpu")).split(",")
    quote.write_text(quote.read_text().replace("9.0", "0.1"))
    cheap = settle(Ask(texts={**PRETRAINED, "gpu": "auto", "quote": str(quote)})).ask.text(_item("gpu")).split(",")

    assert gpus[-1] == "h100-sxm5-80gb"
    assert len(gpus) == 4
    assert cheap[0] == "h100-sxm5-80gb"


def record_of(device: str, folder: Path, *, slower: float = 1.0) -> str:
    """The shipped record of an H100, written as the record of another device, with other times."""
    shipped = next((SHIPPED / NAMED).glob("h100-*.jsonl.gz"))
    lines = [json.loads(line) for line in gzip.decompress(shipped.read_bytes()).splitlines()]
    for line in lines:
        line["device_name"] = device
        line |= {name: slower * line[name] for name in line if name.startswith("time_") and name.endswith("_s")}
    path = folder / "own.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return str(path)


def of_any_gpu(**more: str) -> dict[str, float]:
    """Cost at mid on each GPU of the answer to `--gpu auto`, in its order."""
    answer = estimate_briefly(params="7B", gpus="64", gpu="auto", as_of="2026-11-27", **more)
    return {p.gpu: p.cost_usd.mid for p in answer.plans if p.precision == "bf16" and p.cost_usd is not None}


def test_gpus_are_compared_by_the_record_that_the_user_named(tmp_path):
    without = of_any_gpu()
    measured = of_any_gpu(records=record_of("NVIDIA A100-SXM4-80GB", tmp_path))

    assert "a100-sxm4-80gb" not in without
    assert "a100-sxm4-80gb" in measured
    assert list(measured.values()) == sorted(measured.values())


def test_gpus_are_compared_over_the_network_that_the_user_measured(tmp_path):
    path = tmp_path / "nccl.txt"
    path.write_text(run_of(4) + run_of(16), encoding="utf-8")
    measured = of_any_gpu(network_file=str(path))

    assert list(measured) != list(of_any_gpu())
    assert list(measured.values()) == sorted(measured.values())


def test_the_gpu_of_the_record_that_the_user_named_is_shown_wherever_it_ranks(tmp_path):
    measured = of_any_gpu(records=record_of("NVIDIA A100-SXM4-80GB", tmp_path, slower=4.0))

    assert len(measured) == SHOWN + 1
    assert list(measured)[-1] == "a100-sxm4-80gb"


def test_own_machines_are_compared_where_their_servers_have_prices_of_their_own(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text("[use]\nutilisation_ratio = 0.8\n")
    gpus = settle(Ask(texts={**PRETRAINED, "gpu": "auto", "own": str(own)})).ask.text(_item("gpu")).split(",")

    assert set(gpus) <= server_rows().keys()
    own.write_text("[capital]\nserver_usd_per_gpu = 35000\n")
    with pytest.raises(UsageError, match="the price of every GPU"):
        settle(Ask(texts={**PRETRAINED, "gpu": "auto", "own": str(own)}))
    named = estimate_briefly(**PRETRAINED | {"gpu": "h100-sxm5-80gb,b200-sxm-180gb", "own": str(own)})
    assert "price.warning.one_server_price" in [warning.key for warning in named.warnings]
