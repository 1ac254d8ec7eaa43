"""How many GPUs, where the question leaves it open: the fewest in time, the soonest for the money."""
