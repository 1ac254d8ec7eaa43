"""Runs of instruments within a budget: finished results are on disk at once, and a killed run resumes from them."""
