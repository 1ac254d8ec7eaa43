"""Time and memory of one training step of a vision model."""
