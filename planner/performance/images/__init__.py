"""Time and memory of one training step of a model that sees images."""
