"""What decides each claim, by what it is about: memory, speed, cost and energy, number formats."""
