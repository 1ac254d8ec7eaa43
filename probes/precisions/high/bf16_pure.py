"""BF16 throughout: weights, gradients and optimizer states."""

from probes.precisions.interface import PrecisionRecipe

RECIPE = PrecisionRecipe(
    id="bf16-pure",
    precision="bf16",
    summary="weights, gradients and states in BF16",
    operand="bfloat16",
    held="bfloat16",
    min_capability=(8, 0),
    why_capability="BF16 matrix units came with Ampere",
    kernel=False,
)
