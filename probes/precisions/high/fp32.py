"""Strict FP32: TF32 switched off."""

from probes.precisions.interface import PrecisionRecipe

RECIPE = PrecisionRecipe(id="fp32", precision="fp32", summary="FP32 throughout, TF32 off", operand="float32")
