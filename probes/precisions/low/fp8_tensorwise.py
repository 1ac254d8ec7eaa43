"""FP8 linear layers with one current scale per tensor: e4m3 operands, e5m2 output gradients."""

from functools import partial

from probes.precisions.interface import PrecisionRecipe
from probes.precisions.low.float8 import convert_linears, scaled_product

RECIPE = PrecisionRecipe(
    id="fp8",
    precision="fp8",
    summary="bf16-fsdp with FP8 linear layers, one scale per tensor",
    operand="float8_e4m3fn",
    held="bfloat16",
    master_weights=True,
    min_capability=(8, 9),
    why_capability="FP8 matrix units came with Ada and Hopper",
    why_not_cpu="CPUs have no FP8 matrix units; torch would emulate them",
    convert=partial(convert_linears, recipe_name="tensorwise"),
    product=partial(scaled_product, rowwise=False),
)
