"""Scripts of a measuring campaign on one GPU."""
