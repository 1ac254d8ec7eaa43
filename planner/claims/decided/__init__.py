"""The evidence that decides each claim, by subject: memory, speed, cost and energy, number formats, quality."""
