"""The step that every strategy takes: its sizes and its arithmetic."""

from __future__ import annotations

import pytest

from probes.models.parallel import STRATEGIES
from probes.models.parallel.case import case_of, widths_of
from probes.precisions import recipe_by_id


def test_the_model_on_gpus_is_the_published_one_with_an_output_layer_of_its_own() -> None:
    # meta-llama/Llama-3.2-1B: 1 235 814 400 parameters, its embedding of 128256 · 2048 shared with the output layer
    assert case_of(8, on_gpu=True).params == 1_235_814_400 + 128_256 * 2048


@pytest.mark.parametrize("world", [2, 4, 8])
def test_each_rank_has_the_same_tokens_however_many_there_are(world: int) -> None:
    assert case_of(world, on_gpu=False).tokens == 128 * world
    assert case_of(world, on_gpu=True).tokens == 8192 * world


@pytest.mark.parametrize(
    ("strategy", "world"),
    [(strategy, world) for strategy in STRATEGIES for world in (2, 4, 8) if world >= strategy.least_world],
    ids=lambda value: str(getattr(value, "id", value)),
)
def test_every_strategy_uses_all_ranks_for_the_same_tokens(strategy, world: int) -> None:
    layout = strategy.layout(world)
    shape = case_of(world, on_gpu=False).work_shape(layout)

    assert layout.tp * layout.dp * layout.pp * layout.cp * layout.copies == world
    assert shape.micro_batch * shape.micro_batches * layout.dp * layout.copies * shape.seq_len == shape.tokens
    assert layout.micro_batches >= 2 * layout.stages or layout.stages == 1


def test_arithmetic_is_six_flop_per_matrix_parameter_and_token_plus_causal_attention() -> None:
    case = case_of(2, on_gpu=False)

    # a layer has 2·256·256 + 2·256·128 + 3·256·704 = 737 280 matrix parameters; 256 tokens in 8 sequences of 32
    matrix = 6 * 256 * (4 * 737_280 + 256 * 2048)
    attention = 3 * 4 * 2 * 8 * 256 * 32**2
    counts = case.counts(recompute=False)
    assert counts.flop_model == pytest.approx(matrix + attention)
    # the layers' forward pass and attention's scores once more
    recomputed = case.counts(recompute=True).flop_hardware - counts.flop_hardware
    assert recomputed == pytest.approx(2 * 256 * 4 * 737_280 + attention / 3)


@pytest.mark.parametrize(
    ("recipe", "activation", "gathered"),
    [("fp32", 4, 4), ("tf32", 4, 4), ("bf16-autocast", 2, 4), ("bf16-fsdp", 2, 2), ("fp8", 2, 2)],
)
def test_what_is_sent_is_as_wide_as_the_recipe_holds_it(recipe: str, activation: int, gathered: int) -> None:
    widths = widths_of(recipe_by_id(recipe))

    assert (widths.activation, widths.gathered, widths.gradient) == (activation, gathered, 4)
