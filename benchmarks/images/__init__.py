"""Timed training steps of vision models, and the planner's accuracy on them."""
