"""Where the values of claims come from: the planner, published runs, kernels, records, arithmetic, training."""
