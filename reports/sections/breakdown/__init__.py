"""What a figure is made of: parts of a step, of memory, of energy, of the bill."""
