"""BF16 autocast over FP32 weights."""

from probes.precisions.interface import PrecisionRecipe

RECIPE = PrecisionRecipe(
    id="bf16-autocast",
    precision="bf16",
    summary="FP32 weights, BF16 autocast",
    operand="bfloat16",
    autocast="bfloat16",
    min_capability=(8, 0),
    why_capability="BF16 matrix units came with Ampere",
)
