"""Facts about a place: power usage effectiveness, electricity prices and tariffs, grid and embodied carbon."""
