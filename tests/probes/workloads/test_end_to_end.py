"""Whole models from `transformers`: real training steps, and bookkeeping of memory that agrees with the allocator."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from probes.device.clock import no_mark  # noqa: E402
from probes.memory.peaks import Baseline, peak_of  # noqa: E402
from probes.memory.tracker import track  # noqa: E402
from probes.models.cases import ModelCase, counts_of, params_of  # noqa: E402
from probes.workloads.end_to_end import build_model_trial  # noqa: E402
from tests.probes.build import CPU, without_onednn  # noqa: E402

LLAMA = ModelCase(family="llama", size="tiny", layers=2, batch=1, seq_len=128)
BERT = ModelCase(family="bert", size="tiny", layers=2, batch=2, seq_len=64)
RESNET = ModelCase(family="resnet", size="resnet-50", layers=50, batch=1, seq_len=64)


@pytest.fixture(autouse=True)
def quiet_libraries() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"torch|torchao|transformers")
        yield


@pytest.mark.parametrize("case", [LLAMA, BERT, RESNET], ids=lambda case: case.family)
def test_a_training_step_of_each_family_runs_in_its_phases_and_records_its_loss(case: ModelCase) -> None:
    trial = build_model_trial(case, "bf16-autocast", 0, CPU)
    phases: list[str] = []
    for _ in range(2):
        trial.step(phases.append)

    outcome = trial.outcome()

    assert phases[:3] == ["forward", "backward", "optimizer"]
    assert len(outcome.numerics.loss_trace) == 2
    assert outcome.params == params_of(trial.module)
    assert outcome.attention_backend == ("flash_cpu" if case.family == "llama" else None)


def test_training_on_one_batch_lowers_its_loss() -> None:
    trial = build_model_trial(LLAMA, "fp32", 0, CPU)
    for _ in range(10):
        trial.step(no_mark)

    trace = trial.outcome().numerics.loss_trace

    # untrained, the loss of 2048 equally likely tokens is ln 2048 = 7.62
    assert trace[0] == pytest.approx(7.62, abs=0.15)
    assert trace[-1] < trace[0]


def test_every_precision_starts_from_the_same_loss() -> None:
    first = {}
    for recipe in ("fp32", "bf16-autocast", "bf16-fsdp", "bf16-pure"):
        trial = build_model_trial(LLAMA, recipe, 0, CPU)
        trial.step(no_mark)
        first[recipe] = trial.outcome().numerics.loss_trace[0]

    assert max(first.values()) - min(first.values()) < 0.02


def test_bert_large_and_resnet_50_have_their_published_sizes() -> None:
    from probes.models.transformers_models import build_model

    bert = build_model(replace(BERT, size="bert-large", layers=1), 0, torch.device("cpu"))
    resnet = build_model(RESNET, 0, torch.device("cpu"))

    # one layer of BERT-Large: 4·1024² + 2·1024·4096 weights, 13 k of biases and norms; ResNet-50: 25.56 M with its head
    layer = sum(parameter.numel() for parameter in bert.bert.encoder.layer[0].parameters())
    assert layer == 12_596_224
    assert params_of(resnet) == 25_557_032


RECIPES = [
    *((recipe, False) for recipe in ("fp32", "bf16-autocast", "bf16-fsdp", "bf16-pure")),
    *((recipe, True) for recipe in ("fp32", "bf16-fsdp")),
    *(pytest.param(recipe, True, marks=pytest.mark.long) for recipe in ("bf16-autocast", "bf16-pure")),
]
"""Each precision, and recomputation in two of them."""


@pytest.mark.parametrize(("recipe", "recompute"), RECIPES)
def test_the_peak_by_bookkeeping_is_what_the_allocator_saw(recipe: str, recompute: bool) -> None:
    case = replace(LLAMA, recompute=recompute)
    # oneDNN takes scratch for BF16 products from torch's allocator, as much as the CPU's instructions require (see
    # tests/probes/memory/test_peaks.py). Bookkeeping counts tensors, so it is compared without oneDNN.
    with without_onednn():
        trial = build_model_trial(case, recipe, 0, CPU)
        trial.step(no_mark)
        trial.step(no_mark)
        measured = peak_of(CPU, trial.step, before=Baseline(), held_bytes=trial.held_bytes)

    tracked = track(lambda: build_model_trial(case, recipe, 0, CPU), CPU)

    assert tracked.peak_bytes == pytest.approx(measured.allocated_peak_bytes, rel=0.005)
    assert tracked.params == params_of(trial.module)
    phases = (measured.forward_peak_bytes, measured.backward_peak_bytes, measured.optimizer_peak_bytes)
    assert max(phases) == measured.allocated_peak_bytes


def test_recomputing_activations_lowers_the_peak() -> None:
    plain, recomputed = (
        track(lambda case=case: build_model_trial(case, "fp32", 0, CPU), CPU).peak_bytes
        for case in (replace(LLAMA, seq_len=1024), replace(LLAMA, seq_len=1024, recompute=True))
    )

    assert recomputed < plain


def test_the_arithmetic_of_a_llama_is_six_flop_per_parameter_and_token_plus_attention() -> None:
    counts = counts_of(LLAMA)

    # per layer 256·(4+2·2)·64 + 256·256 + 3·256·704 = 737 280; head 2048·256; attention 6·2·128²·256·2/2 for 2 layers
    matrix = 6 * 128 * (2 * 737_280 + 2048 * 256)
    attention = 3 * 2 * 2 * 128**2 * 256
    assert counts.flop_model == pytest.approx(matrix + attention)
