"""Prices put together for a question, and what stands beside its plans: other places, hours and power limits."""
