"""What measures: accuracy against published runs, speed against named baselines, the probe against itself."""
