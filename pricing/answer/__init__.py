"""Answers a question about money: its prices, and next to the plans other places, starting hours and power limits."""
