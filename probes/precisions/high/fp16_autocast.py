"""FP16 autocast over FP32 weights with dynamic loss scaling."""

from probes.precisions.interface import PrecisionRecipe

RECIPE = PrecisionRecipe(
    id="fp16",
    precision="fp16",
    summary="FP32 weights, FP16 autocast, dynamic loss scaling",
    operand="float16",
    autocast="float16",
    loss_scaling=True,
    min_capability=(7, 0),
    why_capability="FP16 matrix units came with Volta",
)
