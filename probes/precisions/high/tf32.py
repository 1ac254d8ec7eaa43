"""FP32 storage with TF32 matrix products, which most "FP32" training on Ampere and later really uses."""

from probes.precisions.interface import PrecisionRecipe

RECIPE = PrecisionRecipe(
    id="tf32",
    precision="tf32",
    summary="FP32 storage, TF32 matrix products",
    operand="float32",
    tf32=True,
    min_capability=(8, 0),
    why_capability="TF32 came with Ampere",
    why_not_cpu="CPUs have no TF32; torch accepts the setting and computes in FP32",
)
