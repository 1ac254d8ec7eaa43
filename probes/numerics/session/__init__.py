"""Instruments within a budget: what is finished is on the disk at once, and a killed run goes on from there."""
