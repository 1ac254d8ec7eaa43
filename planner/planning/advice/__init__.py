"""Advice to read before deciding on a plan: risks, avoidable costs, and settings that finish sooner."""
