"""What a place adds: power usage effectiveness, electricity, time-of-use tariffs and grid carbon."""
