"""Which rates follow from a measurement record?

Fits kernels and whole steps of one record; the rates replace published or assumed ones.
"""
