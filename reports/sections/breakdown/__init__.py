"""The breakdown of figures: parts of a step, of memory, of energy, of the bill."""
