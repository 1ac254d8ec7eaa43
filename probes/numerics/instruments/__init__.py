"""Instruments that observe training. Each one is given time and a place to store what it has finished."""
