"""What the written pages of the benchmarks have in common."""
