"""Choose the number of GPUs where the question leaves it open: the fewest in time, or the soonest in a budget."""
