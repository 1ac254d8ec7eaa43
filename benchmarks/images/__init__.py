"""Timed training steps of vision models, and how close the planner is to them."""
