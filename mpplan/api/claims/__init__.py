"""What the literature claims, held against what the planner and records say."""
