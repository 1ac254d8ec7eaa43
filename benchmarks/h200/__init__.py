"""Scripts of a measurement campaign on one GPU."""
