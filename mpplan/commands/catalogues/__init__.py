"""Commands that list what mpplan knows: GPUs, models and prices."""
