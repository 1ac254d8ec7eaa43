"""Sources of the values of claims: the planner, published runs, kernels, records, arithmetic, training."""
