"""Rates that follow from a measurement record.

The modules fit the kernels and whole steps of one record. The fitted rates replace published or assumed ones.
"""
