"""When a term has any effect on a recipe."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from planner.models.images.catalogue import load_image_models
from planner.models.linear_attention import LinearAttention
from planner.parallelism.layout import Layouts
from planner.performance.evaluation import evaluate
from planner.rates.conditions import has_effect, read_for
from planner.rates.ladder import resolve_rates
from planner.rates.parameters import shipped_parameters
from planner.rates.terms import Rates
from planner.validation.setup import NO_PRICES
from tests.planner.build import cluster, layouts, recipe, shape

LINEAR = LinearAttention(layers=4, key_heads=1, key_dim=64, value_heads=16, value_dim=64)


@pytest.mark.parametrize(
    ("term", "changes", "effective"),
    [
        ("send_stall_s", {"stack": "eager"}, True),
        ("send_stall_s", {"stack": "typical"}, False),  # sends run on a stream of their own
        ("cast_fusion_ratio", {"policy": "fp8"}, True),
        ("cast_fusion_ratio", {"policy": "bf16"}, False),
        ("norm_passes", {}, True),
        ("scan_passes", {"model": shape(linear=LINEAR)}, True),
        ("scan_passes", {"model": shape(linear=replace(LINEAR, key_dim=0, gates=2))}, False),  # a short convolution
        ("scan_passes", {}, False),
    ],
)
def test_a_term_counts_where_its_condition_holds(term, changes, effective):
    trained = recipe(**changes)
    rates = resolve_rates(cluster(), trained)

    assert has_effect(rates.terms[term], trained, rates.sample()) is effective


@pytest.mark.parametrize(
    ("gpu", "attention", "term", "effective"),
    [
        ("h100-sxm5-80gb", "flash", "matmul_overlap_ratio", False),  # products take their time from a surface
        ("h100-sxm5-80gb", "flash", "operand_bytes_per_s", False),
        ("h100-sxm5-80gb", "naive", "operand_bytes_per_s", True),  # which the scores do not
        ("v100-sxm2-32gb", "naive", "matmul_overlap_ratio", True),
        ("v100-sxm2-32gb", "naive", "operand_bytes_per_s", True),
    ],
)
def test_the_law_of_products_counts_where_no_surface_was_measured(gpu, attention, term, effective):
    trained = recipe(attention=attention, policy="fp16")
    rates = resolve_rates(cluster(gpu), trained)

    assert has_effect(rates.terms[term], trained, rates.sample()) is effective


@pytest.mark.parametrize(
    ("policy", "term", "effective"),
    [
        ("fp32", "image_winograd_ratio", True),
        ("tf32", "image_winograd_ratio", True),
        ("fp16", "image_winograd_ratio", False),
        ("tf32", "image_fp32_flop_per_s", True),
        ("fp32", "image_fp32_flop_per_s", False),  # its convolutions run at the rate of its products
    ],
)
def test_convolutions_on_cuda_cores_count_in_full_precision(policy, term, effective):
    trained = recipe(load_image_models()["resnet50"], policy, stack="eager", seq_len=1)
    rates = resolve_rates(cluster("a100-sxm4-80gb"), trained)

    assert has_effect(rates.terms[term], trained, rates.sample()) is effective


class Watched(Rates):
    """Rates that note which of them are read."""

    __slots__ = ()
    read: set[str] = set()  # noqa: RUF012

    def __getattribute__(self, name):
        type(self).read.add(name)
        return object.__getattribute__(self, name)


def test_the_equations_of_image_models_read_every_term_but_those_of_transformers_alone():
    at: Layouts = layouts(dp=16, micro_batch=64)
    terms: set[str] = set()
    machine, alike = cluster("h100-sxm5-80gb"), {"stack": "eager", "seq_len": 1}
    names = [(name, "fp16") for name in ("resnet50", "vit_base_patch16_224", "coat_tiny")]
    for name, policy in [*names, ("resnet50", "tf32"), ("vit_base_patch16_224", "fp8")]:
        for attention, last in itertools.product(("flash", "naive"), (True, False)):
            model = load_image_models()[name]
            trained = recipe(model, policy, attention=attention, channels_last=last, **alike)
            rates = resolve_rates(machine, trained).sample()
            terms |= set(vars(rates))
            evaluate(trained, machine, at, Watched(None, None, **vars(rates)), NO_PRICES, 1e6)

    families = shipped_parameters().families.values()
    transformers_alone = {term for family in families if family.models == "transformers" for term in family.terms}
    assert terms - Watched.read == transformers_alone & terms
    assert not transformers_alone & Watched.read


def test_a_term_of_image_models_is_none_of_a_transformers():
    families = shipped_parameters().families

    assert read_for(families["image_conv_ratio"], recipe(load_image_models()["resnet50"]))
    assert not read_for(families["image_layout_passes"], recipe())
    assert read_for(families["moe_passes"], recipe())
