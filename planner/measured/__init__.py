"""What does a measurement record say about a GPU?

Fits kernels and whole steps of one record and turns them into rates that replace published or assumed ones.
"""
