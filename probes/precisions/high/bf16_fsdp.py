"""BF16 as in FSDP and Megatron: BF16 compute copy, FP32 master weights, gradients accumulated in FP32."""

from probes.precisions.interface import PrecisionRecipe

RECIPE = PrecisionRecipe(
    id="bf16-fsdp",
    precision="bf16",
    summary="BF16 compute copy, FP32 master weights and gradients",
    operand="bfloat16",
    held="bfloat16",
    master_weights=True,
    min_capability=(8, 0),
    why_capability="BF16 matrix units came with Ampere",
    kernel=False,
)
