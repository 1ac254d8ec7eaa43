"""Claims of the literature, judged by the planner and by measurement records."""
