"""What a run leaves behind: its options, where it ran, and one line per point, written as soon as it is known."""
