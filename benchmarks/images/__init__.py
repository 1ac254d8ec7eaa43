"""Timed training steps of models that see images, and how close the planner is to them."""
