"""Benchmarks: accuracy against published runs, speed against named baselines, and the probe against itself."""
