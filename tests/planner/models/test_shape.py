"""Counts of parameters, against the papers."""

from __future__ import annotations

import pytest

from planner.models.catalogue import find_model
from tests.planner.build import gpt


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("gpt-3-175b", 174.6e9),  # Brown et al. 2020, table D.1
        ("gpt-3-13b", 12.85e9),
        ("llama-2-70b", 68.98e9),
        ("llama-3.1-8b", 8.03e9),
        ("llama-3.1-70b", 70.55e9),
        ("llama-3.1-405b", 405.85e9),
    ],
)
def test_parameters_of_gpt_3_and_llama(name, published):
    assert find_model(name).params_total == pytest.approx(published, rel=0.002)


@pytest.mark.parametrize(("layers", "hidden", "heads"), [(24, 2304, 24), (96, 12288, 96)])
def test_a_gpt_has_12_l_h_squared_and_small_terms(layers, hidden, heads):
    # Narayanan et al. 2021, equation 2: P = 12 l h^2 (1 + 13 / 12h + (V + s) / 12 l h)
    one = gpt(layers, hidden, heads, vocab=51200)
    theirs = 12 * layers * hidden**2 * (1 + 13 / (12 * hidden) + 51200 / (12 * layers * hidden))

    assert one.params_total == pytest.approx(theirs, rel=1e-3)


def test_an_expert_model_activates_its_top_experts_only():
    mixtral = find_model("mixtral-8x7b")

    # arXiv 2401.04088: 47B parameters, 13B active
    assert mixtral.params_total == pytest.approx(46.7e9, rel=0.003)
    assert mixtral.params_active == pytest.approx(12.9e9, rel=0.003)
    assert mixtral.params_total - mixtral.params_active == 32 * 6 * 3 * 4096 * 14336


def test_every_second_layer_can_be_a_mixture():
    assert find_model("llama-4-maverick").moe_layers == 24
    assert find_model("deepseek-v3").moe_layers == 58
    assert find_model("llama-3.1-8b").moe_layers == 0


def test_the_share_of_layers_with_experts_is_that_of_the_mean_layer():
    # DeepSeek-V3 (arXiv 2412.19437, section 4.2): 61 layers, the first three dense
    assert find_model("deepseek-v3").moe_share == pytest.approx(58 / 61)
    assert find_model("llama-3.1-8b").moe_share == 0
